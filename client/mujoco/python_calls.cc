#include "client/mujoco/python_calls.h"

#include "client/mujoco/comparison.h"
#include "client/mujoco/problem_buffers.h"
#include "client/mujoco/sap_mujoco_handle.h"
#include "client/mujoco/step_stages.h"
#include "client/mujoco/timers.h"

namespace sap::mujoco {
namespace {

// Runs a function of the interface that may fail.
template <typename Body>
int32_t Report(sap_mujoco_outcome* outcome, const Body& body) {
  *outcome = {};
  const EngineStatus status = CatchExceptions([&]() -> EngineStatus { return body(); });
  return status ? 0 : Refuse(status.error().code, status.error().message, outcome);
}

EngineStatus Compute(const MujocoCalls& calls, const void* model, void* data, int32_t stage,
                     int32_t flags) {
  const bool as_sap = (flags & SAP_MUJOCO_LAW_SAP) != 0;
  switch (stage) {
    case SAP_MUJOCO_POSITIONS:
      return ComputePositions(calls, model, data, as_sap);
    case SAP_MUJOCO_CONSTRAINTS:
      return RemakeConstraints(calls, model, data);
    case SAP_MUJOCO_FORCES:
      return ComputeForces(calls, model, data, as_sap, (flags & SAP_MUJOCO_RECORDED) == 0);
    default:
      return ComputeAll(calls, model, data, as_sap);
  }
}

// Writes where the arrays of a problem are that are not empty.
void ListArrays(const ContactProblemView& view, sap_mujoco_problem* problem) {
  const auto begin_of = [&](const auto* data) {
    if constexpr (std::is_same_v<decltype(data), const double*>) return data - problem->doubles;
    if constexpr (std::is_same_v<decltype(data), const int32_t*>) return data - problem->integers;
    if constexpr (std::is_same_v<decltype(data), const uint32_t*>) {
      return data - problem->unsigned_integers;
    }
  };
  int64_t number = 0;
  problem->array_count = 0;
  ForEachArray(
      [&](std::string_view, const auto&, const auto& array) {
        if (!array.empty()) {
          problem->arrays[problem->array_count++] = {number, begin_of(array.data()),
                                                     static_cast<int64_t>(array.size())};
        }
        ++number;
      },
      view);
}

ContactSolution SolutionOf(const sap_mujoco_layout& layout, const Fields& fields,
                           const sap_mujoco_solution& given) {
  const double* values = given.values;
  const auto take = [&values](int64_t count) {
    const double* begin = values;
    values += count;
    return std::vector(begin, values);
  };
  ContactSolution solution;
  solution.velocity = take(fields.nv);
  solution.row_impulse = take(layout.rows);
  solution.impulse = take(3 * layout.contacts);
  solution.angular_impulse = take(3 * layout.turning);
  solution.islands.resize(static_cast<size_t>(given.islands));
  for (size_t i = 0; i < solution.islands.size(); ++i) {
    solution.islands[i].iterations = static_cast<int>(given.iterations[i]);
  }
  return solution;
}

EngineStatus Finish(const MujocoCalls& calls, const void* model, void* data,
                    const sap_mujoco_problem& problem, const sap_mujoco_solution& given) {
  const Fields fields = ReadFields(calls.fields, model, data);
  const ContactSolution solution = SolutionOf(problem.layout, fields, given);
  const bool as_sap = (problem.flags & SAP_MUJOCO_LAW_SAP) != 0;
  StoreSolution(fields, problem, solution);
  EngineStatus done = FinishForward(calls, model, data, fields, solution);
  if (done) done = CheckAcceleration(calls, model, data);
  if (done) done = Integrate(calls, model, data, fields, as_sap, solution.velocity.data());
  for (const int timer : {mjTIMER_STEP, mjTIMER_FORWARD, mjTIMER_CONSTRAINT}) {
    AddToTimer(fields.timer, timer, 0.0);
  }
  return done;
}

}  // namespace
}  // namespace sap::mujoco

int32_t sap_mujoco_compute(const sap_mujoco* solver, const void* model, void* data, int32_t stage,
                           int32_t flags, sap_mujoco_outcome* outcome) {
  using namespace sap::mujoco;
  return Report(outcome, [&] { return Compute(solver->calls, model, data, stage, flags); });
}

void sap_mujoco_measure(const sap_mujoco* solver, const void* model, const void* data,
                        sap_mujoco_problem* problem) {
  using namespace sap::mujoco;
  const Fields fields = ReadFields(solver->calls.fields, model, data);
  const Trees trees(fields);
  const bool as_sap = (problem->flags & SAP_MUJOCO_LAW_SAP) != 0;
  MeasureProblem(fields, trees, Couplings(fields, trees), FlagsOf(solver->calls, model, as_sap),
                 problem);
}

int32_t sap_mujoco_build(const sap_mujoco* solver, const void* model, const void* data,
                         const sap_mujoco_material* material, sap_mujoco_problem* problem,
                         sap_mujoco_outcome* outcome) {
  using namespace sap::mujoco;
  return Report(outcome, [&]() -> sap::EngineStatus {
    const Fields fields = ReadFields(solver->calls.fields, model, data);
    const Trees trees(fields);
    sap::EngineStatus multiplied =
        WriteConstraintVelocities(solver->calls, model, data, fields, *problem);
    if (!multiplied) return multiplied;
    WriteProblem(fields, trees, Couplings(fields, trees), *material, problem);
    ListArrays(ViewOf(fields, *problem), problem);
    return {};
  });
}

int32_t sap_mujoco_finish(const sap_mujoco* solver, const void* model, void* data,
                          const sap_mujoco_problem* problem, const sap_mujoco_solution* solution,
                          sap_mujoco_outcome* outcome) {
  using namespace sap::mujoco;
  return Report(outcome, [&] { return Finish(solver->calls, model, data, *problem, *solution); });
}

int32_t sap_mujoco_integrate(const sap_mujoco* solver, const void* model, void* data, int32_t flags,
                             const double* velocity, sap_mujoco_outcome* outcome) {
  using namespace sap::mujoco;
  return Report(outcome, [&] {
    const Fields fields = ReadFields(solver->calls.fields, model, data);
    const bool as_sap = (flags & SAP_MUJOCO_LAW_SAP) != 0;
    return Integrate(solver->calls, model, data, fields, as_sap, velocity);
  });
}

void sap_mujoco_compare(const sap_mujoco_field* table, const void* model, const void* data,
                        const sap_mujoco_velocities* velocities, double* tree_error,
                        sap_mujoco_comparison* comparison) {
  using namespace sap::mujoco;
  const Fields fields = ReadFields(table, model, data);
  *comparison = Compare(fields, Trees(fields), *velocities, tree_error);
}
