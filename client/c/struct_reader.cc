#include "client/c/struct_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "solver/problem/input_checker.h"

namespace sap::c {
namespace {

// No struct of a caller is larger; a larger size was never set.
constexpr size_t kLargestStruct = 1 << 16;

tl::unexpected<ProblemError> Refuse(std::string field, std::string reason) {
  return tl::unexpected(ProblemError{std::move(field), -1, std::move(reason)});
}

// Takes structs and arrays of one message, and remembers the first that is at fault.
class StructReader {
 public:
  explicit StructReader(std::string within = "") : within_(std::move(within)) {}

  // The struct as this library knows it; null: the empty one. `name` is "contacts.", or "" for the
  // message itself.
  template <typename Struct>
  Struct Take(const Struct* given, const char* name) {
    Struct taken{};
    if (given == nullptr) return taken;
    const size_t size = given->struct_size;
    if (size < sizeof(size_t) || size > kLargestStruct) {
      Fail(std::string(name) + "struct_size", "is " + std::to_string(size) +
                                                  "; it must be the size of the struct, " +
                                                  std::to_string(sizeof(Struct)));
      return taken;
    }
    std::memcpy(&taken, given, std::min(size, sizeof(Struct)));
    const auto* bytes = reinterpret_cast<const std::byte*>(given);
    const bool known = std::all_of(bytes + std::min(size, sizeof(Struct)), bytes + size,
                                   [](std::byte byte) { return byte == std::byte{0}; });
    if (!known) {
      Fail(std::string(name) + "struct_size",
           "is " + std::to_string(size) + "; this version knows the first " +
               std::to_string(sizeof(Struct)) + " bytes, and the others are not 0");
    }
    return taken;
  }

  template <typename Array>
  auto Span(const Array& array, std::string_view group, std::string_view name) {
    using Value = std::remove_pointer_t<decltype(array.data)>;
    if (array.length == 0) return std::span<Value>();
    if (array.length < 0 || array.data == nullptr) {
      Fail(std::string(group) + std::string(name), "has " + std::to_string(array.length) +
                                                       " values" +
                                                       (array.data == nullptr ? " at NULL" : ""));
      return std::span<Value>();
    }
    return std::span<Value>(array.data, static_cast<size_t>(array.length));
  }

  void Fail(std::string field, std::string reason) {
    if (!error_) error_ = ProblemError{within_ + field, -1, std::move(reason)};
  }

  template <typename Value>
  Read<Value> Result(Value value) {
    if (error_) return tl::unexpected(*std::move(error_));
    return value;
  }

 private:
  const std::string within_;
  std::optional<ProblemError> error_;
};

ContactProblemView::Trees ReadTrees(const sap_trees* given, StructReader* reader) {
  const sap_trees trees = reader->Take(given, "trees.");
  const auto span = [&](const auto& array, const char* name) {
    return reader->Span(array, "trees.", name);
  };
  return {.dofs = span(trees.dofs, "dofs"),
          .dynamics_matrix = span(trees.dynamics_matrix, "dynamics_matrix"),
          .free_motion_velocity = span(trees.free_motion_velocity, "free_motion_velocity"),
          .guess_velocity = span(trees.guess_velocity, "guess_velocity"),
          .tree_id = span(trees.tree_id, "tree_id"),
          .initial_velocity = span(trees.initial_velocity, "initial_velocity")};
}

ContactProblemView::RigidBodies ReadBodies(const sap_bodies* given, StructReader* reader) {
  const sap_bodies bodies = reader->Take(given, "bodies.");
  const auto span = [&](const auto& array, const char* name) {
    return reader->Span(array, "bodies.", name);
  };
  return {.mass = span(bodies.mass, "mass"),
          .inertia = span(bodies.inertia, "inertia"),
          .center_of_mass = span(bodies.center_of_mass, "center_of_mass"),
          .free_motion_velocity = span(bodies.free_motion_velocity, "free_motion_velocity"),
          .guess_velocity = span(bodies.guess_velocity, "guess_velocity"),
          .body_id = span(bodies.body_id, "body_id"),
          .initial_velocity = span(bodies.initial_velocity, "initial_velocity")};
}

ContactProblemView::Law ReadLaws(const sap_contact_laws* given, const char* group,
                                 StructReader* reader) {
  const sap_contact_laws laws = reader->Take(given, group);
  const sap_hunt_crossley hunt_crossley = reader->Take(laws.hunt_crossley, group);
  const auto span = [&](const auto& array, const char* name) {
    return reader->Span(array, group, name);
  };
  return {.signed_distance = span(laws.signed_distance, "signed_distance"),
          .stiffness = span(laws.stiffness, "stiffness"),
          .relaxation_time = span(laws.relaxation_time, "relaxation_time"),
          .friction = span(laws.friction, "friction"),
          .regularization_t = span(laws.regularization_t, "regularization_t"),
          .regularization_n = span(laws.regularization_n, "regularization_n"),
          .delassus_estimate = span(laws.delassus_estimate, "delassus_estimate"),
          .surface_velocity = span(laws.surface_velocity, "surface_velocity"),
          .friction_2 = span(laws.friction_2, "friction_2"),
          .torsional_friction = span(laws.torsional_friction, "torsional_friction"),
          .rolling_friction = span(laws.rolling_friction, "rolling_friction"),
          .target_velocity = span(laws.target_velocity, "target_velocity"),
          .target_angular_velocity = span(laws.target_angular_velocity, "target_angular_velocity"),
          .adhesion = span(laws.adhesion, "adhesion"),
          .law = span(laws.law, "law"),
          .hunt_crossley = {
              .elastic_force = span(hunt_crossley.elastic_force, "hunt_crossley.elastic_force"),
              .dissipation = span(hunt_crossley.dissipation, "hunt_crossley.dissipation"),
              .lagged_normal_impulse = span(hunt_crossley.lagged_normal_impulse,
                                            "hunt_crossley.lagged_normal_impulse")}};
}

ContactProblemView::Contacts ReadContacts(const sap_contacts* given, StructReader* reader) {
  const sap_contacts contacts = reader->Take(given, "contacts.");
  const auto span = [&](const auto& array, const char* name) {
    return reader->Span(array, "contacts.", name);
  };
  return {.tree_a = span(contacts.tree_a, "tree_a"),
          .tree_b = span(contacts.tree_b, "tree_b"),
          .jacobian = span(contacts.jacobian, "jacobian"),
          .angular_jacobian = span(contacts.angular_jacobian, "angular_jacobian"),
          .law = ReadLaws(contacts.laws, "contacts.", reader)};
}

ContactProblemView::BodyContacts ReadBodyContacts(const sap_body_contacts* given,
                                                  StructReader* reader) {
  const sap_body_contacts contacts = reader->Take(given, "body_contacts.");
  const auto span = [&](const auto& array, const char* name) {
    return reader->Span(array, "body_contacts.", name);
  };
  return {.body_a = span(contacts.body_a, "body_a"),
          .body_b = span(contacts.body_b, "body_b"),
          .point = span(contacts.point, "point"),
          .normal = span(contacts.normal, "normal"),
          .tangent = span(contacts.tangent, "tangent"),
          .law = ReadLaws(contacts.laws, "body_contacts.", reader)};
}

ContactProblemView::Rows ReadRows(const sap_rows* given, StructReader* reader) {
  const sap_rows rows = reader->Take(given, "rows.");
  const auto span = [&](const auto& array, const char* name) {
    return reader->Span(array, "rows.", name);
  };
  return {.entries = span(rows.entries, "entries"),
          .velocity_index = span(rows.velocity_index, "velocity_index"),
          .coefficient = span(rows.coefficient, "coefficient"),
          .position_error = span(rows.position_error, "position_error"),
          .velocity_offset = span(rows.velocity_offset, "velocity_offset"),
          .stiffness = span(rows.stiffness, "stiffness"),
          .relaxation_time = span(rows.relaxation_time, "relaxation_time"),
          .force_lower = span(rows.force_lower, "force_lower"),
          .force_upper = span(rows.force_upper, "force_upper"),
          .regularization = span(rows.regularization, "regularization"),
          .target_velocity = span(rows.target_velocity, "target_velocity"),
          .delassus_estimate = span(rows.delassus_estimate, "delassus_estimate"),
          .slip_parameter = span(rows.slip_parameter, "slip_parameter"),
          .force_offset = span(rows.force_offset, "force_offset")};
}

// All but the numbers of the regularization, which are returned.
sap_regularization ReadArrays(const sap_problem& problem, StructReader* reader,
                              ContactProblemView* view) {
  view->time_step = problem.time_step;
  view->trees = ReadTrees(problem.trees, reader);
  view->bodies = ReadBodies(problem.bodies, reader);
  view->contacts = ReadContacts(problem.contacts, reader);
  view->body_contacts = ReadBodyContacts(problem.body_contacts, reader);
  view->rows = ReadRows(problem.rows, reader);
  return reader->Take(problem.regularization, "regularization.");
}

Cotangent ReadCotangent(const sap_cotangent* given, StructReader* reader) {
  const sap_cotangent cotangent = reader->Take(given, "");
  const auto span = [&](const auto& array, const char* name) {
    return reader->Span(array, "", name);
  };
  return {.velocity = span(cotangent.velocity, "velocity"),
          .impulse = span(cotangent.impulse, "impulse"),
          .contact_velocity = span(cotangent.contact_velocity, "contact_velocity"),
          .row_impulse = span(cotangent.row_impulse, "row_impulse"),
          .row_velocity = span(cotangent.row_velocity, "row_velocity"),
          .angular_impulse = span(cotangent.angular_impulse, "angular_impulse"),
          .cost = cotangent.cost};
}

void SetIfGiven(const double* given, double* value) {
  if (given != nullptr) *value = *given;
}

Read<DelassusRule> ReadRule(int32_t rule) {
  switch (rule) {
    case 0:
    case SAP_REGULARIZATION_RULE_FULL:
      return DelassusRule::kFull;
    case SAP_REGULARIZATION_RULE_DIAGONAL:
      return DelassusRule::kDiagonal;
    case SAP_REGULARIZATION_RULE_LOAD_PATH:
      return DelassusRule::kLoadPath;
    default:
      return Refuse("regularization.rule",
                    "is " + std::to_string(rule) + "; this version knows 0, 1, 2 and 3");
  }
}

Read<NewtonMethod> ReadNewton(int32_t method) {
  switch (method) {
    case SAP_NEWTON_PLAIN:
      return NewtonMethod::kPlain;
    case 0:
    case SAP_NEWTON_ACCELERATED:
      return NewtonMethod::kAccelerated;
    case SAP_NEWTON_GAUSS_SEIDEL:
      return NewtonMethod::kGaussSeidel;
    default:
      return Refuse("options.newton",
                    "is " + std::to_string(method) + "; this version knows 0, 1, 2 and 3");
  }
}

// Pointers to the structs of a list, which is null or has null in it.
template <typename Struct>
Read<std::span<const Struct* const>> ReadList(const Struct* const* list, int64_t count,
                                              const char* field) {
  if (count == 0) return std::span<const Struct* const>();
  const auto valid = [](const Struct* entry) { return entry != nullptr; };
  if (count < 0 || list == nullptr || !std::all_of(list, list + count, valid)) {
    return Refuse(field, "has " + std::to_string(count) + " values, some of them at NULL");
  }
  return std::span<const Struct* const>(list, static_cast<size_t>(count));
}

}  // namespace

Read<GivenProblem> ReadProblem(const sap_problem* problem) {
  if (problem == nullptr) return Refuse("problem", "is missing; every request needs one");
  StructReader reader;
  GivenProblem given{};
  const sap_regularization numbers = ReadArrays(reader.Take(problem, ""), &reader, &given.view);
  ContactProblemView::Regularization& regularization = given.view.regularization;
  SetIfGiven(numbers.beta, &regularization.beta);
  SetIfGiven(numbers.sigma, &regularization.sigma);
  SetIfGiven(numbers.row_beta, &regularization.row_beta);
  SetIfGiven(numbers.stiction_speed, &regularization.stiction_speed);
  SetIfGiven(numbers.load_reference_speed, &regularization.load_reference_speed);
  given.regularization = {.beta = numbers.beta != nullptr,
                          .sigma = numbers.sigma != nullptr,
                          .row_beta = numbers.row_beta != nullptr,
                          .stiction_speed = numbers.stiction_speed != nullptr};
  const auto rule = ReadRule(numbers.rule);
  if (!rule) return tl::unexpected(rule.error());
  regularization.rule = *rule;
  return reader.Result(given);
}

Read<ContactProblemView> ReadDirection(const sap_problem* direction) {
  StructReader reader;
  ContactProblemView view;
  const sap_regularization numbers = ReadArrays(reader.Take(direction, ""), &reader, &view);
  view.regularization = {.beta = 0, .sigma = 0, .row_beta = 0, .stiction_speed = 0};
  SetIfGiven(numbers.beta, &view.regularization.beta);
  SetIfGiven(numbers.sigma, &view.regularization.sigma);
  SetIfGiven(numbers.row_beta, &view.regularization.row_beta);
  SetIfGiven(numbers.stiction_speed, &view.regularization.stiction_speed);
  return reader.Result(view);
}

// Capped at one year, which the clock can represent.
Read<std::chrono::nanoseconds> ReadTimeBudget(double time_budget_s, const char* field) {
  constexpr double kLongest_s = 366 * 86'400;
  if (!(time_budget_s > 0)) {
    return Refuse(field, "is " + ToText(time_budget_s) + " s; it must be positive");
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(time_budget_s, kLongest_s)));
}

Read<GivenOptions> ReadOptions(const sap_options* options, double default_tolerance) {
  StructReader reader;
  const auto taken = reader.Result(reader.Take(options, "options."));
  if (!taken) return tl::unexpected(taken.error());
  GivenOptions given;
  given.solver.relative_tolerance = default_tolerance;
  SetIfGiven(taken->relative_tolerance, &given.solver.relative_tolerance);
  SetIfGiven(taken->absolute_speed_tolerance, &given.solver.absolute_speed_tolerance);
  if (const auto checked = CheckTolerances(given.solver); !checked) {
    return tl::unexpected(checked.error());
  }
  if (taken->max_iterations != nullptr) {
    constexpr int kMost = std::numeric_limits<int>::max();
    if (*taken->max_iterations > kMost) {
      return Refuse("options.max_iterations", "is " + std::to_string(*taken->max_iterations) +
                                                  "; it must be at most " + std::to_string(kMost));
    }
    given.solver.max_iterations = static_cast<int>(*taken->max_iterations);
  }
  if (taken->time_budget_s != nullptr) {
    const auto budget = ReadTimeBudget(*taken->time_budget_s, "options.time_budget");
    if (!budget) return tl::unexpected(budget.error());
    given.time_budget = *budget;
  }
  const auto newton = ReadNewton(taken->newton);
  if (!newton) return tl::unexpected(newton.error());
  given.solver.newton = *newton;
  given.solver.islands = taken->one_island == 0;
  if (taken->max_memory_bytes > 0) given.solver.max_factor_bytes = taken->max_memory_bytes;
  return given;
}

Read<sap_differentiation> ReadRequest(const sap_differentiation* request) {
  StructReader reader;
  return reader.Result(reader.Take(request, ""));
}

Read<GivenDifferentiation> ReadDifferentiation(const sap_differentiation& request,
                                               const GivenProblem& problem) {
  const auto paths = ReadList(request.wanted, request.num_wanted, "wanted");
  if (!paths) return tl::unexpected(paths.error());
  const std::vector<std::string_view> names(paths->begin(), paths->end());
  const auto wanted = InputSelection::Make(names, problem.view, problem.regularization);
  if (!wanted) return tl::unexpected(wanted.error());
  const auto cotangents = ReadList(request.cotangents, request.num_cotangents, "cotangents");
  if (!cotangents) return tl::unexpected(cotangents.error());
  const auto tangents = ReadList(request.tangents, request.num_tangents, "tangents");
  if (!tangents) return tl::unexpected(tangents.error());
  StructReader reader;
  GivenDifferentiation given{.velocity = reader.Span(request.velocity, "", "velocity"),
                             .cotangents = {},
                             .directions = {},
                             .wanted = *wanted,
                             .hold_delassus = request.hold_delassus != 0};
  for (size_t i = 0; i < cotangents->size(); ++i) {
    StructReader of_one("cotangents[" + std::to_string(i) + "].");
    const auto cotangent = of_one.Result(ReadCotangent((*cotangents)[i], &of_one));
    if (!cotangent) return tl::unexpected(cotangent.error());
    given.cotangents.push_back(*cotangent);
  }
  for (size_t i = 0; i < tangents->size(); ++i) {
    auto direction = ReadDirection((*tangents)[i]);
    if (!direction) {
      direction.error().field.insert(0, "tangents[" + std::to_string(i) + "].");
      return tl::unexpected(direction.error());
    }
    given.directions.push_back(*direction);
  }
  return reader.Result(std::move(given));
}

}  // namespace sap::c
