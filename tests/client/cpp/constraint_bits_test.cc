// Problems with every kind of constraint: the same bits embedded and over every transport, for any
// number of threads, alone and as a step of a session.
#include <gtest/gtest.h>

#include "client/cpp/problem_file.h"
#include "tests/support/problem_set.h"
#include "tests/support/solution_bits.h"
#include "tests/support/transports.h"

namespace sap::client {
namespace {

using test::AnswerBits;
using test::Bits;

std::vector<Problem> Problems() {
  std::vector<Problem> problems;
  for (const auto& path : test::ConstraintProblemPaths()) {
    auto problem = LoadProblem(path);
    EXPECT_TRUE(problem.has_value()) << problem.error().message;
    if (problem.has_value()) problems.push_back(*std::move(problem));
  }
  return problems;
}

AnswerBits BitsOf(const tl::expected<Solution, Error>& solution) {
  EXPECT_TRUE(solution.has_value()) << solution.error().message;
  return solution ? Bits(*solution) : AnswerBits{solution.error().message};
}

class ConstraintBitsTest : public testing::TestWithParam<const char*> {};

TEST_P(ConstraintBitsTest, AreThoseOfTheEmbeddedSolverOnOneThread) {
  const std::vector<Problem> problems = Problems();
  ASSERT_FALSE(problems.empty());
  auto embedded = Client::Connect("embedded:", {.threads = 1});
  ASSERT_TRUE(embedded.has_value()) << embedded.error().message;
  std::vector<AnswerBits> expected;
  for (const Problem& problem : problems) expected.push_back(BitsOf(embedded->Solve(problem)));
  for (const int threads : {1, 2, 4}) {
    ServerConfig config;
    config.threads = threads;
    const test::Server server(GetParam(), config);
    Client client = server.Connect(threads);
    for (size_t i = 0; i < problems.size(); ++i) {
      EXPECT_EQ(BitsOf(client.Solve(problems[i])), expected[i]) << i << ", threads " << threads;
      auto session = client.OpenSession();
      EXPECT_EQ(BitsOf(session->Step(problems[i])), expected[i]) << i << ", threads " << threads;
      EXPECT_TRUE(session->Close().has_value());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, ConstraintBitsTest,
                         testing::Values("embedded:", "tcp:", "unix:"), test::TransportName);

}  // namespace
}  // namespace sap::client
