// Scenes in shards have the bits of the undivided ones, for any number of shards.
#include <gtest/gtest.h>

#include <limits>

#include "client/cpp/problem_file.h"
#include "client/cpp/split/split_solver.h"
#include "solver/run/island_forecast.h"
#include "solver/split/assignment.h"
#include "tests/support/golden_problem.h"
#include "tests/support/random_islands.h"
#include "tests/support/solution_bits.h"

namespace sap::client {
namespace {

using test::AnswerBits;
using test::Bits;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class SplitBitsTest : public testing::Test {
 protected:
  Solution SolveWhole(const Problem& problem, const SolveOptions& options) {
    auto solved = Await<SolveOutcome>([&](Where where, auto done) {
      backend_->Solve(ViewOf(problem), options, std::nullopt, where, nullptr, std::move(done));
    });
    EXPECT_TRUE(solved.has_value()) << solved.error().message;
    return *std::move(solved);
  }

  // Whatever it costs.
  template <typename Deal>
  Solution SolveInShards(const Problem& problem, const Deal& deal, int shards_wanted,
                         const SolveOptions& options) {
    ProblemLayout layout;
    EXPECT_TRUE(layout.Read(ViewOf(problem)));
    IslandForecast forecast;
    ForecastIslands(layout, &forecast);
    const auto dealt = deal(forecast.solve_time_s, shards_wanted);
    if (dealt.empty()) return SolveWhole(problem, options);  // nothing touches anything
    num_shards_ += static_cast<int>(dealt.size());
    const Shards shards(ViewOf(problem), layout, forecast.island_of_tree, dealt);
    Backend* const backends[]{backend_.get()};
    auto solution = SolveShards(backends, shards, options, std::nullopt);
    EXPECT_TRUE(solution.has_value()) << "a shard was refused";
    if (!solution) return {};
    EXPECT_TRUE(solution->has_value()) << solution->error().message;
    return std::move(solution->value());
  }

  void ExpectSameBits(const Problem& problem, const SolveOptions& options = {}) {
    const AnswerBits whole = Bits(SolveWhole(problem, options));
    for (int servers = 1; servers <= 5; ++servers) {
      EXPECT_EQ(Bits(SolveInShards(problem, AssignLargestFirst, servers, options)), whole)
          << servers << " servers";
    }
    for (const int connections : {1, 2, 4}) {
      EXPECT_EQ(Bits(SolveInShards(problem, DealInOrder, connections, options)), whole)
          << connections << " connections";
    }
  }

  void ExpectSameBitsOfAll(test::GoldenSet set) {
    const std::vector<std::string> names = test::GoldenNames("", set);
    ASSERT_FALSE(names.empty());
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      const auto problem = LoadProblem(test::GoldenPath(name, set));
      ASSERT_TRUE(problem.has_value()) << problem.error().message;
      ExpectSameBits(*problem);
    }
    EXPECT_GT(num_shards_, static_cast<int>(5 * names.size()));  // some had several islands
  }

  const std::unique_ptr<Backend> backend_ = EmbeddedBackend({.threads = 2});
  int num_shards_{0};
};

TEST_F(SplitBitsTest, OfTheCertifiedProblemsWithFriction) {
  ExpectSameBitsOfAll(test::GoldenSet::kFriction);
}

TEST_F(SplitBitsTest, OfTheCertifiedProblemsWithEveryConstraint) {
  ExpectSameBitsOfAll(test::GoldenSet::kConstraints);
}

TEST_F(SplitBitsTest, OfAThousandRandomScenes) {
  constexpr int kScenes = 1000;
  for (int seed = 0; seed < kScenes; ++seed) {
    SCOPED_TRACE(seed);
    ExpectSameBits(test::RandomIslands(seed));
  }
  EXPECT_GT(num_shards_, 12 * kScenes);  // of 15: most have five islands or more
}

TEST_F(SplitBitsTest, WithEveryMethodAndToleranceOfTheOptions) {
  SolveOptions options;
  options.solver.relative_tolerance = 1e-10;
  options.solver.max_iterations = 3;
  for (const auto newton :
       {NewtonMethod::kPlain, NewtonMethod::kAccelerated, NewtonMethod::kGaussSeidel}) {
    options.solver.newton = newton;
    for (int seed = 0; seed < 20; ++seed) ExpectSameBits(test::RandomIslands(seed), options);
  }
}

TEST_F(SplitBitsTest, OfAReferenceTimeStep) {
  for (int seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = test::RandomIslands(seed);
    problem.regularization.reference_time_step = 0.2 * problem.time_step;
    ExpectSameBits(problem);
  }
}

// The load that passes through a contact is that of its island alone.
TEST_F(SplitBitsTest, OfTheRuleThatFollowsTheLoad) {
  for (int seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = test::RandomIslands(seed);
    problem.trees.coupled_a = problem.trees.coupled_b = {};  // not with this rule
    problem.trees.coupling_block = {};
    problem.regularization.rule = DelassusRule::kLoadPath;
    problem.regularization.load_reference_speed = seed % 2 == 0 ? 0.05 : kInfinity;
    // v_0 is 0.1 in every other velocity of the bodies, 0 elsewhere.
    problem.trees.initial_velocity.resize(problem.trees.free_motion_velocity.size());
    problem.bodies.initial_velocity.resize(problem.bodies.free_motion_velocity.size());
    for (size_t i = 1; i < problem.bodies.initial_velocity.size(); i += 2) {
      problem.bodies.initial_velocity[i] = 0.1;
    }
    ExpectSameBits(problem);
  }
}

TEST_F(SplitBitsTest, OfEveryFieldThatAMaskAsksFor) {
  for (const char* field :
       {"velocity", "impulse", "contact_velocity", "cost", "island_of_tree", "islands",
        "row_impulse", "row_velocity", "angular_impulse", "delassus_estimate"}) {
    SCOPED_TRACE(field);
    SolveOptions options;
    options.response_mask = {field};
    for (int seed = 0; seed < 8; ++seed) ExpectSameBits(test::RandomIslands(seed), options);
  }
}

}  // namespace
}  // namespace sap::client
