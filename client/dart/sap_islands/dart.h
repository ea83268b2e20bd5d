// SAP as the constraint solver of DART:
//
//   world->setConstraintSolver(std::make_unique<sap_islands::dart::SapConstraintSolver>());
//
// World::step then calls it for contacts, joint limits, servo and mimic motors, joint friction,
// restitution, slip, and the constraints of ConstraintSolver::addConstraint. DART's own solver,
// from which this one is derived, takes steps with contacts of soft bodies. client/dart/README.md
// says what differs.
#pragma once

#include <dart/constraint/BoxedLcpConstraintSolver.hpp>
#include <memory>
#include <string>

static_assert(EIGEN_MAX_STATIC_ALIGN_BYTES <= 16,
              "libsap_islands_dart and Debian's DART align Eigen's types to 16 bytes: compile what "
              "includes DART without -mavx and the like");

namespace sap_islands::dart {

class StepSolver;

enum class RegularizationRule {
  kLoadPath,  // heavy loads on light bodies sink no deeper than a single body
  kFull,      // the rule of the paper
};

struct Options {
  // Where to solve: "embedded:" is this process; "HOST:PORT", "unix:PATH" and lists of them are
  // servers, for which libsap_islands_client is loaded.
  std::string address = "embedded:";
  // Threads of "embedded:" that work on one step; 0: all of the process.
  int threads = 0;
  // Time in which a penetration decays [s]; 0: 20 ms, but at least four steps.
  double relaxation_time_s = 0;
  // Largest speed at which two shapes that overlap are pushed apart, along the mean of the normals
  // of their contacts [m/s].
  double max_push_out_speed = 0.01;
  RegularizationRule rule = RegularizationRule::kLoadPath;
  // beta: contacts, and rows of joints, have R of at least beta^2 / (4 pi^2) w [-].
  double beta = 1;
  double row_beta = 0.1;
  // sigma: slip of sticking contacts, R_t = sigma w [-].
  double slip_parameter = 1e-3;
  // R / w of joint friction, which creeps at R times its impulse where it holds [-]. Infinite
  // friction locks a joint whatever this is.
  double joint_slip_parameter = 1e-3;
  // Joint limits are constraints where the free motion comes within twice its speed and this one of
  // them [rad/s, m/s].
  double limit_reach_speed = 100;
  // Time after which a step takes the best iterate [s]; 0: none.
  double time_budget_s = 0;

  // For bodies that are not to sag or creep to the eye, at some three times the iterations.
  static Options Rigid() {
    Options options;
    options.beta = 0.01;
    options.row_beta = 1e-3;
    options.slip_parameter = options.joint_slip_parameter = 1e-6;
    return options;
  }
};

// How the last step was solved.
struct Report {
  int islands = 0;
  int contacts = 0;
  int rows = 0;    // of joints and of users' constraints
  int solves = 0;  // more than one where contacts begin or cease to slide
  // False after a step that was not solved, or where after ten solves some contact still slid at
  // another speed than its target was made for: bodies part or sink by the difference.
  bool settled = true;
  int iterations = 0;  // Newton iterations of the island that needed most, over all solves
  // Every island was solved to the tolerance. Otherwise its best iterate was applied, or, where
  // `message` is not empty, the step was left to DART's own solver.
  bool solved = true;
  std::string message;  // why DART's own solver took the step
};

class [[gnu::visibility("default")]] SapConstraintSolver
    : public ::dart::constraint::BoxedLcpConstraintSolver {
 public:
  // Throws std::runtime_error if the library of the address cannot be loaded or no server answers.
  explicit SapConstraintSolver(const Options& options = Options());
  ~SapConstraintSolver() override;

  Report lastReport() const;

  // Takes skeletons and constraints of the other one, as DART's does, and its collision detector
  // and collision options, which DART's drops.
  void setFromOtherConstraintSolver(const ConstraintSolver& other) override;

 protected:
  void solveConstrainedGroup(::dart::constraint::ConstrainedGroup & group) override;

 private:
  std::unique_ptr<StepSolver> step_;
  bool step_is_solved_ = false;
};

}  // namespace sap_islands::dart
