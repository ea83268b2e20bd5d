#include "client/mujoco/judge.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "client/mujoco/comparison.h"
#include "client/mujoco/step_stages.h"

namespace sap::mujoco {

struct JudgedState {
  const MujocoCalls& calls;
  const void* model;
  void* data;
  const double* numbers;  // before the step, of mjtState
  int32_t kind;
  const double* next_qvel;
  std::span<const std::byte> contacts{};
};

namespace {

constexpr double kTolerance = 1e-10;

Fields FieldsOf(const JudgedState& c) { return ReadFields(c.calls.fields, c.model, c.data); }

bool HasWarnings(const Fields& fields) {
  return std::ranges::any_of(fields.warning, [](int32_t value) { return value != 0; });
}

void PlaceState(const JudgedState& c) {
  std::ranges::fill(FieldsOf(c).warning, 0);
  c.calls.set_state(c.model, c.data, c.numbers, c.kind);
  c.calls.position(c.model, c.data);
}

// After PlaceState, and a step from there.
void PlaceContacts(const JudgedState& c) {
  c.calls.set_state(c.model, c.data, c.numbers, c.kind);
  const sap_mujoco_field& count = c.calls.fields[row::ncon];
  std::memset(static_cast<std::byte*>(c.data) + count.offset, 0, static_cast<size_t>(count.size));
  const Fields fields = FieldsOf(c);
  for (size_t at = 0; at < c.contacts.size(); at += static_cast<size_t>(fields.contact_bytes)) {
    // A memory that is full is one of its warnings.
    if (c.calls.add_contact(c.model, c.data, c.contacts.data() + at) != 0) return;
  }
  c.calls.RemakeConstraints(c.model, c.data);
}

// Writes the forces of constraints of an acceleration.
void StoreForceOfConstraints(const JudgedState& c) {
  const Fields fields = FieldsOf(c);
  c.calls.multiply_mass(c.model, c.data, fields.qfrc_constraint, fields.qacc);
  for (int64_t i = 0; i < fields.nv; ++i) fields.qfrc_constraint[i] -= fields.qfrc_smooth[i];
}

}  // namespace

tl::expected<sap_mujoco_judgment, EngineError> Judge::Run(const MujocoCalls& calls,
                                                          const void* model, void* data,
                                                          const sap_mujoco_recording& recording,
                                                          int64_t k) {
  Fields fields = ReadFields(calls.fields, model, data);
  JudgedState state{.calls = calls,
                    .model = model,
                    .data = data,
                    .numbers = recording.state + k * recording.state_size,
                    .kind = recording.state_kind,
                    .next_qvel = recording.next_qvel + k * fields.nv};
  EngineStatus placed = calls.Run([&] { PlaceState(state); });
  if (!placed) return tl::unexpected(placed.error());
  const auto found = Compare(state, recording);
  if (!found) return tl::unexpected(found.error());
  fields = FieldsOf(state);
  const int64_t found_contacts = CountActingContacts(fields);
  auto judged = found;
  int64_t lost_pairs = 0;
  if (recording.contacts != nullptr) {
    const auto* contacts = static_cast<const std::byte*>(recording.contacts);
    contacts_.Merge(fields,
                    {contacts + recording.first_contact[k] * fields.contact_bytes,
                     contacts + recording.first_contact[k + 1] * fields.contact_bytes},
                    recording.touching);
    state.contacts = contacts_.merged();
    placed = calls.Run([&] { PlaceContacts(state); });
    if (!placed) return tl::unexpected(placed.error());
    judged = Compare(state, recording);
    if (!judged) return tl::unexpected(judged.error());
    lost_pairs = contacts_.lost_pairs();
  }
  return sap_mujoco_judgment{.error = judged->error,
                             .bound = judged->bound,
                             .island_error = judged->island_error,
                             .contacts = CountActingContacts(FieldsOf(state)),
                             .found_contacts = found_contacts,
                             .lost_pairs = lost_pairs,
                             .found_error = found->error,
                             .asleep = judged->asleep};
}

EngineStatus Judge::Solve(const JudgedState& state) {
  constexpr bool kAsSap = false;
  constexpr bool kCallsControl = false;  // controls are recorded
  EngineStatus computed = state.calls.Run([&] { state.calls.velocity(state.model, state.data); });
  if (computed) {
    computed = ComputeForces(state.calls, state.model, state.data, kAsSap, kCallsControl);
  }
  if (!computed) return computed;
  if (HasWarnings(FieldsOf(state))) {
    return tl::unexpected(EngineError{EngineErrorCode::kInvalidArgument, "MuJoCo warns", ""});
  }
  const Fields fields = FieldsOf(state);
  EngineStatus built = problem_.Build(state.calls, state.model, state.data, fields, kAsSap);
  if (!built) return built;
  // Most recorded steps are nearly right, and the certificate is that of the answer from any guess.
  std::copy_n(state.next_qvel, fields.nv, problem_.guess());
  EngineStatus read = task_.Read(ViewOf(fields, problem_.problem()));
  if (!read) return read;
  SolverOptions options;
  options.relative_tolerance = kTolerance;
  return task_.Solve(&solver_, options, CallLimits{}, SolveLimits{}, &solution_);
}

tl::expected<sap_mujoco_comparison, EngineError> Judge::Compare(
    const JudgedState& state, const sap_mujoco_recording& recording) {
  EngineStatus solved = Solve(state);
  if (!solved) return tl::unexpected(solved.error());
  const Fields fields = FieldsOf(state);
  for (int64_t i = 0; i < fields.nv; ++i) {
    fields.qacc[i] = (solution_.velocity[i] - fields.qvel[i]) / fields.timestep;
  }
  EngineStatus moved = state.calls.Run([&] { StoreForceOfConstraints(state); });
  if (moved) moved = Integrate(state.calls, state.model, state.data, fields, false, nullptr);
  if (!moved) return tl::unexpected(moved.error());
  gaps_.clear();
  for (const IslandReport& island : solution_.islands) {
    gaps_.push_back(island.optimality_gap_bound);
  }
  tree_error_.resize(static_cast<size_t>(fields.ntree));
  const sap_mujoco_velocities velocities = {.recorded = state.next_qvel,
                                            .exact = fields.qvel,
                                            .v_free = problem_.v_star(),
                                            .solution = solution_.velocity.data(),
                                            .island_of_tree = solution_.island_of_tree.data(),
                                            .gap = gaps_.data(),
                                            .islands = static_cast<int64_t>(gaps_.size()),
                                            .slow = recording.slow,
                                            .sleeps = recording.sleeps};
  return mujoco::Compare(fields, Trees(fields), velocities, tree_error_.data());
}

}  // namespace sap::mujoco
