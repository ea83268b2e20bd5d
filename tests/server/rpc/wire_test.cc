// Every rule that problem.proto states on its fields, broken in every way: the answer is an error
// that names field and index, or a correct solution, and the next good request is answered as ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/grpc_server.h"
#include "tests/support/blocking_handler.h"
#include "tests/support/message_fields.h"
#include "tests/support/mixed_constraints.h"
#include "tests/support/scenes.h"

namespace sap {
namespace {

using google::protobuf::FieldDescriptor;
using test::Array;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDenormal = std::numeric_limits<double>::denorm_min();

// Values that the schema allows in an array.
enum class Range {
  kFinite,
  kPositive,
  kNonNegative,
  kPositiveOrInfinite,
  kFiniteOrMinusInfinity,
  kFiniteOrInfinity,
  kStructured,  // a matrix or a unit vector: one changed entry may or may not break it
};

bool Allows(Range range, double value) {
  if (std::isnan(value)) return false;
  switch (range) {
    case Range::kPositive:
      return value > 0 && value < kInfinity;
    case Range::kNonNegative:
      return value >= 0 && value < kInfinity;
    case Range::kPositiveOrInfinite:
      return value > 0;
    case Range::kFiniteOrMinusInfinity:
      return value < kInfinity;
    case Range::kFiniteOrInfinity:
      return value > -kInfinity;
    default:
      return std::isfinite(value);
  }
}

struct ArrayRule {
  std::string path;
  Range range;
  bool optional = false;  // may be empty
  bool counts = false;    // its length says how many trees, bodies or contacts there are

  std::string Group() const { return path.substr(0, path.find('.')); }
};

std::vector<ArrayRule> DoubleRules() {
  std::vector<ArrayRule> rules = {{"trees.dynamics_matrix", Range::kStructured},
                                  {"trees.free_motion_velocity", Range::kFinite},
                                  {"trees.guess_velocity", Range::kFinite, /*optional=*/true},
                                  {"trees.initial_velocity", Range::kFinite, /*optional=*/true},
                                  {"trees.coupling_block", Range::kStructured},
                                  {"bodies.mass", Range::kPositive, false, /*counts=*/true},
                                  {"bodies.inertia", Range::kStructured},
                                  {"bodies.center_of_mass", Range::kFinite},
                                  {"bodies.free_motion_velocity", Range::kFinite},
                                  {"bodies.guess_velocity", Range::kFinite, /*optional=*/true},
                                  {"bodies.initial_velocity", Range::kFinite, /*optional=*/true},
                                  {"contacts.jacobian", Range::kFinite},
                                  {"contacts.angular_jacobian", Range::kFinite},
                                  {"body_contacts.point", Range::kFinite},
                                  {"body_contacts.normal", Range::kStructured},
                                  {"body_contacts.tangent", Range::kStructured, true},
                                  {"rows.coefficient", Range::kFinite},
                                  {"rows.position_error", Range::kFinite, true},
                                  {"rows.velocity_offset", Range::kFinite, true},
                                  {"rows.stiffness", Range::kPositiveOrInfinite, true},
                                  {"rows.relaxation_time", Range::kNonNegative, true},
                                  {"rows.force_lower", Range::kFiniteOrMinusInfinity, true},
                                  {"rows.force_upper", Range::kFiniteOrInfinity, true},
                                  {"rows.regularization", Range::kNonNegative, true},
                                  {"rows.target_velocity", Range::kFinite, true},
                                  {"rows.delassus_estimate", Range::kNonNegative, true},
                                  {"rows.slip_parameter", Range::kNonNegative, true},
                                  {"rows.force_offset", Range::kFinite, true},
                                  {"rows.guess_impulse", Range::kFinite, true}};
  for (const std::string group : {"contacts.", "body_contacts."}) {
    rules.push_back({group + "signed_distance", Range::kFinite});
    rules.push_back({group + "stiffness", Range::kPositive});
    rules.push_back({group + "relaxation_time", Range::kNonNegative});
    rules.push_back({group + "friction", Range::kNonNegative});
    for (const char* array : {"regularization_t", "regularization_n", "delassus_estimate"}) {
      rules.push_back({group + array, Range::kPositive, /*optional=*/true});
    }
    for (const char* array : {"surface_velocity", "target_velocity", "target_angular_velocity",
                              "guess_impulse", "guess_angular_impulse"}) {
      rules.push_back({group + array, Range::kFinite, /*optional=*/true});
    }
    for (const char* array : {"friction_2", "torsional_friction", "rolling_friction", "adhesion"}) {
      rules.push_back({group + array, Range::kNonNegative, /*optional=*/true});
    }
    rules.push_back({group + "hunt_crossley.elastic_force", Range::kFinite});
    rules.push_back({group + "hunt_crossley.dissipation", Range::kNonNegative});
    rules.push_back({group + "hunt_crossley.lagged_normal_impulse", Range::kNonNegative});
  }
  return rules;
}

// The handler that answers, and the same answer through a real server on a socket.
class WireTest : public testing::Test {
 protected:
  static ServerConfig Config() {
    ServerConfig config;
    config.listen = "127.0.0.1:0";
    config.threads = config.io_threads = 2;
    return config;
  }

  static v1::SolveRequest Good() {
    v1::SolveRequest request;
    *request.mutable_problem() = test::MixedProblem();
    return request;
  }

  // With the array filled by allowed values, so that one of them can be spoilt.
  static v1::SolveRequest GoodWith(const ArrayRule& rule) {
    v1::SolveRequest request = Good();
    v1::ContactProblem* problem = request.mutable_problem();
    const auto has = [&](const char* name) { return rule.path.find(name) != std::string::npos; };
    if (rule.Group() == "rows") test::AddRows(problem);
    if (has("hunt_crossley")) test::MakeHuntCrossley(rule.Group(), problem);
    if (IsOfAngularFriction(rule)) test::AddAngularFriction(rule.Group(), problem);
    if (rule.path == "body_contacts.tangent") test::AddTangents(problem);
    if (rule.path == "trees.coupling_block") test::AddCoupling(problem);
    Array<double> array(rule.path, problem);
    if (array.size() > 0) return request;
    if (rule.Group() == "rows") {
      array.Resize(problem->rows().entries_size(), 0.01);
    } else if (has("initial_velocity")) {
      array.Resize(Array<double>(rule.Group() + ".free_motion_velocity", problem).size(), 0.01);
    } else {
      const int contacts = Array<double>(rule.Group() + ".friction", problem).size();
      array.Resize((has("target_velocity") || has("guess") ? 3 : 1) * contacts, 0.01);
    }
    return request;
  }

  static bool IsOfAngularFriction(const ArrayRule& rule) {
    const auto has = [&](const char* name) { return rule.path.find(name) != std::string::npos; };
    return has("torsional") || has("rolling") || has("angular");
  }

  // Everything of the answer that is a function of the request.
  static std::string Bits(const v1::SolveResponse& response) {
    v1::ContactSolution solution = response.solution();
    solution.clear_timings();
    solution.mutable_islands()->clear_solve_time_s();
    return solution.SerializeAsString();
  }

  std::string GoodBits() {
    v1::SolveResponse response;
    const ServiceStatus status = handler_.Solve(Good(), CallContext(), &response);
    EXPECT_TRUE(status.has_value()) << status.error().message;
    return Bits(response);
  }

  ServiceStatus Answer(const v1::SolveRequest& request, v1::SolveResponse* response) {
    const ServiceStatus status = handler_.Solve(request, CallContext(), response);
    EXPECT_EQ(GoodBits(), good_bits_) << "after a request that was spoilt";
    return status;
  }

  void ExpectRefused(const v1::SolveRequest& request, const std::string& field) {
    v1::SolveResponse response;
    const ServiceStatus status = Answer(request, &response);
    ASSERT_FALSE(status.has_value()) << field;
    EXPECT_EQ(status.error().code, ServiceCode::kInvalidArgument);
    EXPECT_EQ(status.error().field, field) << status.error().message;
    EXPECT_EQ(status.error().message.find(field + " "), 0u) << status.error().message;
  }

  // Some field of the group is named.
  void ExpectGroupRefused(const v1::SolveRequest& request, const std::string& group) {
    v1::SolveResponse response;
    const ServiceStatus status = Answer(request, &response);
    ASSERT_FALSE(status.has_value()) << group;
    EXPECT_EQ(status.error().code, ServiceCode::kInvalidArgument);
    EXPECT_EQ(status.error().field.find(group), 0u) << status.error().message;
  }

  // A solution of the right shape, with a finite best iterate whatever the numbers did.
  void ExpectAnswered(const v1::SolveRequest& request, const std::string& what) {
    v1::SolveResponse response;
    const ServiceStatus status = Answer(request, &response);
    ASSERT_TRUE(status.has_value()) << what << ": " << status.error().message;
    const v1::ContactSolution& solution = response.solution();
    EXPECT_EQ(solution.velocity_size(), 2 + 3 + 6 + 6) << what;
    EXPECT_EQ(solution.impulse_size(), 3 * 5) << what;
    for (const double v : solution.velocity()) EXPECT_TRUE(std::isfinite(v)) << what;
    for (const int island : solution.islands().status()) {
      EXPECT_THAT(
          island,
          testing::AnyOf(v1::ISLAND_STATUS_CONVERGED, v1::ISLAND_STATUS_STALLED_AT_ROUNDOFF,
                         v1::ISLAND_STATUS_ITERATION_LIMIT, v1::ISLAND_STATUS_NUMERICAL_FAILURE))
          << what;
    }
  }

  test::BlockingHandler handler_{Config()};
  const std::string good_bits_ = GoodBits();
};

TEST_F(WireTest, TheGoodProblemConvergesInBothForms) {
  v1::SolveResponse response;
  ASSERT_TRUE(handler_.Solve(Good(), CallContext(), &response).has_value());
  EXPECT_GE(response.solution().islands().status_size(), 1);
  for (const int status : response.solution().islands().status()) {
    EXPECT_EQ(status, v1::ISLAND_STATUS_CONVERGED);
  }
}

TEST_F(WireTest, TheTableHoldsEveryArrayOfTheSchema) {
  std::vector<std::string> paths;
  for (const ArrayRule& rule : DoubleRules()) paths.push_back(rule.path);
  EXPECT_THAT(paths, testing::UnorderedElementsAreArray(test::ArrayPaths(
                         *v1::ContactProblem::descriptor(), FieldDescriptor::CPPTYPE_DOUBLE)));
}

TEST_F(WireTest, NaNIsRefusedEverywhereAndInfinityWhereTheSchemaDoesNotNameIt) {
  for (const ArrayRule& rule : DoubleRules()) {
    for (const double value : {kNaN, kInfinity, -kInfinity}) {
      v1::SolveRequest request = GoodWith(rule);
      Array<double> array(rule.path, request.mutable_problem());
      const int last = array.size() - 1;
      array.Set(last, value);
      const std::string entry = rule.path + "[" + std::to_string(last) + "]";
      if (Allows(rule.range, value)) {
        ExpectAnswered(request, entry + " = " + std::to_string(value));
      } else {
        ExpectRefused(request, entry);
      }
    }
  }
}

TEST_F(WireTest, FiniteValuesAreRefusedExactlyWhereTheSchemaSaysSo) {
  for (const ArrayRule& rule : DoubleRules()) {
    for (const double value : {-1.0, -kDenormal, -1e308, -0.0, 0.0, kDenormal, 1e308}) {
      v1::SolveRequest request = GoodWith(rule);
      Array<double>(rule.path, request.mutable_problem()).Set(1, value);
      const std::string what = rule.path + "[1] = " + std::to_string(value);
      if (!Allows(rule.range, value)) {
        ExpectRefused(request, rule.path + "[1]");
      } else if (rule.range != Range::kStructured) {
        ExpectAnswered(request, what);
      } else {
        v1::SolveResponse response;
        const ServiceStatus status = Answer(request, &response);
        if (!status) {
          EXPECT_EQ(status.error().field.find(rule.path), 0u) << status.error().message;
        }
      }
    }
  }
}

TEST_F(WireTest, WrongLengthsAreRefused) {
  for (const ArrayRule& rule : DoubleRules()) {
    const std::string group = rule.Group() + ".";
    for (const int change : {-1, +1, +3}) {
      v1::SolveRequest request = GoodWith(rule);
      Array<double> array(rule.path, request.mutable_problem());
      array.Resize(array.size() + change, 1.0);
      if (rule.counts) {
        ExpectGroupRefused(request, group);
      } else {
        ExpectRefused(request, rule.path);
      }
    }
    v1::SolveRequest request = GoodWith(rule);
    Array<double>(rule.path, request.mutable_problem()).Clear();
    if (rule.optional) {
      ExpectAnswered(request, "without " + rule.path);
    } else if (rule.counts) {
      ExpectGroupRefused(request, group);
    } else {
      ExpectRefused(request, rule.path);
    }
  }
}

TEST_F(WireTest, WrongLengthsOfIndexArraysAreRefused) {
  for (const std::string path :
       {"contacts.tree_a", "contacts.tree_b", "body_contacts.body_a", "body_contacts.body_b"}) {
    for (const int change : {-1, +1}) {
      v1::SolveRequest request = Good();
      Array<int32_t> array(path, request.mutable_problem());
      array.Resize(array.size() + change, 0);
      ExpectGroupRefused(request, path.substr(0, path.find('.') + 1));
    }
  }
  for (const std::string path : {"trees.dofs", "trees.tree_id", "bodies.body_id"}) {
    for (const int change : {-1, +1}) {
      v1::SolveRequest request = Good();
      Array<uint32_t> array(path, request.mutable_problem());
      array.Resize(array.size() + change, 99);
      ExpectGroupRefused(request, path.substr(0, path.find('.') + 1));
    }
  }
  for (const std::string path : {"rows.entries", "rows.velocity_index"}) {
    for (const int change : {-1, +1}) {
      v1::SolveRequest request = Good();
      test::AddRows(request.mutable_problem());
      Array<uint32_t> array(path, request.mutable_problem());
      array.Resize(array.size() + change, 1);
      ExpectRefused(request, "rows.velocity_index");
    }
  }
  for (const std::string path : {"contacts.law", "body_contacts.law"}) {
    for (const int size : {1, 9}) {
      v1::SolveRequest request = Good();
      Array<int32_t>(path, request.mutable_problem()).Resize(size, 1);
      ExpectRefused(request, path);
    }
  }
}

TEST_F(WireTest, LawsThatThisVersionDoesNotKnowAreRefused) {
  for (const int law : {-1, 4, std::numeric_limits<int32_t>::max()}) {
    v1::SolveRequest request = Good();
    Array<int32_t> array("body_contacts.law", request.mutable_problem());
    array.Resize(2, 1);
    array.Set(1, law);
    ExpectRefused(request, "body_contacts.law[1]");
  }
}

TEST_F(WireTest, IndicesOfRowsOutOfRangeOrOrderAreRefused) {
  for (const uint32_t index : {17u, 0x80000000u, 0xFFFFFFFFu, 0u}) {
    v1::SolveRequest request = Good();
    test::AddRows(request.mutable_problem());
    request.mutable_problem()->mutable_rows()->set_velocity_index(1, index);
    ExpectRefused(request, "rows.velocity_index[1]");
  }
  v1::SolveRequest request = Good();
  test::AddRows(request.mutable_problem());
  request.mutable_problem()->mutable_rows()->set_entries(1, 0);
  ExpectRefused(request, "rows.entries[1]");
}

TEST_F(WireTest, RowsWithoutRegularizationAreRefused) {
  v1::SolveRequest request = Good();
  test::AddRows(request.mutable_problem());
  request.mutable_problem()->mutable_regularization()->set_row_beta(0);
  ExpectRefused(request, "rows.stiffness[0]");

  request = Good();
  test::AddRows(request.mutable_problem());
  for (double& J : *request.mutable_problem()->mutable_rows()->mutable_coefficient()) J = 0;
  ExpectRefused(request, "rows.coefficient[0]");
}

TEST_F(WireTest, BoundsOfRowsOutOfOrderAreRefused) {
  v1::SolveRequest request = Good();
  test::AddRows(request.mutable_problem());
  Array<double>("rows.force_lower", request.mutable_problem()).Resize(3, 2.0);
  Array<double> upper("rows.force_upper", request.mutable_problem());
  upper.Resize(3, 2.0);
  upper.Set(2, 1.0);
  ExpectRefused(request, "rows.force_upper[2]");
}

TEST_F(WireTest, PartnersOutOfRangeAreRefused) {
  constexpr int kLowest = std::numeric_limits<int32_t>::min();
  constexpr int kHighest = std::numeric_limits<int32_t>::max();
  const std::vector<std::pair<std::string, std::vector<int>>> cases = {
      {"contacts.tree_a", {4, -1, kLowest, kHighest}},
      {"contacts.tree_b", {4, -2, kLowest, kHighest}},
      {"body_contacts.body_a", {2, -1, kLowest, kHighest}},
      {"body_contacts.body_b", {2, -2, kLowest, kHighest}}};
  for (const auto& [path, values] : cases) {
    for (const int value : values) {
      v1::SolveRequest request = Good();
      Array<int32_t>(path, request.mutable_problem()).Set(1, value);
      ExpectRefused(request, path + "[1]");
    }
  }
}

TEST_F(WireTest, AContactWithItselfIsRefused) {
  v1::SolveRequest request = Good();
  auto* contacts = request.mutable_problem()->mutable_contacts();
  contacts->set_tree_b(2, contacts->tree_a(2));
  ExpectRefused(request, "contacts.tree_b[2]");

  request = Good();
  auto* body_contacts = request.mutable_problem()->mutable_body_contacts();
  body_contacts->set_body_b(0, body_contacts->body_a(0));
  ExpectRefused(request, "body_contacts.body_b[0]");
}

TEST_F(WireTest, DofsOutsideTheLimitsAreRefused) {
  for (const uint32_t dofs : {0u, 1025u, 0x80000000u, 0xFFFFFFFFu}) {
    v1::SolveRequest request = Good();
    request.mutable_problem()->mutable_trees()->set_dofs(1, dofs);
    ExpectRefused(request, "trees.dofs[1]");
  }
}

TEST_F(WireTest, MatricesThatAreNotSymmetricPositiveDefiniteAreRefused) {
  v1::SolveRequest request = Good();
  request.mutable_problem()->mutable_trees()->set_dynamics_matrix(2, 0.3 + 1e-9);
  ExpectRefused(request, "trees.dynamics_matrix[2]");

  request = Good();
  request.mutable_problem()->mutable_trees()->set_dynamics_matrix(0, -2.0);
  ExpectRefused(request, "trees.dynamics_matrix[0]");

  request = Good();
  request.mutable_problem()->mutable_bodies()->set_inertia(6, -1.0);
  ExpectRefused(request, "bodies.inertia[6]");
}

// A difference within rounding is no reason to refuse, and the answer is that of the mean.
TEST_F(WireTest, AsymmetryWithinRoundingIsAccepted) {
  v1::SolveRequest request = Good();
  request.mutable_problem()->mutable_trees()->set_dynamics_matrix(2, 0.3 + 1e-13);
  ExpectAnswered(request, "asymmetry of 1e-13");
}

TEST_F(WireTest, NormalsThatAreNoUnitVectorsAreRefused) {
  for (const double length : {0.0, 0.999, 1.001, 2.0, 1e308, kDenormal}) {
    v1::SolveRequest request = Good();
    request.mutable_problem()->mutable_body_contacts()->set_normal(5, length);
    ExpectRefused(request, "body_contacts.normal[3]");
  }
}

TEST_F(WireTest, NamesGivenTwiceAreRefused) {
  v1::SolveRequest request = Good();
  request.mutable_problem()->mutable_trees()->set_tree_id(1, 7);
  ExpectRefused(request, "trees.tree_id[1]");

  request = Good();
  request.mutable_problem()->mutable_bodies()->set_body_id(1, 7);
  ExpectRefused(request, "bodies.body_id[1]");
}

using SetNumber = void (v1::Regularization::*)(double);
TEST_F(WireTest, ScalarsOutOfRangeAreRefused) {
  const auto refused = [this](const char* name, SetNumber set, double value) {
    v1::SolveRequest request = Good();
    (request.mutable_problem()->mutable_regularization()->*set)(value);
    ExpectRefused(request, std::string("regularization.") + name);
  };
  for (const double value : {kNaN, kInfinity, -kInfinity, -1.0, -0.0, 0.0}) {
    v1::SolveRequest request = Good();
    request.mutable_problem()->set_time_step(value);
    ExpectRefused(request, "time_step");
    refused("sigma", &v1::Regularization::set_sigma, value);
    refused("stiction_speed", &v1::Regularization::set_stiction_speed, value);
    refused("reference_time_step", &v1::Regularization::set_reference_time_step, value);
  }
  for (const double value : {kNaN, kInfinity, -kInfinity, -1.0, -kDenormal}) {
    refused("beta", &v1::Regularization::set_beta, value);
    refused("row_beta", &v1::Regularization::set_row_beta, value);
  }
  v1::SolveRequest request = Good();
  request.mutable_problem()->mutable_regularization()->set_rule(
      static_cast<v1::RegularizationRule>(-1));
  ExpectRefused(request, "regularization.rule");
}

TEST_F(WireTest, HugeAndTinyScalarsAreAnswered) {
  const std::pair<const char*, SetNumber> numbers[] = {
      {"sigma", &v1::Regularization::set_sigma},
      {"beta", &v1::Regularization::set_beta},
      {"row_beta", &v1::Regularization::set_row_beta},
      {"stiction_speed", &v1::Regularization::set_stiction_speed},
      {"reference_time_step", &v1::Regularization::set_reference_time_step}};
  for (const double value : {1e308, kDenormal, 1e-308}) {
    v1::SolveRequest request = Good();
    request.mutable_problem()->set_time_step(value);
    ExpectAnswered(request, "time_step " + std::to_string(value));
    for (const auto& [name, set] : numbers) {
      request = Good();
      test::AddRows(request.mutable_problem());
      if (set == &v1::Regularization::set_stiction_speed) {
        test::MakeHuntCrossley("contacts", request.mutable_problem());
      }
      (request.mutable_problem()->mutable_regularization()->*set)(value);
      ExpectAnswered(request, name + (" " + std::to_string(value)));
    }
  }
}

TEST_F(WireTest, StiffnessIsNotReadWhereRegularizationIsGiven) {
  v1::SolveRequest request = GoodWith({"contacts.regularization_n", Range::kPositive});
  request.mutable_problem()->mutable_contacts()->set_stiffness(0, kNaN);
  ExpectAnswered(request, "stiffness NaN, R_n given");
  request.mutable_problem()->mutable_contacts()->clear_stiffness();
  ExpectAnswered(request, "no stiffness, R_n given");
}

TEST_F(WireTest, TheDistanceIsNotReadWhereATargetIsGiven) {
  for (const std::string group : {"contacts", "body_contacts"}) {
    v1::SolveRequest request = GoodWith({group + ".target_velocity", Range::kFinite, true});
    Array<double> distance(group + ".signed_distance", request.mutable_problem());
    distance.Set(0, kNaN);
    ExpectAnswered(request, group + ": distance NaN, target given");
    distance.Clear();
    ExpectAnswered(request, group + ": no distance, target given");
  }
}

TEST_F(WireTest, ARequestWithoutProblemIsRefusedAndAnEmptyProblemIsAnswered) {
  ExpectRefused(v1::SolveRequest(), "problem");

  v1::SolveRequest request;
  request.mutable_problem()->set_time_step(0.01);
  v1::SolveResponse response;
  ASSERT_TRUE(Answer(request, &response).has_value());
  EXPECT_EQ(response.solution().velocity_size(), 0);
  EXPECT_EQ(response.solution().islands().status_size(), 0);
}

TEST_F(WireTest, ProblemsOverTheLimitsAreRefused) {
  ServerConfig config = Config();
  config.problem = {.max_trees = 3, .max_tree_dofs = 1024, .max_contacts = 1024};
  v1::SolveResponse response;
  ServiceStatus status = test::BlockingHandler(config).Solve(Good(), CallContext(), &response);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().field, "bodies.mass");

  config.problem = {.max_trees = 1024, .max_tree_dofs = 1024, .max_contacts = 4};
  status = test::BlockingHandler(config).Solve(Good(), CallContext(), &response);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().field, "body_contacts.body_a");

  v1::SolveRequest request = Good();
  test::AddRows(request.mutable_problem());
  for (const auto& [limits, field] :
       {std::pair(ProblemLimits{.max_rows = 2}, "rows.entries"),
        std::pair(ProblemLimits{.max_row_entries = 5}, "rows.velocity_index"),
        std::pair(ProblemLimits{.max_row_pairs = 3}, "rows.velocity_index")}) {
    config.problem = limits;
    status = test::BlockingHandler(config).Solve(request, CallContext(), &response);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().field, field);
  }
}

TEST_F(WireTest, BadOptionsAreRefusedBeforeTheProblemIsLookedAt) {
  v1::SolveRequest request = Good();
  request.mutable_problem()->set_time_step(-1);
  request.mutable_options()->set_relative_tolerance(kNaN);
  ExpectRefused(request, "options.relative_tolerance");
}

// What the handler refuses, the server refuses with the same words and the field as details; then
// it answers the next good request with the bits of the handler.
TEST_F(WireTest, AServerRefusesWithTheFieldInTheDetailsAndLives) {
  const auto server = GrpcServer::Start(Config(), &handler_);
  ASSERT_TRUE(server.has_value()) << server.error();
  const auto stub = v1::SolverService::NewStub(
      grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials()));
  for (const ArrayRule& rule : DoubleRules()) {
    v1::SolveRequest request = GoodWith(rule);
    Array<double>(rule.path, request.mutable_problem()).Set(1, kNaN);
    v1::SolveResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub->Solve(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message().find(rule.path + "[1] is NaN; it must be "), 0u);
    google::rpc::Status details;
    google::rpc::BadRequest bad_request;
    ASSERT_TRUE(details.ParseFromString(status.error_details()));
    ASSERT_EQ(details.details_size(), 1);
    ASSERT_TRUE(details.details(0).UnpackTo(&bad_request));
    EXPECT_EQ(bad_request.field_violations(0).field(), rule.path + "[1]");

    grpc::ClientContext next;
    ASSERT_TRUE(stub->Solve(&next, Good(), &response).ok());
    EXPECT_EQ(Bits(response), good_bits_);
  }
}

}  // namespace
}  // namespace sap
