#include "client/cpp/problem_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "client/cpp/transport/message_conversion.h"
#include "tests/support/child_process.h"
#include "tests/support/message_fields.h"
#include "tests/support/problem_set.h"
#include "tests/support/scenes.h"

namespace sap::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Bytes(const Problem& problem) {
  v1::ContactProblem message;
  ToMessage(problem, &message);
  return message.SerializeAsString();
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Every array of the schema, most of them with numbers that say nothing.
Problem Filled() {
  v1::ContactProblem message;
  test::FillFields(/*count=*/3, &message);
  Problem problem = *FromMessage(message);
  problem.rows.stiffness = {kInfinity, 1e5, 1.0 / 3};
  problem.rows.force_lower = {-kInfinity, -0.0, -4.9e-324};
  problem.rows.force_upper = {0, kInfinity, 1.7976931348623157e308};
  return problem;
}

Problem Example() {
  Problem problem = *FromMessage(test::MixedProblem());
  // Numbers that do not survive careless printing.
  problem.trees.free_motion_velocity = {0.1 + 0.2, -0.0, 4.9e-324, 1.7976931348623157e308, 1e22};
  problem.regularization = {.beta = 0, .sigma = 1.0 / 3, .rule = DelassusRule::kDiagonal};
  return problem;
}

class ProblemFileTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) {
    const std::string path = directory_ / "problem.json";
    std::ofstream(path) << text;
    return path;
  }

  std::string LoadError(const std::string& text) {
    const auto problem = LoadProblem(Write(text));
    EXPECT_FALSE(problem.has_value());
    return problem ? "" : problem.error().message;
  }

  test::TemporaryDirectory directory_;
};

TEST_F(ProblemFileTest, EveryFormatBringsBackTheSameBits) {
  for (const Problem& problem : {Example(), Filled()}) {
    for (const char* name : {"p.json", "p.json.gz", "p.binpb", "p.binpb.gz"}) {
      const std::string path = directory_ / name;
      ASSERT_TRUE(SaveProblem(problem, path).has_value()) << name;
      const auto loaded = LoadProblem(path);
      ASSERT_TRUE(loaded.has_value()) << name << ": " << loaded.error().message;
      EXPECT_TRUE(Bytes(*loaded) == Bytes(problem)) << name;
    }
  }
}

// The suffix is a convention, not a promise.
TEST_F(ProblemFileTest, TheFormatIsSeenFromTheContents) {
  const std::string compressed = directory_ / "p.json.gz";
  ASSERT_TRUE(SaveProblem(Example(), compressed).has_value());
  const std::string renamed = directory_ / "problem";
  std::filesystem::rename(compressed, renamed);
  const auto loaded = LoadProblem(renamed);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_TRUE(Bytes(*loaded) == Bytes(Example()));
}

TEST_F(ProblemFileTest, JsonUsesTheNamesOfTheSchema) {
  const std::string path = directory_ / "p.json";
  ASSERT_TRUE(SaveProblem(Example(), path).has_value());
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const char* name : {"\"time_step\"", "\"dynamics_matrix\"", "\"signed_distance\"",
                           "\"body_contacts\"", "\"surface_velocity\""}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
}

TEST_F(ProblemFileTest, TheFourExtraKeysAreNotRead) {
  const auto problem = LoadProblem(Write(
      R"({"name": "x", "source": "y", "reference": {"velocity": [1], "cost": "?"},
          "drake_velocity": [2], "time_step": 0.5})"));
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  EXPECT_EQ(problem->time_step, 0.5);
  for (const char* text : {R"({"time_step": 0.5, "name": "a \"}, [ quoted"})",
                           R"({"source": {"deep": [{}, "]"]}, "time_step": 0.5})",
                           R"( { "reference" : [ ] , "time_step" : 0.5 , "name" : null } )"}) {
    const auto tricky = LoadProblem(Write(text));
    ASSERT_TRUE(tricky.has_value()) << text << ": " << tricky.error().message;
    EXPECT_EQ(tricky->time_step, 0.5);
  }
}

TEST_F(ProblemFileTest, UnknownKeysAreRefusedByName) {
  EXPECT_THAT(LoadError(R"({"time_step": 0.1, "gravity": [0, 0, -9.81]})"), HasSubstr("gravity"));
  EXPECT_THAT(LoadError(R"({"time_step": 0.1, "contacts": {"frction": [1]}})"),
              HasSubstr("frction"));
  // An extra key is extra at the top level only.
  EXPECT_THAT(LoadError(R"({"time_step": 0.1, "trees": {"source": [1]}})"), HasSubstr("source"));
}

TEST_F(ProblemFileTest, KeysThatAppearTwiceInAnObjectAreRefused) {
  EXPECT_THAT(LoadError(R"({"time_step": 1, "time_step": 2})"), HasSubstr("'time_step' appears"));
  EXPECT_THAT(LoadError(R"({"bodies": {"mass": [1], "inertia": [], "mass" : [2]}})"),
              HasSubstr("'mass' appears twice"));
  for (const char* text : {R"({"name": "a", "source": {"name": "a"}, "time_step": 0.5})",
                           R"({"reference": [{"a": "a"}, {"a": ""a": 1"}], "time_step": 0.5})"}) {
    EXPECT_TRUE(LoadProblem(Write(text)).has_value()) << text;
  }
}

TEST_F(ProblemFileTest, BrokenFilesAreRefusedWithFileAndReason) {
  EXPECT_THAT(LoadError("{\"time_step\": 0.1"), HasSubstr("problem.json"));
  EXPECT_THAT(LoadError("[1, 2]"), HasSubstr("object"));
  EXPECT_THAT(LoadError(""), HasSubstr("neither JSON nor"));
  EXPECT_THAT(LoadError("not a problem"), HasSubstr("neither JSON nor"));
  EXPECT_THAT(LoadError(R"({"time_step": "soon"})"), HasSubstr("time_step"));
  EXPECT_THAT(LoadError(R"({"trees": {"dofs": [-1]}})"), HasSubstr("dofs"));
  EXPECT_THAT(LoadError(R"({"trees": {"dofs": [1.5]}})"), HasSubstr("dofs"));
  EXPECT_THAT(LoadError(R"({"time_step": 1e999})"), HasSubstr("1e999"));
  EXPECT_THAT(LoadError(R"({"regularization": {"rule": "SOFT"}})"), HasSubstr("rule"));
  EXPECT_THAT(LoadError(R"({"regularization": {"rule": 17}})"), HasSubstr("rule"));
}

TEST_F(ProblemFileTest, ATruncatedArchiveIsRefused) {
  const std::string path = directory_ / "p.json.gz";
  ASSERT_TRUE(SaveProblem(Example(), path).has_value());
  const auto size = std::filesystem::file_size(path);
  for (const auto left : {size - 1, size / 2}) {
    std::filesystem::resize_file(path, left);
    const auto problem = LoadProblem(path);
    ASSERT_FALSE(problem.has_value()) << left << " bytes left of " << size;
    EXPECT_THAT(problem.error().message, HasSubstr(path));
  }
}

TEST_F(ProblemFileTest, AFileThatIsNotThereOrADirectoryIsRefused) {
  const auto missing = LoadProblem(directory_ / "missing.json");
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, HasSubstr("No such file"));
  const auto directory = LoadProblem(directory_ / "");
  ASSERT_FALSE(directory.has_value());
  EXPECT_FALSE(SaveProblem(Example(), directory_ / "no/such/place.json").has_value());
}

// They reach the server, which refuses them with their place.
TEST_F(ProblemFileTest, NaNAndInfinityAreRead) {
  const auto problem =
      LoadProblem(Write(R"({"contacts": {"friction": ["NaN", "Infinity", "-Infinity", 0.5]}})"));
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  const std::vector<double>& friction = problem->contacts.law.friction;
  EXPECT_TRUE(std::isnan(friction[0]));
  EXPECT_TRUE(std::isinf(friction[1]) && friction[1] > 0);
  EXPECT_TRUE(std::isinf(friction[2]) && friction[2] < 0);
}

TEST_F(ProblemFileTest, RowsAreReadAsTheMappingWritesThem) {
  const auto problem = LoadProblem(Write(R"({"time_step": 0.01,
      "rows": {"entries": [2, 1], "velocity_index": [0, 7, 3], "coefficient": [1, -0.5, 1],
               "stiffness": ["Infinity", 1e5], "force_lower": ["-Infinity", 0],
               "force_upper": [20, "Infinity"]},
      "contacts": {"law": ["CONTACT_LAW_SAP", "CONTACT_LAW_HUNT_CROSSLEY_SIMILAR"],
                   "hunt_crossley": {"elastic_force": [0, 3.5]}},
      "regularization": {"row_beta": 0}})"));
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  EXPECT_THAT(problem->rows.entries, ElementsAre(2, 1));
  EXPECT_THAT(problem->rows.velocity_index, ElementsAre(0, 7, 3));
  EXPECT_THAT(problem->rows.coefficient, ElementsAre(1, -0.5, 1));
  EXPECT_THAT(problem->rows.stiffness, ElementsAre(kInfinity, 1e5));
  EXPECT_THAT(problem->rows.force_lower, ElementsAre(-kInfinity, 0));
  EXPECT_THAT(problem->rows.force_upper, ElementsAre(20, kInfinity));
  EXPECT_THAT(problem->rows.position_error, IsEmpty());
  EXPECT_THAT(problem->contacts.law.law,
              ElementsAre(static_cast<int32_t>(sap::ContactLaw::kSap),
                          static_cast<int32_t>(sap::ContactLaw::kHuntCrossleySimilar)));
  EXPECT_THAT(problem->contacts.law.hunt_crossley.elastic_force, ElementsAre(0, 3.5));
  EXPECT_EQ(problem->regularization.row_beta, 0);
  EXPECT_EQ(problem->regularization.stiction_speed, 1e-4);
}

TEST_F(ProblemFileTest, ProblemsOfTheSetLoad) {
  for (const char* name : {"adroit_ball_t0p30", "clutter_bin_8_t2p00", "nasty_no_contacts"}) {
    const auto problem = LoadProblem(test::ProblemPath(name));
    ASSERT_TRUE(problem.has_value()) << problem.error().message;
    EXPECT_GT(problem->time_step, 0);
    EXPECT_FALSE(problem->trees.dofs.empty());
  }
}

}  // namespace
}  // namespace sap::client
