#include "client/c/struct_reader.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "client/c/struct_checker.h"
#include "solver/problem/input_checker.h"
#include "solver/problem/solution_mask.h"

namespace sap::c {
namespace {

// A struct has its size, the arrays of its group and a pointer to each group within it, and nothing
// else: what is forgotten in problem_fields.inc or solution_fields.inc does not compile.
using View = ContactProblemView;
constexpr size_t kSize = sizeof(size_t), kPointer = sizeof(void*);
static_assert(sizeof(sap_doubles) == sizeof(std::span<const double>));
static_assert(sizeof(sap_trees) == kSize + sizeof(View::Trees));
static_assert(sizeof(sap_bodies) == kSize + sizeof(View::RigidBodies));
static_assert(sizeof(sap_hunt_crossley) == kSize + sizeof(View::HuntCrossley));
static_assert(sizeof(sap_contact_laws) ==
              kSize + sizeof(View::Law) - sizeof(View::HuntCrossley) + kPointer);
static_assert(sizeof(sap_contacts) ==
              kSize + sizeof(View::Contacts) - sizeof(View::Law) + kPointer);
static_assert(sizeof(sap_body_contacts) ==
              kSize + sizeof(View::BodyContacts) - sizeof(View::Law) + kPointer);
static_assert(sizeof(sap_rows) == kSize + sizeof(View::Rows));
static_assert(sizeof(sap_regularization) == kSize + sizeof(Regularization));
static_assert(sizeof(sap_cotangent) == kSize + sizeof(Cotangent));
constexpr const char* kReports[] = {
#define SAP_REPORT(type, name, ...) #name,
#include "solver/problem/solution_fields.inc"
};
static_assert(sizeof(sap_island_reports) ==
              kSize + (std::size(kReports) + 2) * sizeof(sap_doubles));

// The arrays of a group.
template <typename Struct, typename Group>
void ReadArrays(const Struct& given, std::string_view prefix, StructReader* reader, Group* group) {
  Group::ForEach([&](const auto& field, auto& span,
                     const auto& array) { span = reader->Span(given, array, prefix, field.name); },
                 *group, given);
}

void ReadLaws(const sap_contact_laws* given, const char* prefix, const char* inner_prefix,
              StructReader* reader, View::Law* law) {
  const sap_contact_laws laws = reader->Take(given, prefix);
  const sap_hunt_crossley hunt_crossley = reader->Take(laws.hunt_crossley, prefix);
  ReadArrays(laws, prefix, reader, law);
  ReadArrays(hunt_crossley, inner_prefix, reader, &law->hunt_crossley);
}

// All but the numbers of the regularization, which are returned.
sap_regularization ReadGroups(const sap_problem& problem, StructReader* reader, View* view) {
  view->time_step = problem.time_step;
  ReadArrays(reader->Take(problem.trees, "trees."), "trees.", reader, &view->trees);
  ReadArrays(reader->Take(problem.bodies, "bodies."), "bodies.", reader, &view->bodies);
  const sap_contacts contacts = reader->Take(problem.contacts, "contacts.");
  ReadArrays(contacts, "contacts.", reader, &view->contacts);
  ReadLaws(contacts.laws, "contacts.", "contacts.hunt_crossley.", reader, &view->contacts.law);
  const sap_body_contacts body_contacts = reader->Take(problem.body_contacts, "body_contacts.");
  ReadArrays(body_contacts, "body_contacts.", reader, &view->body_contacts);
  ReadLaws(body_contacts.laws, "body_contacts.", "body_contacts.hunt_crossley.", reader,
           &view->body_contacts.law);
  ReadArrays(reader->Take(problem.rows, "rows."), "rows.", reader, &view->rows);
  return reader->Take(problem.regularization, "regularization.");
}

Cotangent ReadCotangent(const sap_cotangent* given, StructReader* reader) {
  const sap_cotangent taken = reader->Take(given, "");
  Cotangent cotangent;
  Cotangent::ForEach([&](const char* name, int, OutputPer, auto& span,
                         const auto& array) { span = reader->Span(taken, array, "", name); },
                     cotangent, taken);
  cotangent.cost = taken.cost;
  return cotangent;
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

Read<InteriorPoint> ReadInteriorPoint(int32_t choice) {
  switch (choice) {
    case 0:
    case SAP_INTERIOR_POINT_AUTO:
      return InteriorPoint::kAuto;
    case SAP_INTERIOR_POINT_NEVER:
      return InteriorPoint::kNever;
    case SAP_INTERIOR_POINT_ALWAYS:
      return InteriorPoint::kAlways;
    default:
      return Refuse("options.interior_point",
                    "is " + std::to_string(choice) + "; this version knows 0, 1, 2 and 3");
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
  const sap_regularization numbers = ReadGroups(reader.Take(problem, ""), &reader, &given.view);
  Regularization& regularization = given.view.regularization;
  Regularization::ForEach(
      [](const char*, bool, const double* number, double& value, bool& is_given) {
        SetIfGiven(number, &value);
        is_given = number != nullptr;
      },
      numbers, regularization, given.regularization);
  const auto rule = ReadRule(numbers.rule);
  if (!rule) return tl::unexpected(rule.error());
  regularization.rule = *rule;
  if (numbers.reference_time_step != nullptr) {
    const auto checked = CheckReferenceTimeStep(*numbers.reference_time_step);
    if (!checked) return tl::unexpected(checked.error());
  }
  return reader.Result(given);
}

Read<ContactProblemView> ReadDirection(const sap_problem* direction) {
  StructReader reader;
  ContactProblemView view;
  const sap_regularization numbers = ReadGroups(reader.Take(direction, ""), &reader, &view);
  Regularization::ForEach(
      [](const char*, bool is_input, const double* number, double& value) {
        if (is_input) value = number == nullptr ? 0 : *number;
      },
      numbers, view.regularization);
  return reader.Result(view);
}

// At most one year, which the clock can represent, and at least the nanosecond of messages.
Read<std::chrono::nanoseconds> ReadTimeBudget(double time_budget_s, const char* field) {
  constexpr double kLongest_s = 366 * 86'400;
  if (!(time_budget_s > 0)) {
    return Refuse(field, "is " + ToText(time_budget_s) + " s; it must be positive");
  }
  const auto budget = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(time_budget_s, kLongest_s)));
  return std::max(budget, std::chrono::nanoseconds(1));
}

Read<Wait> ReadTime(const double* seconds, const char* field) {
  if (seconds == nullptr) return std::nullopt;
  if (!(*seconds >= 0)) return Refuse(field, "is " + ToText(*seconds) + " s; it must be >= 0");
  if (*seconds == 0) return std::chrono::nanoseconds(0);
  return ReadTimeBudget(*seconds, field);
}

Read<sap_options> TakeOptions(const sap_options* options) {
  StructReader reader;
  const sap_options taken = reader.Take(options, "options.");
  const auto names =
      ReadList(taken.response_mask, taken.num_response_mask, "options.response_mask");
  if (!names) return tl::unexpected(names.error());
  return reader.Result(taken);
}

Read<sap_coulomb_friction> TakeCoulomb(const sap_coulomb_friction* coulomb) {
  StructReader reader;
  return reader.Result(reader.Take(coulomb, "options.coulomb."));
}

Read<sap_rest> TakeRest(const sap_rest* rest) {
  StructReader reader;
  return reader.Result(reader.Take(rest, "options.rest."));
}

Read<client::SolveOptions> ReadOptions(const sap_options* options, double default_tolerance) {
  const auto taken = TakeOptions(options);
  if (!taken) return tl::unexpected(taken.error());
  client::SolveOptions given;
  given.solver.relative_tolerance = default_tolerance;
  SetIfGiven(taken->relative_tolerance, &given.solver.relative_tolerance);
  SetIfGiven(taken->absolute_speed_tolerance, &given.solver.absolute_speed_tolerance);
  if (taken->coulomb != nullptr) {
    const auto coulomb = TakeCoulomb(taken->coulomb);
    if (!coulomb) return tl::unexpected(coulomb.error());
    CoulombFriction& friction = given.solver.coulomb.emplace();
    if (coulomb->max_rounds != nullptr) friction.max_rounds = *coulomb->max_rounds;
    if (coulomb->tolerance != nullptr) friction.tolerance = *coulomb->tolerance;
  }
  if (taken->rest != nullptr) {
    const auto rest = TakeRest(taken->rest);
    if (!rest) return tl::unexpected(rest.error());
    SetIfGiven(rest->horizon, &given.solver.rest.emplace().horizon);
  }
  if (const auto checked = CheckOptions(given.solver); !checked) {
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
  const auto interior_point = ReadInteriorPoint(taken->interior_point);
  if (!interior_point) return tl::unexpected(interior_point.error());
  given.solver.interior_point = *interior_point;
  given.solver.islands = taken->one_island == 0;
  if (taken->max_memory_bytes > 0) given.solver.max_factor_bytes = taken->max_memory_bytes;
  const auto names =
      ReadList(taken->response_mask, taken->num_response_mask, "options.response_mask");
  if (!names) return tl::unexpected(names.error());
  given.response_mask.assign(names->begin(), names->end());
  const std::vector<std::string_view> mask_names(names->begin(), names->end());
  if (const auto mask = ReadMask(mask_names); !mask) return tl::unexpected(mask.error());
  if (taken->priority < 0 || taken->priority > SAP_PRIORITY_HIGH) {
    return Refuse("options.priority",
                  "is " + std::to_string(taken->priority) + "; this version knows 0, 1 and 2");
  }
  if (taken->priority == SAP_PRIORITY_HIGH) given.priority = client::Priority::kHigh;
  return given;
}

tl::expected<CallSettings, Error> ReadCall(const sap_call* call) {
  StructReader reader;
  const auto taken = reader.Result(reader.Take(call, "call."));
  if (!taken) return Fail(taken.error());
  CallSettings settings;
  if (taken->deadline_s != nullptr) {
    const double seconds = *taken->deadline_s;
    if (seconds <= 0) return Fail(SAP_DEADLINE_EXCEEDED, "the deadline of the call has passed");
    const auto deadline = ReadTimeBudget(seconds, "call.deadline");
    if (!deadline) return Fail(deadline.error());
    settings.until = Clock::now() + *deadline;
  }
  if (taken->stop != nullptr) settings.options.cancelled = &taken->stop->requested;
  if (taken->servers < SAP_SERVERS_OF_ADDRESS) {
    return Fail(SAP_INVALID_ARGUMENT,
                "call.servers is " + std::to_string(taken->servers) + "; it must be >= -1",
                "call.servers");
  }
  if (taken->servers != 0) {
    settings.servers =
        taken->servers == SAP_SERVERS_OF_ADDRESS ? client::kServersOfAddress : taken->servers;
  }
  settings.done = taken->done;
  settings.context = taken->context;
  if (taken->request_id != nullptr) settings.options.request_id = taken->request_id;
  if (taken->traceparent != nullptr) settings.options.traceparent = taken->traceparent;
  settings.kind = taken->kind;
  const auto reconnect_within = ReadTime(taken->reconnect_within_s, "call.reconnect_within");
  if (!reconnect_within) return Fail(reconnect_within.error());
  settings.session = {.reconnect_within = *reconnect_within,
                      .background = taken->background != 0,
                      .opens_later = taken->opens_later != 0};
  if (taken->low_latency != nullptr) settings.session.low_latency = *taken->low_latency != 0;
  return settings;
}

Read<client::ConnectOptions> ReadConnectOptions(const sap_connect_options* options) {
  constexpr int32_t kMostThreads = 1024;
  StructReader reader;
  const sap_connect_options taken = reader.Take(options, "connect_options.");
  if (taken.threads < 0 || taken.threads > kMostThreads) {
    reader.Fail("threads", "is " + std::to_string(taken.threads) + "; it must be in [0, 1024]");
  }
  const auto connect_timeout = ReadTime(taken.connect_timeout_s, "connect_timeout");
  if (!connect_timeout) return tl::unexpected(connect_timeout.error());
  const auto reconnect_within = ReadTime(taken.reconnect_within_s, "reconnect_within");
  if (!reconnect_within) return tl::unexpected(reconnect_within.error());
  // The text, or the path of a file with it.
  const auto text_or = [](const char* text, const char* file) {
    return std::string(text != nullptr ? text : file != nullptr ? file : "");
  };
  client::ConnectOptions given;
  if (*connect_timeout) given.connect_timeout = **connect_timeout;
  if (*reconnect_within) given.reconnect_within = **reconnect_within;
  given.threads = taken.threads;
  given.low_latency = taken.low_latency != 0;
  given.allow_mixed_servers = taken.allow_mixed_servers != 0;
  given.in_order = taken.in_order != 0;
  if (taken.scene_connections != 0) given.scene_connections = taken.scene_connections;
  given.credentials = {.tls = taken.tls != 0,
                       .server_ca = text_or(taken.server_ca, taken.server_ca_file),
                       .certificate = text_or(taken.certificate, taken.certificate_file),
                       .key = text_or(taken.key, taken.key_file),
                       .server_name = text_or(taken.server_name, nullptr),
                       .token = text_or(taken.token, nullptr),
                       .token_file = text_or(taken.token_file, nullptr)};
  return reader.Result(std::move(given));
}

Read<GivenSolution> ReadSolution(const sap_solution* solution) {
  if (solution == nullptr) return Refuse("solution", "is missing");
  StructReader reader;
  GivenSolution given{.solution = reader.Take(solution, "solution."), .islands = {}};
  given.islands = reader.Take(given.solution.islands, "islands.");
  Tangent::ForEach([&](const char* name, int, OutputPer,
                       const auto& array) { reader.Span(given.solution, array, "", name); },
                   given.solution);
  reader.Span(given.solution, given.solution.delassus_estimate, "", "delassus_estimate");
  reader.Span(given.solution, given.solution.island_of_tree, "", "island_of_tree");
  const sap_island_reports& islands = given.islands;
#define SAP_REPORT(type, name, ...) reader.Span(islands, islands.name, "islands", "");
#include "solver/problem/solution_fields.inc"
  reader.Span(islands, islands.swept, "islands", "");
  reader.Span(islands, islands.status, "islands", "");
  return reader.Result(given);
}

Read<sap_record> ReadRecord(const sap_record* record) {
  if (record == nullptr) return Refuse("record", "is missing");
  StructReader reader;
  return reader.Result(reader.Take(record, "record."));
}

Read<sap_rest_rules> ReadRestRules(const sap_rest_rules* rules) {
  if (rules == nullptr) return Refuse("rules", "is missing");
  StructReader reader;
  return reader.Result(reader.Take(rules, "rules."));
}

Read<sap_error> ReadError(const sap_error* error) {
  StructReader reader;
  return reader.Result(reader.Take(error, "error."));
}

Status CheckBatch(int64_t count, const void* const* inputs, const char* field,
                  sap_answer* const* answers) {
  const auto refuse = [count](const std::string& name, const std::string& what) {
    return Fail(Refuse(name, "has " + std::to_string(count) + " values" + what).value());
  };
  if (count < 0 || count > std::numeric_limits<int>::max()) return refuse(field, "");
  if (count == 0) return {};
  if (inputs == nullptr) return refuse(field, " at NULL");
  std::vector<const sap_answer*> sorted(answers, answers + count);
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return refuse("answers", ", some of them the same");
  }
  return {};
}

Read<GivenDifferentiation> ReadDifferentiation(const sap_differentiation* given) {
  StructReader reader;
  const auto taken = reader.Result(reader.Take(given, ""));
  if (!taken) return tl::unexpected(taken.error());
  const sap_differentiation& request = *taken;
  GivenDifferentiation asked;
  client::DifferentiateView& view = asked.view;
  auto options = ReadOptions(request.options, kDerivativeTolerance);
  if (!options) return tl::unexpected(options.error());
  view.solve = *std::move(options);
  const auto problem = ReadProblem(request.problem);
  if (!problem) return tl::unexpected(problem.error());
  view.problem = problem->view;
  view.given = problem->regularization;
  const auto paths = ReadList(request.wanted, request.num_wanted, "wanted");
  if (!paths) return tl::unexpected(paths.error());
  view.wanted.assign(paths->begin(), paths->end());
  const std::vector<std::string_view> names(paths->begin(), paths->end());
  auto wanted = InputSelection::Make(names, view.problem, view.given);
  if (!wanted) return tl::unexpected(wanted.error());
  asked.wanted = *std::move(wanted);
  const auto cotangents = ReadList(request.cotangents, request.num_cotangents, "cotangents");
  if (!cotangents) return tl::unexpected(cotangents.error());
  const auto tangents = ReadList(request.tangents, request.num_tangents, "tangents");
  if (!tangents) return tl::unexpected(tangents.error());
  view.derivatives.velocity = reader.Span(request, request.velocity, "", "velocity");
  view.derivatives.hold_delassus = request.hold_delassus != 0;
  for (size_t i = 0; i < cotangents->size(); ++i) {
    StructReader of_one("cotangents[" + std::to_string(i) + "].");
    const auto cotangent = of_one.Result(ReadCotangent((*cotangents)[i], &of_one));
    if (!cotangent) return tl::unexpected(cotangent.error());
    view.derivatives.cotangents.push_back(*cotangent);
  }
  for (size_t i = 0; i < tangents->size(); ++i) {
    auto direction = ReadDirection((*tangents)[i]);
    if (!direction) {
      direction.error().field.insert(0, "tangents[" + std::to_string(i) + "].");
      return tl::unexpected(direction.error());
    }
    view.derivatives.directions.push_back(*direction);
  }
  return reader.Result(std::move(asked));
}

}  // namespace sap::c
