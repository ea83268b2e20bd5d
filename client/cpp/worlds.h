// Worlds of MuJoCo, stepped by servers: a model once, then states and controls in, states and
// sensors out.
//
//   auto model = WorldModel::Make(mj_version(), ModelKind::kMjb, {{"", mjb}});
//   const std::vector<const WorldModel*> models(worlds, &*model);
//   std::vector<double> answered(worlds * steps * size);
//   std::vector<WorldOutcome> outcomes(worlds);
//   const auto advanced = client->Advance({.models = models, .steps = steps, .states = initial,
//                                          .answered_states = answered, .outcomes = outcomes});
//
// The state of a world stays here, so a call is repeated where it is lost, at any server of the
// address with the same library of MuJoCo and the same build: same bits, whatever the number of
// servers. See proto/sap/v1/world_service.proto.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "client/cpp/error.h"
#include "client/cpp/solve_options.h"

namespace sap::client {

// Numbers of ModelKind in the schema.
enum class ModelKind : uint8_t {
  kMjb = 1,   // one file of MuJoCo's binary format, as mj_saveModel writes it
  kMjcf = 2,  // XML, and what it includes: the first file is the root
};

struct ModelFile {
  std::string name;
  std::string content;
};

// The files of a model. It is given to a server once and kept there by its hash, which is computed
// once too: use one object for all calls. Copies share it.
class WorldModel {
 public:
  struct Content;

  // `mujoco_version` as mj_version() counts it. An error if there is no file.
  static tl::expected<WorldModel, Error> Make(int mujoco_version, ModelKind kind,
                                              std::vector<ModelFile> files);

  const Content& content() const { return *content_; }

 private:
  explicit WorldModel(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

  std::shared_ptr<const Content> content_;
};

// Numbers of a state, in the order of mj_getState. Numbers of StateKind in the schema.
enum class StateKind : uint8_t {
  kFullPhysics = 1,  // mjSTATE_FULLPHYSICS
  kIntegration = 2,  // mjSTATE_INTEGRATION: all that steps depend on
};

// Arrays that controls set before each step. Numbers of ControlComponent in the schema.
enum class ControlComponent : uint8_t {
  kCtrl = 1,
  kQfrcApplied = 2,
  kXfrcApplied = 3,
  kEqActive = 4,
  kMocapPos = 5,
  kMocapQuat = 6,
  kUserdata = 7,
};

// Numbers of WorldLaw in the schema.
enum class WorldLaw : uint8_t {
  kSap = 1,
  kMujoco = 2,   // MuJoCo's own convex problem, by this solver
  kCoulomb = 3,  // the law of SAP with exact Coulomb friction
  kRun = 4,      // the step of `sap-islands run`
};

// A world ends when the largest dof_length |qvel| has been below `speed` for `duration`.
struct AtRest {
  double speed{0};     // > 0 [m/s]
  double duration{0};  // [s]
};

// How a step of a world was solved.
struct WorldCertificate {
  int64_t islands{0};     // that this solver has solved
  int64_t unsolved{0};    // of these, not to the tolerance
  int64_t iterations{0};  // largest of an island
  double bound{0};        // largest of an island on l(v) - min l [J]
};

// Numbers of WorldEnd in the schema.
enum class WorldEnd : uint8_t {
  kNone = 0,
  kSteps = 1,    // all steps are taken
  kWarning = 2,  // it was held after a warning of MuJoCo's
  kRest = 3,
  kFailure = 4,
};

struct WorldOutcome {
  WorldEnd end{WorldEnd::kNone};
  int64_t steps{0};                // taken
  uint32_t warnings{0};            // of MuJoCo's: the bit 1 << kind for each mjtWarning
  double rested{0};                // time that it is below AtRest::speed [s]
  std::optional<Error> failure{};  // of the step number `steps`, counted from 0
};

// N worlds, K steps, R = ceil(K / every) answered rows of each. Arrays are the caller's until the
// call has ended. Rows after the end of a world repeat its last state and sensors.
struct WorldsView {
  std::span<const WorldModel* const> models{};  // [N], with states of equal size
  int64_t steps{0};                             // K >= 1
  int64_t every{1};                             // in [1, K]
  StateKind state_kind{StateKind::kFullPhysics};
  std::span<const double> states{};                        // [N, size] to begin with
  std::span<const ControlComponent> control_components{};  // none: no controls are set
  std::span<const double> controls{};                      // [N, K, size of all components]
  WorldLaw law{WorldLaw::kSap};
  std::optional<double> relative_tolerance{};  // not for kRun; absent: that of the law
  std::optional<uint32_t> max_iterations{};    // likewise
  bool refuses_unsolved{false};      // whether a world fails at an island that is not solved
  bool holds_after_warning{false};   // as mujoco.rollout does; otherwise it goes on as mj_step does
  std::optional<AtRest> until{};     // absent: never
  std::span<const double> rested{};  // [N] WorldOutcome::rested of the call before; empty: 0
  StateKind answered_kind{StateKind::kFullPhysics};

  // Written; empty: not wanted.
  std::span<double> answered_states{};         // [N, R, size of answered_kind]
  std::span<double> sensors{};                 // [N, R, nsensordata]
  std::span<double> final_states{};            // [N, size of kIntegration]: checkpoints
  std::span<WorldCertificate> certificates{};  // [N, K], 0 after the end of a world
  std::span<WorldOutcome> outcomes{};          // [N]

  int64_t worlds() const { return static_cast<int64_t>(models.size()); }
  int64_t rows() const { return (steps + every - 1) / every; }
};

struct WorldsOptions {
  // Time after which the call fails with kDeadlineExceeded.
  std::optional<std::chrono::nanoseconds> deadline{};
  Priority priority{Priority::kNormal};
  CallOptions call{};
};

// An error that names the field if lengths do not agree; servers check the rest.
tl::expected<void, Error> CheckWorlds(const WorldsView& worlds);

}  // namespace sap::client
