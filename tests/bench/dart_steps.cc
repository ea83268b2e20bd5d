// Times of DART's steps under its own solvers and under SAP, scene by scene in one process.
//
//   dart_steps [SCENE...]
//
// Per solver: processor time of the constraint stage, from what DART has found to impulses
// applied, and of the whole step, in ms; the same of the last tenth of the scene; depth and speed
// at its end.
// All run on one thread. A solver that takes more than kPatience is stopped, and the time that it
// came to is said.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dart/constraint/DantzigBoxedLcpSolver.hpp>
#include <dart/constraint/PgsBoxedLcpSolver.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/client/dart/scene.h"

namespace sap_islands::dart {
namespace {

using ::dart::dynamics::BodyNode;
using ::dart::dynamics::BoxShape;
using ::dart::dynamics::CollisionAspect;
using ::dart::dynamics::DegreeOfFreedom;
using ::dart::dynamics::DynamicsAspect;
using ::dart::dynamics::Inertia;
using ::dart::dynamics::RevoluteJoint;
using ::dart::dynamics::SkeletonPtr;
using Eigen::Vector3d;

constexpr double kPatience = 60;  // s

// Processor time of the process, which the load of the machine does not change.
double Now() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  double stage_s = 0;
};

// A solver that counts the time of its constraint stage.
template <typename Solver>
class Timed : public Solver, public Stopwatch {
 public:
  using Solver::Solver;

 protected:
  void solveConstrainedGroup(::dart::constraint::ConstrainedGroup& group) override {
    const double start = Now();
    Solver::solveConstrainedGroup(group);
    stage_s += Now() - start;
  }
};

void AddBin(double half_width, double height, Scene* scene) {
  scene->AddGround(0.5);
  for (int side = 0; side < 4; ++side) {
    const double sign = side % 2 == 0 ? 1 : -1;
    const bool along_x = side < 2;
    const double place = sign * (half_width + 0.5);
    const SkeletonPtr wall = scene->AddBox(
        1, along_x ? Vector3d(1, 2 * half_width + 2, height) : Vector3d(2 * half_width, 1, height),
        along_x ? Vector3d(place, 0, height / 2) : Vector3d(0, place, height / 2), 0.5);
    wall->setMobile(false);
  }
}

void AddSpheres(Scene* scene) {
  AddBin(0.2, 1, scene);
  for (int i = 0; i < 25; ++i) {
    scene->AddSphere(0.5, 0.06,
                     {0.13 * (i % 3 - 1) + 0.003 * (i % 4),
                      0.13 * (i / 3 % 3 - 1) - 0.002 * (i % 5), 0.07 + 0.14 * (i / 9)},
                     0.5);
  }
}

void AddStacks(double top_mass, Scene* scene) {
  scene->AddGround(0.5);
  for (int i = 0; i < 64; ++i) {
    scene->AddBox(i % 8 == 7 ? top_mass : 1, {0.1, 0.1, 0.1},
                  {0.5 * (i / 8), 0, 0.05 + 0.1 * (i % 8)}, 0.5);
  }
}

// Turns a free body by an angle about an axis.
void Turn(const SkeletonPtr& body, double angle, const Vector3d& axis) {
  body->setPositions(
      body->getPositions() +
      (Eigen::VectorXd(6) << angle * axis.normalized(), Vector3d::Zero()).finished());
}

void AddBoxes(Scene* scene) {
  AddBin(0.3, 3, scene);
  for (int i = 0; i < 100; ++i) {
    const SkeletonPtr box =
        scene->AddBox(1, {0.1, 0.1, 0.1},
                      {0.14 * (i % 4 - 1.5) + 0.004 * (i % 7),
                       0.14 * (i / 4 % 4 - 1.5) - 0.003 * (i % 5), 0.06 + 0.13 * (i / 16)},
                      0.5);
    Turn(box, 0.3 * i, {std::sin(1.0 * i), std::cos(2.0 * i), 0.5});
  }
}

void AddHeaps(Scene* scene) {
  scene->AddGround(0.5);
  for (int i = 0; i < 300; ++i) {
    scene->AddBox(1, {0.1, 0.1, 0.1},
                  {1.0 * (i % 10) + 0.02 * (i / 100), 1.0 * (i / 10 % 10), 0.06 + 0.11 * (i / 100)},
                  0.5);
  }
}

// A limb of two segments along -z on the torso.
void AddLimb(const SkeletonPtr& skeleton, BodyNode* torso, const Vector3d& place, double length) {
  BodyNode* parent = torso;
  Vector3d at = place;
  for (int segment = 0; segment < 2; ++segment) {
    for (int axis = 0; axis < (segment == 0 ? 2 : 1); ++axis) {
      RevoluteJoint::Properties joint;
      joint.mAxis = axis == 0 ? Vector3d::UnitY() : Vector3d::UnitX();
      joint.mT_ParentBodyToJoint.translation() = axis == 0 ? at : Vector3d::Zero();
      joint.mPositionLowerLimits[0] = -0.6;
      joint.mPositionUpperLimits[0] = 0.6;
      joint.mIsPositionLimitEnforced = true;
      joint.mFrictions[0] = 0.5;
      joint.mName = "joint " + std::to_string(skeleton->getNumJoints());
      BodyNode::AspectProperties body("body " + std::to_string(skeleton->getNumBodyNodes()));
      auto pair = skeleton->createJointAndBodyNodePair<RevoluteJoint>(parent, joint, body);
      parent = pair.second;
      parent->setInertia(Inertia(0.3, Vector3d::Zero(), 1e-3 * Eigen::Matrix3d::Identity()));
    }
    const auto shape = std::make_shared<BoxShape>(Vector3d(0.08, 0.08, length));
    auto* node = parent->createShapeNodeWith<CollisionAspect, DynamicsAspect>(shape);
    node->setRelativeTranslation({0, 0, -length / 2 - 0.06});
    parent->setInertia(Inertia(2, Vector3d(0, 0, -length / 2 - 0.06), shape->computeInertia(2)));
    at = {0, 0, -length - 0.1};
  }
}

void AddHumanoids(Scene* scene) {
  scene->AddGround(0.8);
  for (int i = 0; i < 5; ++i) {
    const SkeletonPtr body = scene->AddBox(20, {0.25, 0.4, 0.6}, {1.5 * i, 0, 1.5}, 0.8);
    for (const double side : {-1.0, 1.0}) {
      AddLimb(body, body->getBodyNode(0), {0, side * 0.12, -0.35}, 0.35);  // leg
      AddLimb(body, body->getBodyNode(0), {0, side * 0.3, 0.25}, 0.25);    // arm
    }
  }
}

struct SceneCase {
  const char* name;
  double seconds;
  std::function<void(Scene*)> add;
};

const std::vector<SceneCase> kScenes = {
    {"spheres", 2, AddSpheres},
    {"stacks", 0.5, [](Scene* scene) { AddStacks(1, scene); }},
    {"heavy", 0.5, [](Scene* scene) { AddStacks(100, scene); }},
    {"humanoids", 2, AddHumanoids},
    {"boxes", 0.8, AddBoxes},
    {"heaps", 0.3, AddHeaps},
};

using Solvers = std::vector<
    std::pair<const char*, std::function<::dart::constraint::UniqueConstraintSolverPtr()>>>;

Solvers AllSolvers() {
  using ::dart::constraint::BoxedLcpConstraintSolver;
  using ::dart::constraint::PgsBoxedLcpSolver;
  return {{"Dantzig", [] { return std::make_unique<Timed<BoxedLcpConstraintSolver>>(); }},
          {"PGS",
           [] {
             return std::make_unique<Timed<BoxedLcpConstraintSolver>>(
                 std::make_shared<PgsBoxedLcpSolver>(), nullptr);
           }},
          {"SAP", [] {
             Options options;
             options.threads = 1;
             return std::make_unique<Timed<SapConstraintSolver>>(options);
           }}};
}

void Run(const SceneCase& scene_case, const char* solver,
         ::dart::constraint::UniqueConstraintSolverPtr made) {
  Scene scene;
  scene_case.add(&scene);
  const auto detector = scene.solver().getCollisionDetector();
  const auto* stopwatch = dynamic_cast<Stopwatch*>(made.get());
  const auto* sap = dynamic_cast<SapConstraintSolver*>(made.get());
  scene.world().setConstraintSolver(std::move(made));
  // DART's own solver has dropped it.
  scene.world().getConstraintSolver()->setCollisionDetector(detector);
  const int steps = static_cast<int>(scene_case.seconds / scene.world().getTimeStep());
  const double start = Now();
  double late_stage = 0, late_start = start;
  int done = 0, solves = 0, iterations = 0, unsolved = 0;
  for (; done < steps && Now() - start < kPatience; ++done) {
    if (done == steps * 9 / 10) late_stage = stopwatch->stage_s, late_start = Now();
    scene.world().step();
    if (sap == nullptr) continue;
    solves += sap->lastReport().solves;
    iterations += sap->lastReport().iterations;
    unsolved += sap->lastReport().solved ? 0 : 1;
  }
  if (done < steps) late_stage = 0, late_start = start;  // without an end of its own
  const double late = done < steps ? done : done - steps * 9 / 10;
  const double end = Now();
  double speed = 0, over_limit = 0;
  for (std::size_t i = 0; i < scene.world().getNumSkeletons(); ++i) {
    const SkeletonPtr skeleton = scene.world().getSkeleton(i);
    speed = std::max(speed, VelocityOf(skeleton).norm());
    for (const DegreeOfFreedom* dof : skeleton->getDofs()) {
      over_limit = std::max({over_limit, dof->getPosition() - dof->getPositionUpperLimit(),
                             dof->getPositionLowerLimit() - dof->getPosition()});
    }
  }
  std::printf("%-10s %-8s stage %8.3f ms (end %8.3f)  step %8.3f ms (end %8.3f)  ", scene_case.name,
              solver, stopwatch->stage_s / done * 1e3,
              (stopwatch->stage_s - late_stage) / late * 1e3, (end - start) / done * 1e3,
              (end - late_start) / late * 1e3);
  std::printf("depth %.2e m, speed %.1e m/s, over limits %.1e rad", scene.DeepestPenetration(),
              speed, over_limit);
  if (sap != nullptr) {
    std::printf(", %.1f iterations in %.1f solves, %d unsolved", double(iterations) / done,
                double(solves) / done, unsolved);
  }
  std::printf(done < steps ? ", stopped at %.3f s\n" : "\n", done * scene.world().getTimeStep());
  std::fflush(stdout);
}

}  // namespace
}  // namespace sap_islands::dart

int main(int count, char** names) {
  for (const auto& scene : sap_islands::dart::kScenes) {
    bool wanted = count == 1;
    for (int i = 1; i < count; ++i) wanted = wanted || std::strcmp(names[i], scene.name) == 0;
    if (!wanted) continue;
    for (const auto& [name, make] : sap_islands::dart::AllSolvers()) {
      sap_islands::dart::Run(scene, name, make());
    }
  }
}
