// Calls of Differentiate and DifferentiateBatch: what is refused and by which name, what is
// returned, and that neither batches nor threads change a bit.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <future>
#include <limits>
#include <random>

#include "tests/support/blocking_handler.h"
#include "tests/support/message_fields.h"
#include "tests/support/mixed_constraints.h"
#include "tests/support/scenes.h"
#include "tests/support/sliding_point.h"
#include "tests/support/solution_bits.h"

namespace sap::test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

ServerConfig DerivativesConfig(int threads = 2) {
  ServerConfig config;
  config.threads = threads;
  return config;
}

// Two trees and two bodies, contacts of both kinds, rows; a cotangent of every output.
v1::DifferentiateRequest MixedRequest(int cotangents = 1) {
  v1::DifferentiateRequest request;
  *request.mutable_problem() = MixedProblem();
  AddRows(request.mutable_problem());
  std::mt19937 random(3);
  std::uniform_real_distribution<double> draw(-1, 1);
  for (int k = 0; k < cotangents; ++k) {
    v1::Cotangent* cotangent = request.add_cotangents();
    for (int i = 0; i < 17; ++i) cotangent->add_velocity(draw(random));
    for (int i = 0; i < 15; ++i) cotangent->add_impulse(draw(random));
    for (int i = 0; i < 15; ++i) cotangent->add_contact_velocity(draw(random));
    for (int i = 0; i < 3; ++i) cotangent->add_row_impulse(draw(random));
    for (int i = 0; i < 3; ++i) cotangent->add_row_velocity(draw(random));
    cotangent->set_cost(draw(random));
  }
  return request;
}

v1::DifferentiateResponse Answer(const v1::DifferentiateRequest& request, int threads = 2) {
  BlockingHandler handler(DerivativesConfig(threads));
  v1::DifferentiateResponse response;
  const ServiceStatus status = handler.Differentiate(request, CallContext(), &response);
  EXPECT_TRUE(status.has_value()) << status.error().message;
  return response;
}

ServiceError Refusal(const v1::DifferentiateRequest& request, const ServerConfig& config) {
  BlockingHandler handler(config);
  v1::DifferentiateResponse response;
  const ServiceStatus status = handler.Differentiate(request, CallContext(), &response);
  EXPECT_FALSE(status.has_value());
  EXPECT_EQ(response.ByteSizeLong(), 0u);
  return status ? ServiceError{} : status.error();
}

std::string TimelessBytes(v1::DifferentiateResponse response) {
  const std::string solution = Bits(response.solution()).bytes;
  response.clear_solution();
  return solution + response.SerializeAsString();
}

struct BadRequest {
  const char* name;
  std::function<void(v1::DifferentiateRequest*)> spoil;
  std::string field;
  std::string message;
};

class RefusedDerivativesTest : public testing::TestWithParam<BadRequest> {};

TEST_P(RefusedDerivativesTest, NamesTheField) {
  v1::DifferentiateRequest request = MixedRequest(3);
  *request.add_tangents() = v1::ContactProblem();
  request.add_tangents()->set_time_step(1);
  GetParam().spoil(&request);
  const ServiceError error = Refusal(request, DerivativesConfig());
  EXPECT_EQ(error.code, ServiceCode::kInvalidArgument);
  EXPECT_EQ(error.field, GetParam().field);
  EXPECT_THAT(error.message, HasSubstr(GetParam().message));
}

TEST(DerivativesTest, EstimatesByLoadPathsHaveToBeHeld) {
  v1::DifferentiateRequest request = MixedRequest(1);
  v1::ContactProblem* problem = request.mutable_problem();
  problem->mutable_regularization()->set_rule(v1::REGULARIZATION_RULE_LOAD_PATH);
  problem->mutable_trees()->mutable_initial_velocity()->Resize(5, 0.0);
  problem->mutable_bodies()->mutable_initial_velocity()->Resize(12, 0.0);
  EXPECT_EQ(Refusal(request, DerivativesConfig()).field, "hold_delassus");
  request.set_hold_delassus(true);
  EXPECT_EQ(Answer(request).gradients_size(), 1);
}

std::vector<BadRequest> BadRequests() {
  using Request = v1::DifferentiateRequest;
  return {
      {"NoProblem", [](Request* r) { r->clear_problem(); }, "problem", "is missing"},
      {"BadProblem", [](Request* r) { r->mutable_problem()->set_time_step(-1); }, "time_step",
       "it must be finite and > 0"},
      {"BadOption", [](Request* r) { r->mutable_options()->set_relative_tolerance(2); },
       "options.relative_tolerance", "it must be finite and in [0, 1)"},
      {"BadMask",
       [](Request* r) { r->mutable_options()->mutable_response_mask()->add_paths("speed"); },
       "options.response_mask.paths[0]", "'speed'"},
      {"ShortVelocity", [](Request* r) { r->add_velocity(1); }, "velocity",
       "velocity has 1 values; 17 are needed for 17 velocities of the problem"},
      {"VelocityNotANumber",
       [](Request* r) {
         for (int i = 0; i < 17; ++i) r->add_velocity(i == 4 ? kNaN : 0);
       },
       "velocity[4]", "velocity[4] is NaN; it must be finite"},
      {"ShortCotangent",
       [](Request* r) { r->mutable_cotangents(0)->mutable_velocity()->RemoveLast(); },
       "cotangents[0].velocity", "has 16 values; 17 are needed"},
      {"LongCotangent", [](Request* r) { r->mutable_cotangents(1)->add_contact_velocity(0); },
       "cotangents[1].contact_velocity", "has 16 values; 15 are needed for 5 contacts"},
      {"CotangentNotANumber", [](Request* r) { r->mutable_cotangents(2)->set_impulse(14, kNaN); },
       "cotangents[2].impulse[14]", "is NaN; it must be finite"},
      {"RowsOfCotangent", [](Request* r) { r->mutable_cotangents(1)->add_row_impulse(0); },
       "cotangents[1].row_impulse", "has 4 values; 3 are needed for 3 rows"},
      {"InfiniteRowVelocity",
       [](Request* r) { r->mutable_cotangents(0)->set_row_velocity(1, -kInfinity); },
       "cotangents[0].row_velocity[1]", "is -inf; it must be finite"},
      {"AngularCotangentWithoutAxes",
       [](Request* r) { r->mutable_cotangents(0)->add_angular_impulse(0); },
       "cotangents[0].angular_impulse", "has 1 values; 0 are needed"},
      {"InfiniteCost", [](Request* r) { r->mutable_cotangents(1)->set_cost(kInfinity); },
       "cotangents[1].cost", "is inf; it must be finite"},
      {"ShortTangent",
       [](Request* r) { r->mutable_tangents(1)->mutable_contacts()->add_friction(1); },
       "tangents[1].contacts.friction", "has 1 values; 3 or none are needed"},
      {"TangentNotANumber",
       [](Request* r) {
         for (int i = 0; i < 2; ++i) r->mutable_tangents(0)->mutable_bodies()->add_mass(kNaN);
       },
       "tangents[0].bodies.mass[0]", "is NaN; it must be finite"},
      {"TangentOfARule",
       [](Request* r) {
         for (int i = 0; i < 3; ++i) {
           r->mutable_tangents(1)->mutable_contacts()->add_regularization_t(1);
         }
       },
       "tangents[1].contacts.regularization_t", ""},
      {"UnknownWanted", [](Request* r) { r->mutable_wanted()->add_paths("contacts.stickiness"); },
       "wanted.paths[0]", "is 'contacts.stickiness'; it must be applied_impulse"},
      {"WantedWithoutDerivative",
       [](Request* r) {
         r->mutable_wanted()->add_paths("bodies");
         r->mutable_wanted()->add_paths("contacts.tree_a");
       },
       "wanted.paths[1]", "is 'contacts.tree_a'; it must be"},
      {"TooManyWanted",
       [](Request* r) {
         for (int i = 0; i < 257; ++i) r->mutable_wanted()->add_paths("bodies");
       },
       "wanted", "wanted has 257 paths; at most 256 are accepted"},
      {"TooManyDerivatives",
       [](Request* r) {
         while (r->cotangents_size() < 1023) r->add_cotangents();
       },
       "cotangents", "cotangents and tangents are 1025; at most 1024 are accepted together"}};
}

INSTANTIATE_TEST_SUITE_P(Requests, RefusedDerivativesTest, testing::ValuesIn(BadRequests()),
                         [](const auto& test) { return test.param.name; });

TEST(DerivativesTest, ASlidingPointHasTheGradientOfItsClosedForm) {
  const SlidingPoint point;
  const v1::DifferentiateResponse response = Answer(point.Request());
  ASSERT_EQ(response.gradients_size(), 1);
  const v1::Gradient& gradient = response.gradients(0);
  EXPECT_NEAR(response.solution().velocity(0), point.Speed(), 1e-14);
  EXPECT_NEAR(gradient.gradient().contacts().friction(0), point.SpeedByFriction(), 1e-13);
  EXPECT_NEAR(gradient.applied_impulse(0), point.SpeedByImpulse(), 1e-13);
  EXPECT_EQ(response.adjoint_status(0), v1::ADJOINT_STATUS_DIFFERENTIATED);
  EXPECT_GT(response.kink_margin(0), 0.1);
}

double Dot(const Message& a, const Message& b) {
  double sum = 0;
  const auto* reflection = a.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(a, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      sum += Dot(reflection->GetMessage(a, field), reflection->GetMessage(b, field));
    } else if (!field->is_repeated()) {
      sum += reflection->GetDouble(a, field) * reflection->GetDouble(b, field);
    } else {
      for (int i = 0;
           i < std::min(reflection->FieldSize(a, field), reflection->FieldSize(b, field)); ++i) {
        sum +=
            reflection->GetRepeatedDouble(a, field, i) * reflection->GetRepeatedDouble(b, field, i);
      }
    }
  }
  return sum;
}

// Numbers in the shape of the message.
void Randomize(std::mt19937* random, Message* message) {
  std::uniform_real_distribution<double> draw(-1, 1);
  const auto* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Randomize(random, reflection->MutableMessage(message, field));
    } else if (!field->is_repeated()) {
      reflection->SetDouble(message, field, draw(*random));
    } else {
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
        reflection->SetRepeatedDouble(message, field, i, draw(*random));
      }
    }
  }
}

// Every array takes part under its own name, in and out.
TEST(DerivativesTest, AGradientAlongADirectionIsTheCotangentAlongItsTangent) {
  std::mt19937 random(11);
  for (const bool cones : {false, true}) {
    v1::DifferentiateRequest request = MixedRequest();
    request.mutable_problem()->mutable_regularization()->set_reference_time_step(0.02);
    if (cones) {
      for (const char* group : {"contacts", "body_contacts"}) {
        AddAngularFriction(group, request.mutable_problem());
      }
      for (int i = 0; i < 15; ++i) request.mutable_cotangents(0)->add_angular_impulse(0.1 * i);
    }
    for (const char* path :
         {"time_step", "trees", "bodies", "contacts", "body_contacts", "rows",
          "regularization.beta", "regularization.sigma", "regularization.row_beta",
          "regularization.reference_time_step", "contacts.surface_velocity",
          "body_contacts.surface_velocity", "rows.velocity_offset"}) {
      request.mutable_wanted()->add_paths(path);
    }
    const v1::DifferentiateResponse reverse = Answer(request);
    v1::ContactProblem* direction = request.add_tangents();
    *direction = reverse.gradients(0).gradient();
    Randomize(&random, direction);
    const v1::DifferentiateResponse both = Answer(request);
    EXPECT_EQ(both.gradients(0).SerializeAsString(), reverse.gradients(0).SerializeAsString());
    const auto& cotangent = request.cotangents(0);
    v1::Tangent as_tangent;
    ASSERT_TRUE(as_tangent.ParseFromString(cotangent.SerializeAsString()));  // fields are the same
    const double forward = Dot(as_tangent, both.tangents(0));
    const double backward = Dot(reverse.gradients(0).gradient(), *direction);
    EXPECT_NE(forward, 0);
    EXPECT_NEAR(forward, backward, 1e-10 * std::abs(forward));
  }
}

std::vector<std::string> PathsOf(const Message& message, const std::string& prefix = "") {
  std::vector<std::string> paths;
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      paths.push_back(prefix + field->name());
      continue;
    }
    for (auto& path : PathsOf(reflection->GetMessage(message, field), field->name() + ".")) {
      paths.push_back(path);
    }
  }
  return paths;
}

std::vector<std::string> Wanted(const std::vector<std::string>& paths) {
  v1::DifferentiateRequest request = MixedRequest();
  request.mutable_problem()->clear_regularization();
  for (const std::string& path : paths) request.mutable_wanted()->add_paths(path);
  const v1::DifferentiateResponse response = Answer(request);
  std::vector<std::string> returned = PathsOf(response.gradients(0).gradient());
  if (!response.gradients(0).applied_impulse().empty()) returned.push_back("applied_impulse");
  if (!response.gradients(0).delassus_estimate().empty()) returned.push_back("delassus_estimate");
  return returned;
}

TEST(DerivativesTest, WhatIsWantedIsReturned) {
  using testing::Contains;
  using testing::ElementsAre;
  using testing::Not;
  EXPECT_THAT(Wanted({"bodies.mass"}), ElementsAre("bodies.mass"));
  EXPECT_THAT(Wanted({"applied_impulse", "time_step"}),
              ElementsAre("time_step", "applied_impulse"));
  EXPECT_THAT(Wanted({"delassus_estimate"}), ElementsAre("delassus_estimate"));
  // A message stands for the arrays that the problem has.
  EXPECT_THAT(Wanted({"trees"}),
              ElementsAre("trees.dynamics_matrix", "trees.free_motion_velocity"));
  EXPECT_THAT(Wanted({"contacts"}), Not(Contains("contacts.adhesion")));
  EXPECT_THAT(Wanted({"contacts"}), Contains("contacts.jacobian"));
  // An array that has its default is returned where it is named, but not where a rule is meant.
  EXPECT_THAT(Wanted({"contacts.adhesion", "regularization.beta"}),
              ElementsAre("contacts.adhesion", "regularization.beta"));
  EXPECT_THAT(Wanted({"contacts.regularization_t"}), ElementsAre());
  EXPECT_THAT(Wanted({"regularization"}), ElementsAre());
  // By default all but what is as large as A or J.
  const std::vector<std::string> all = Wanted({});
  for (const char* path : {"applied_impulse", "delassus_estimate", "time_step", "bodies.inertia",
                           "body_contacts.normal", "contacts.friction", "rows.coefficient"}) {
    EXPECT_THAT(all, Contains(path));
  }
  for (const char* path : {"trees.dynamics_matrix", "contacts.jacobian", "bodies.guess_velocity",
                           "contacts.adhesion"}) {
    EXPECT_THAT(all, Not(Contains(path)));
  }
}

// An array that is added to the problem needs a derivative, or a reason here.
TEST(DerivativesTest, EveryArrayOfDoublesButGuessesAndInitialVelocitiesCanBeWanted) {
  const auto paths = ArrayPaths(*v1::ContactProblem::descriptor(), FieldDescriptor::CPPTYPE_DOUBLE);
  ASSERT_GT(paths.size(), 50u);
  for (const std::string& path : paths) {
    v1::DifferentiateRequest request = MixedRequest();
    request.mutable_wanted()->add_paths(path);
    // The velocity at the beginning of the step enters w alone, where w has to be held.
    const bool has_none =
        path.find(".guess_") != std::string::npos || path.ends_with("initial_velocity");
    EXPECT_EQ(CheckSize(request, DerivativesConfig()).has_value(), !has_none) << path;
  }
}

TEST(DerivativesTest, ThreadsAndTheQueueChangeNoBit) {
  const v1::DifferentiateRequest request = MixedRequest(4);
  const std::string expected = TimelessBytes(Answer(request, 1));
  for (const int threads : {2, 4}) EXPECT_EQ(TimelessBytes(Answer(request, threads)), expected);
  for (const double inline_below_us : {0.0, 1e6}) {
    ServerConfig config = DerivativesConfig();
    config.inline_below_us = inline_below_us;
    BlockingHandler handler(config);
    v1::DifferentiateResponse response;
    std::promise<ServiceStatus> done;
    handler.StartDifferentiate(
        request, CallContext(), &response,
        [](void* context, const ServiceStatus& status) {
          static_cast<std::promise<ServiceStatus>*>(context)->set_value(status);
        },
        &done);
    ASSERT_TRUE(done.get_future().get().has_value());
    EXPECT_EQ(TimelessBytes(response), expected);
  }
}

TEST(DerivativesTest, TheResponseMaskChangesTheSolutionAlone) {
  v1::DifferentiateRequest request = MixedRequest();
  v1::DifferentiateResponse expected = Answer(request);
  request.mutable_options()->mutable_response_mask()->add_paths("velocity");
  v1::DifferentiateResponse masked = Answer(request);
  EXPECT_EQ(PathsOf(masked.solution()), std::vector<std::string>{"velocity"});
  EXPECT_EQ(Bits(masked.solution()).bytes.empty(), false);
  expected.clear_solution();
  masked.clear_solution();
  EXPECT_EQ(masked.SerializeAsString(), expected.SerializeAsString());
}

TEST(DerivativesTest, WithoutDerivativesThereAreTheSolutionAndItsKinkMargins) {
  const v1::DifferentiateResponse response = Answer(MixedRequest(0));
  EXPECT_EQ(response.solution().velocity_size(), 17);
  EXPECT_EQ(response.gradients_size() + response.tangents_size(), 0);
  ASSERT_EQ(response.kink_margin_size(), 1);
  EXPECT_GT(response.kink_margin(0), 0);
  EXPECT_LE(response.kink_margin(0), 1);
}

TEST(DerivativesTest, TheDefaultToleranceIsThatOfDerivatives) {
  const v1::DifferentiateResponse response = Answer(MixedRequest());
  EXPECT_LE(response.solution().islands().momentum_residual(0), 1e-10);
}

// The velocity of the answer is sent again.
TEST(DerivativesTest, ASolutionAtHandTakesNoIterations) {
  v1::DifferentiateRequest request = MixedRequest();
  const v1::DifferentiateResponse solved = Answer(request);
  EXPECT_GT(solved.solution().islands().iterations(0), 0);
  *request.mutable_velocity() = solved.solution().velocity();
  const v1::DifferentiateResponse again = Answer(request);
  EXPECT_EQ(again.solution().islands().iterations(0), 0);
  EXPECT_EQ(again.adjoint_status(0), v1::ADJOINT_STATUS_DIFFERENTIATED);
  for (int i = 0; i < 3; ++i) {
    const double expected = solved.gradients(0).gradient().contacts().friction(i);
    EXPECT_NEAR(again.gradients(0).gradient().contacts().friction(i), expected,
                1e-7 * (1 + std::abs(expected)));
  }
}

TEST(DerivativesTest, AnAnswerLargerThanTheLargestMessageIsRefusedBeforehand) {
  ServerConfig config = DerivativesConfig();
  config.max_message_bytes = 1 << 20;
  v1::DifferentiateRequest request = MixedRequest();
  while (request.cotangents_size() < 1000) request.add_cotangents();
  ServiceError error = Refusal(request, config);
  EXPECT_EQ(error.code, ServiceCode::kResourceExhausted);
  EXPECT_EQ(error.reason, "ANSWER_BYTES");
  EXPECT_THAT(error.message, HasSubstr("name the wanted inputs"));
  request.mutable_wanted()->add_paths("contacts.friction");
  BlockingHandler handler(config);
  v1::DifferentiateResponse response;
  EXPECT_TRUE(handler.Differentiate(request, CallContext(), &response).has_value());
  EXPECT_LE(response.ByteSizeLong(), 1u << 20);
}

// What is not wanted is computed all the same: a thousand times a dense matrix of 500 dofs.
TEST(DerivativesTest, DerivativesLargerThanTheMemoryOfASolveAreRefusedBeforehand) {
  ServerConfig config = DerivativesConfig();
  config.max_solve_memory_mib = 1024;
  v1::DifferentiateRequest request;
  v1::Trees* trees = request.mutable_problem()->mutable_trees();
  request.mutable_problem()->set_time_step(0.01);
  trees->add_dofs(500);
  for (int i = 0; i < 500 * 500; ++i) trees->add_dynamics_matrix(i % 501 == 0 ? 1 : 0);
  for (int i = 0; i < 500; ++i) trees->add_free_motion_velocity(0);
  request.mutable_wanted()->add_paths("applied_impulse");
  while (request.cotangents_size() < 1000) request.add_cotangents();
  const ServiceError error = Refusal(request, config);
  EXPECT_EQ(error.code, ServiceCode::kResourceExhausted);
  EXPECT_EQ(error.reason, "SOLVE_MEMORY");
}

// A bound that is too low would let answers through that no limit has counted.
TEST(DerivativesTest, NoAnswerIsLargerThanItsBound) {
  for (const bool everything : {false, true}) {
    v1::DifferentiateRequest request = MixedRequest(3);
    request.add_tangents()->set_time_step(1);
    if (everything) {
      for (const char* group : {"trees", "bodies", "contacts", "body_contacts", "rows",
                                "contacts.surface_velocity", "contacts.rolling_friction"}) {
        request.mutable_wanted()->add_paths(group);
      }
    }
    const auto size = CheckSize(request, DerivativesConfig());
    ASSERT_TRUE(size.has_value());
    EXPECT_LE(static_cast<int64_t>(Answer(request).ByteSizeLong()), size->answer_bytes);
  }
}

// The derivatives count as what a client holds: with another call they are over the limit.
TEST(DerivativesTest, DerivativesCountAsBytesOfTheirClient) {
  ServerConfig config = DerivativesConfig();
  config.admission.client.max_bytes = 200'000;
  BlockingHandler handler(config);
  const auto account = handler.admission().AccountOf("somebody");
  ASSERT_TRUE(handler.admission().Admit(account.get(), {.bytes = 1}).has_value());
  CallContext call;
  call.account = account.get();
  v1::DifferentiateResponse response;
  EXPECT_TRUE(handler.Differentiate(MixedRequest(1), call, &response).has_value());
  const ServiceStatus status = handler.Differentiate(MixedRequest(100), call, &response);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().reason, "CLIENT_BYTES");
  handler.admission().Release(account.get(), {.bytes = 1});
  EXPECT_EQ(handler.admission().bytes(), 0);
}

TEST(DerivativesTest, ATimeBudgetThatIsUsedUpLeavesGradientsOfZero) {
  v1::DifferentiateRequest request = MixedRequest();
  request.mutable_options()->mutable_time_budget()->set_nanos(1);
  const v1::DifferentiateResponse response = Answer(request);
  EXPECT_EQ(response.adjoint_status(0), v1::ADJOINT_STATUS_DEADLINE);
  for (const double value : response.gradients(0).gradient().contacts().friction()) {
    EXPECT_EQ(value, 0);
  }
}

v1::DifferentiateBatchRequest MixedDerivatives() {
  v1::DifferentiateBatchRequest batch;
  for (int i = 0; i < 9; ++i) {
    *batch.add_requests() = MixedRequest(i % 3);
    batch.mutable_requests(i)->mutable_problem()->set_time_step(0.01 + 0.001 * i);
  }
  batch.mutable_requests(4)->mutable_cotangents(0)->set_cost(kNaN);
  return batch;
}

TEST(DerivativesTest, EveryProblemOfABatchHasTheOutcomeOfAUnaryCall) {
  const v1::DifferentiateBatchRequest batch = MixedDerivatives();
  for (const int threads : {1, 2, 4}) {
    BlockingHandler handler(DerivativesConfig(threads));
    v1::DifferentiateBatchResponse response;
    ASSERT_TRUE(handler.DifferentiateBatch(batch, CallContext(), &response).has_value());
    ASSERT_EQ(response.outcomes_size(), 9);
    for (int i = 0; i < 9; ++i) {
      if (i == 4) continue;
      EXPECT_EQ(TimelessBytes(response.outcomes(i).derivatives()),
                TimelessBytes(Answer(batch.requests(i))));
    }
    EXPECT_EQ(response.outcomes(4).failure().code(), 3);
    EXPECT_EQ(response.outcomes(4).failure().field(), "cotangents[0].cost");
  }
}

TEST(DerivativesTest, WhatIsWrongWithABatchFailsIt) {
  ServerConfig config = DerivativesConfig();
  config.max_batch_problems = 8;
  config.max_message_bytes = 100'000;
  BlockingHandler handler(config);
  v1::DifferentiateBatchRequest batch = MixedDerivatives();
  v1::DifferentiateBatchResponse response;
  ServiceStatus status = handler.DifferentiateBatch(batch, CallContext(), &response);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "requests has 9 values; at most 8 are accepted in a batch");
  batch.mutable_requests()->RemoveLast();
  batch.mutable_time_budget()->set_seconds(-1);
  status = handler.DifferentiateBatch(batch, CallContext(), &response);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().field, "time_budget");
  batch.clear_time_budget();
  for (auto& request : *batch.mutable_requests()) request = MixedRequest(20);
  status = handler.DifferentiateBatch(batch, CallContext(), &response);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().reason, "ANSWER_BYTES");
}

TEST(DerivativesTest, TheTimeBudgetOfABatchIsThatOfAllItsProblems) {
  v1::DifferentiateBatchRequest batch;
  for (int i = 0; i < 2; ++i) *batch.add_requests() = MixedRequest();
  batch.mutable_requests(1)->mutable_options()->mutable_time_budget()->set_seconds(1);
  batch.mutable_time_budget()->set_nanos(1);
  BlockingHandler handler(DerivativesConfig());
  v1::DifferentiateBatchResponse response;
  ASSERT_TRUE(handler.DifferentiateBatch(batch, CallContext(), &response).has_value());
  EXPECT_EQ(response.outcomes(0).derivatives().adjoint_status(0), v1::ADJOINT_STATUS_DEADLINE);
  EXPECT_EQ(response.outcomes(1).failure().field(), "options.time_budget");
}

}  // namespace
}  // namespace sap::test
