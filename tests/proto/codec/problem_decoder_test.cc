#include "proto/codec/problem_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "tests/support/message_fields.h"

namespace sap {
namespace {

using google::protobuf::FieldDescriptor;

constexpr EngineLimits kLimits{.problem = {}, .max_iterations = 1000};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One value for each array, by its path.
using ArrayValues = std::map<std::string, double>;

// The first value of every array that a view points to.
ArrayValues FirstValues(const ContactProblemView& view) {
  ArrayValues values;
  ForEachArray(
      [&values](std::string_view group, const auto& field, const auto& array) {
        values[std::string(group).append(field.name)] = static_cast<double>(array.front());
      },
      view);
  return values;
}

// Makes every array of the schema one value long, each value its own; returns the values.
ArrayValues FillArrays(int first, v1::ContactProblem* message) {
  ArrayValues values;
  const auto fill = [&](auto zero, FieldDescriptor::CppType type) {
    using Value = decltype(zero);
    for (const std::string& path : test::ArrayPaths(*message->GetDescriptor(), type)) {
      const int value = first + static_cast<int>(values.size());
      test::Array<Value> array(path, message);
      array.Resize(1, zero);
      array.Set(0, static_cast<Value>(value));
      values[path] = value;
    }
  };
  fill(double{0}, FieldDescriptor::CPPTYPE_DOUBLE);
  fill(uint32_t{0}, FieldDescriptor::CPPTYPE_UINT32);
  fill(int32_t{0}, FieldDescriptor::CPPTYPE_INT32);
  fill(int32_t{0}, FieldDescriptor::CPPTYPE_ENUM);
  return values;
}

// Every array of the schema reaches the one of its name in the view, so that none is missing in
// problem_fields.inc; and none is copied, since the view sees what is
// written to the message afterwards.
TEST(ProblemDecoderTest, ViewPointsIntoEveryArrayOfTheMessage) {
  v1::ContactProblem message;
  const ArrayValues before = FillArrays(1000, &message);
  const auto view = DecodeProblem(message);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(FirstValues(*view), before);
  const ArrayValues after = FillArrays(2000, &message);
  EXPECT_EQ(FirstValues(*view), after);
}

TEST(ProblemDecoderTest, ScalarsAreThoseOfTheMessageOrTheDefaults) {
  v1::ContactProblem message;
  message.set_time_step(0.25);
  auto view = DecodeProblem(message);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->time_step, 0.25);
  EXPECT_EQ(view->regularization.beta, 1.0);
  EXPECT_EQ(view->regularization.sigma, 1e-3);
  EXPECT_EQ(view->regularization.rule, DelassusRule::kFull);
  EXPECT_EQ(view->regularization.row_beta, 0.1);
  EXPECT_EQ(view->regularization.stiction_speed, 1e-4);
  EXPECT_EQ(view->regularization.load_reference_speed, std::numeric_limits<double>::infinity());
  EXPECT_EQ(view->regularization.reference_time_step, 0);

  message.mutable_regularization()->set_beta(0.0);
  message.mutable_regularization()->set_sigma(0.5);
  message.mutable_regularization()->set_rule(v1::REGULARIZATION_RULE_DIAGONAL);
  message.mutable_regularization()->set_row_beta(0.0);
  message.mutable_regularization()->set_stiction_speed(0.25);
  view = DecodeProblem(message);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->regularization.beta, 0.0);
  EXPECT_EQ(view->regularization.sigma, 0.5);
  EXPECT_EQ(view->regularization.rule, DelassusRule::kDiagonal);
  EXPECT_EQ(view->regularization.row_beta, 0.0);
  EXPECT_EQ(view->regularization.stiction_speed, 0.25);

  message.mutable_regularization()->set_rule(v1::REGULARIZATION_RULE_LOAD_PATH);
  message.mutable_regularization()->set_load_reference_speed(0.1);
  view = DecodeProblem(message);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->regularization.rule, DelassusRule::kLoadPath);
  EXPECT_EQ(view->regularization.load_reference_speed, 0.1);

  message.mutable_regularization()->set_reference_time_step(0.01);
  view = DecodeProblem(message);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->regularization.reference_time_step, 0.01);
}

TEST(ProblemDecoderTest, APresetGivesTheNumbersThatAreAbsent) {
  v1::ContactProblem message;
  message.mutable_regularization()->set_preset(v1::REGULARIZATION_PRESET_RIGID);
  message.mutable_regularization()->set_sigma(0.5);
  const auto view = DecodeProblem(message);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->regularization.beta, 0.01);
  EXPECT_EQ(view->regularization.sigma, 0.5);
  EXPECT_EQ(view->regularization.row_beta, 1e-3);
  EXPECT_EQ(view->regularization.stiction_speed, 1e-4);

  message.mutable_regularization()->set_preset(static_cast<v1::RegularizationPreset>(2));
  const auto refused = DecodeProblem(message);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "regularization.preset");
}

TEST(ProblemDecoderTest, TheInteriorPointIsThatOfTheMessageOrAutomatic) {
  v1::SolveOptions options;
  EXPECT_EQ(DecodeOptions(options, kLimits)->solver.interior_point, InteriorPoint::kAuto);
  for (const auto& [sent, expected] : {std::pair{v1::INTERIOR_POINT_AUTO, InteriorPoint::kAuto},
                                       {v1::INTERIOR_POINT_NEVER, InteriorPoint::kNever},
                                       {v1::INTERIOR_POINT_ALWAYS, InteriorPoint::kAlways}}) {
    options.set_interior_point(sent);
    EXPECT_EQ(DecodeOptions(options, kLimits)->solver.interior_point, expected);
  }
}

// Who names a default gets what he names, whatever becomes the default.
TEST(ProblemDecoderTest, NamedDefaultsAreTaken) {
  v1::ContactProblem message;
  message.mutable_regularization()->set_rule(v1::REGULARIZATION_RULE_FULL);
  EXPECT_EQ(DecodeProblem(message)->regularization.rule, DelassusRule::kFull);
  v1::SolveOptions options;
  options.set_newton(v1::NEWTON_METHOD_ACCELERATED);
  EXPECT_EQ(DecodeOptions(options, kLimits)->solver.newton, NewtonMethod::kAccelerated);
  options.set_newton(v1::NEWTON_METHOD_GAUSS_SEIDEL);
  EXPECT_EQ(DecodeOptions(options, kLimits)->solver.newton, NewtonMethod::kGaussSeidel);
}

TEST(ProblemDecoderTest, RefusesARuleThatItDoesNotKnow) {
  v1::ContactProblem message;
  message.mutable_regularization()->set_rule(static_cast<v1::RegularizationRule>(17));
  const auto view = DecodeProblem(message);
  ASSERT_FALSE(view.has_value());
  EXPECT_EQ(view.error().field, "regularization.rule");
}

TEST(ProblemDecoderTest, EveryTreeContactAndRowAddsToThePredictedWork) {
  v1::ContactProblem message;
  EXPECT_EQ(PredictedWork(message), 0);
  message.mutable_trees()->add_free_motion_velocity(0);
  const double of_a_tree = PredictedWork(message);
  EXPECT_GT(of_a_tree, 0);
  message.mutable_contacts()->add_tree_a(0);
  const double with_a_contact = PredictedWork(message);
  EXPECT_GT(with_a_contact, of_a_tree);
  message.mutable_rows()->add_entries(1);
  EXPECT_GT(PredictedWork(message), with_a_contact);
}

TEST(OptionsDecoderTest, AbsentOptionsAreTheDefaults) {
  const auto settings = DecodeOptions(v1::SolveOptions(), kLimits);
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->solver.relative_tolerance, 1e-6);
  EXPECT_EQ(settings->solver.absolute_speed_tolerance, 1e-14);
  EXPECT_EQ(settings->solver.max_iterations, 500);
  EXPECT_TRUE(settings->solver.islands);
  EXPECT_EQ(settings->solver.newton, NewtonMethod::kAccelerated);
  EXPECT_FALSE(settings->time_budget.has_value());
  EXPECT_FALSE(settings->solver.coulomb.has_value());
  EXPECT_TRUE(settings->mask.all());
}

// The default limit is no way around the server's.
TEST(OptionsDecoderTest, DefaultIterationsStayBelowTheServersLimit) {
  const auto settings = DecodeOptions(v1::SolveOptions(), {.problem = {}, .max_iterations = 20});
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->solver.max_iterations, 20);
}

TEST(OptionsDecoderTest, GivenOptionsAreTaken) {
  v1::SolveOptions message;
  message.set_relative_tolerance(0.0);
  message.set_absolute_speed_tolerance(0.0);
  message.set_max_iterations(0);
  message.set_islands(false);
  message.set_newton(v1::NEWTON_METHOD_PLAIN);
  message.mutable_time_budget()->set_nanos(1);
  message.mutable_response_mask()->add_paths("velocity");
  message.mutable_response_mask()->add_paths("islands");
  const auto settings = DecodeOptions(message, kLimits);
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->solver.relative_tolerance, 0.0);
  EXPECT_EQ(settings->solver.absolute_speed_tolerance, 0.0);
  EXPECT_EQ(settings->solver.max_iterations, 0);
  EXPECT_FALSE(settings->solver.islands);
  EXPECT_EQ(settings->solver.newton, NewtonMethod::kPlain);
  EXPECT_EQ(settings->time_budget, std::chrono::nanoseconds(1));
  const std::vector<std::string_view> names = {"velocity", "islands"};
  EXPECT_EQ(settings->mask, *ReadMask(names));
}

TEST(OptionsDecoderTest, ExactFrictionHasItsDefaultsOrWhatIsGiven) {
  v1::SolveOptions message;
  message.mutable_coulomb();
  auto settings = DecodeOptions(message, kLimits);
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->solver.coulomb->max_rounds, 100u);
  EXPECT_FALSE(settings->solver.coulomb->tolerance.has_value());
  message.mutable_coulomb()->set_max_rounds(0);
  message.mutable_coulomb()->set_tolerance(1e-4);
  settings = DecodeOptions(message, kLimits);
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->solver.coulomb->max_rounds, 0u);
  EXPECT_EQ(settings->solver.coulomb->tolerance, 1e-4);
}

TEST(OptionsDecoderTest, RestHasItsDefaultHorizonOrTheGivenOne) {
  v1::SolveOptions message;
  EXPECT_FALSE(DecodeOptions(message, kLimits)->solver.rest.has_value());
  message.mutable_rest();
  EXPECT_EQ(DecodeOptions(message, kLimits)->solver.rest->horizon, 1);
  message.mutable_rest()->set_horizon(0.25);
  EXPECT_EQ(DecodeOptions(message, kLimits)->solver.rest->horizon, 0.25);
}

TEST(ProblemDecoderTest, ExactFrictionIsPredictedToTakeLonger) {
  v1::ContactProblem message;
  message.mutable_contacts()->add_tree_a(0);
  v1::SolveOptions options;
  options.mutable_coulomb();
  EXPECT_GT(PredictedWork(message, options), PredictedWork(message));
}

// More than there are fields cost time for each problem of a batch.
TEST(OptionsDecoderTest, AMaskHas32PathsAtMost) {
  v1::SolveOptions message;
  for (int i = 0; i < 32; ++i) message.mutable_response_mask()->add_paths("velocity");
  EXPECT_TRUE(DecodeOptions(message, kLimits).has_value());
  message.mutable_response_mask()->add_paths("velocity");
  const auto settings = DecodeOptions(message, kLimits);
  ASSERT_FALSE(settings.has_value());
  EXPECT_EQ(settings.error().field, "options.response_mask.paths");
  EXPECT_EQ(settings.error().message,
            "options.response_mask.paths has 33 paths; at most 32 are accepted");
}

// The longest duration that a message can carry must not overflow the clock.
TEST(OptionsDecoderTest, AnEndlessTimeBudgetIsCutToWhatTheClockCanAdd) {
  v1::SolveOptions message;
  message.mutable_time_budget()->set_seconds(std::numeric_limits<int64_t>::max());
  message.mutable_time_budget()->set_nanos(999'999'999);
  const auto settings = DecodeOptions(message, kLimits);
  ASSERT_TRUE(settings.has_value());
  const auto now = std::chrono::steady_clock::now();
  EXPECT_GT(now + *settings->time_budget, now + std::chrono::hours(24 * 365));
}

struct BadOption {
  const char* field;
  std::function<void(v1::SolveOptions*)> spoil;
};

TEST(OptionsDecoderTest, RefusesWhatIsOutOfRangeByName) {
  const std::vector<BadOption> cases = {
      {"options.relative_tolerance", [](auto* o) { o->set_relative_tolerance(kNaN); }},
      {"options.relative_tolerance", [](auto* o) { o->set_relative_tolerance(kInfinity); }},
      {"options.relative_tolerance", [](auto* o) { o->set_relative_tolerance(-1e-300); }},
      {"options.relative_tolerance", [](auto* o) { o->set_relative_tolerance(1.0); }},
      {"options.coulomb.tolerance", [](auto* o) { o->mutable_coulomb()->set_tolerance(1.0); }},
      {"options.coulomb.tolerance", [](auto* o) { o->mutable_coulomb()->set_tolerance(kNaN); }},
      {"options.coulomb.max_rounds", [](auto* o) { o->mutable_coulomb()->set_max_rounds(10'001); }},
      {"options.rest.horizon", [](auto* o) { o->mutable_rest()->set_horizon(0); }},
      {"options.rest.horizon", [](auto* o) { o->mutable_rest()->set_horizon(-1); }},
      {"options.rest.horizon", [](auto* o) { o->mutable_rest()->set_horizon(kNaN); }},
      {"options.rest.horizon", [](auto* o) { o->mutable_rest()->set_horizon(kInfinity); }},
      {"options.absolute_speed_tolerance", [](auto* o) { o->set_absolute_speed_tolerance(kNaN); }},
      {"options.absolute_speed_tolerance",
       [](auto* o) { o->set_absolute_speed_tolerance(kInfinity); }},
      {"options.absolute_speed_tolerance", [](auto* o) { o->set_absolute_speed_tolerance(-1.0); }},
      {"options.max_iterations",
       [](auto* o) { o->set_max_iterations(kLimits.max_iterations + 1); }},
      {"options.max_iterations", [](auto* o) { o->set_max_iterations(0xFFFFFFFF); }},
      {"options.time_budget", [](auto* o) { o->mutable_time_budget(); }},
      {"options.time_budget", [](auto* o) { o->mutable_time_budget()->set_nanos(-1); }},
      {"options.time_budget", [](auto* o) { o->mutable_time_budget()->set_nanos(1'000'000'000); }},
      {"options.time_budget", [](auto* o) { o->mutable_time_budget()->set_seconds(-1); }},
      {"options.newton", [](auto* o) { o->set_newton(static_cast<v1::NewtonMethod>(-3)); }},
      {"options.newton", [](auto* o) { o->set_newton(static_cast<v1::NewtonMethod>(9)); }},
      {"options.interior_point",
       [](auto* o) { o->set_interior_point(static_cast<v1::InteriorPoint>(-1)); }},
      {"options.interior_point",
       [](auto* o) { o->set_interior_point(static_cast<v1::InteriorPoint>(4)); }},
      {"options.priority", [](auto* o) { o->set_priority(static_cast<v1::Priority>(-1)); }},
      {"options.priority", [](auto* o) { o->set_priority(static_cast<v1::Priority>(99)); }},
      {"options.response_mask.paths[0]",
       [](auto* o) { o->mutable_response_mask()->add_paths(""); }},
      {"options.response_mask.paths[1]",
       [](auto* o) {
         o->mutable_response_mask()->add_paths("velocity");
         o->mutable_response_mask()->add_paths("velocities");
       }},
      {"options.response_mask.paths[0]",
       [](auto* o) { o->mutable_response_mask()->add_paths("islands.status"); }},
  };
  for (const BadOption& bad : cases) {
    v1::SolveOptions message;
    bad.spoil(&message);
    const auto settings = DecodeOptions(message, kLimits);
    ASSERT_FALSE(settings.has_value()) << bad.field << " " << message.ShortDebugString();
    EXPECT_EQ(settings.error().code, EngineErrorCode::kInvalidArgument);
    EXPECT_EQ(settings.error().field, bad.field);
    EXPECT_EQ(settings.error().message.find(bad.field), 0u) << settings.error().message;
  }
}

}  // namespace
}  // namespace sap
