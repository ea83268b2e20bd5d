#include "client/cpp/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "client/cpp/problem_file.h"
#include "client/cpp/solution_json.h"
#include "client/cpp/transport/message_conversion.h"
#include "server/rpc/grpc_server.h"
#include "tests/support/await.h"
#include "tests/support/child_process.h"
#include "tests/support/problem_set.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"

namespace sap::client {
namespace {

using testing::HasSubstr;

Problem Mixed() { return *FromMessage(test::MixedProblem()); }

// The same client over every transport.
class ClientTest : public testing::TestWithParam<const char*> {
 protected:
  ClientTest() {
    ServerConfig config;
    config.listen = GetParam() == std::string("unix:") ? "unix:" + (directory_ / "socket").string()
                                                       : "127.0.0.1:0";
    config.threads = 2;
    handler_ = std::make_unique<RequestHandler>(config);
    server_ = *GrpcServer::Start(config, handler_.get());
    const std::string address =
        GetParam() == std::string("embedded:") ? GetParam() : server_->address();
    auto client = Client::Connect(address, {.connect_timeout = test::kLong, .threads = 2});
    EXPECT_TRUE(client.has_value()) << client.error().message;
    client_ = std::make_unique<Client>(std::move(*client));
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<RequestHandler> handler_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_P(ClientTest, SolvesAProblem) {
  const auto solution = client_->Solve(Mixed());
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  EXPECT_TRUE(solution->Solved());
  EXPECT_EQ(solution->velocity.size(), 17u);
  EXPECT_EQ(solution->impulse.size(), 15u);
  EXPECT_EQ(solution->contact_velocity.size(), 15u);
  EXPECT_EQ(solution->island_of_tree.size(), 4u);
  EXPECT_GT(solution->cost, 0);
  ASSERT_EQ(solution->islands.size(), 1u);
  EXPECT_EQ(solution->islands[0].dofs, 17);
  EXPECT_EQ(solution->islands[0].contacts, 5);
  EXPECT_LE(solution->islands[0].momentum_residual, 1e-6);
  EXPECT_GT(solution->timings.solve_s, 0);
}

TEST_P(ClientTest, EveryConstraintHasTheSameBitsEmbeddedAndRemote) {
  auto embedded = Client::Connect("embedded:");
  ASSERT_TRUE(embedded.has_value()) << embedded.error().message;
  const auto expected = embedded->Solve(test::EveryConstraint());
  const auto solution = client_->Solve(test::EveryConstraint());
  ASSERT_TRUE(expected.has_value()) << expected.error().message;
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  EXPECT_EQ(test::Bits(*solution), test::Bits(*expected));
  EXPECT_TRUE(solution->Solved());
  EXPECT_EQ(solution->row_impulse.size(), 6u);
  EXPECT_EQ(solution->row_velocity.size(), 6u);
  EXPECT_EQ(solution->angular_impulse.size(), 6u);  // of the two contacts with angular axes
  ASSERT_EQ(solution->islands.size(), 1u);
  EXPECT_EQ(solution->islands[0].rows, 6);
  EXPECT_EQ(solution->islands[0].cost, solution->cost);
}

TEST_P(ClientTest, AnErrorNamesTheField) {
  Problem problem = Mixed();
  problem.contacts.law.friction[2] = -0.3;
  const auto solution = client_->Solve(problem);
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(solution.error().field, "contacts.friction[2]");
  EXPECT_EQ(solution.error().message, "contacts.friction[2] is -0.3; it must be finite and >= 0");
}

// It must not become the default, which is infinite.
TEST_P(ClientTest, AReferenceSpeedThatIsNoNumberIsRefused) {
  for (const double speed : {std::nan(""), -std::numeric_limits<double>::infinity()}) {
    Problem problem = Mixed();
    problem.regularization.load_reference_speed = speed;
    const auto solution = client_->Solve(problem);
    ASSERT_FALSE(solution.has_value()) << speed;
    EXPECT_EQ(solution.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(solution.error().field, "regularization.load_reference_speed");
  }
}

TEST_P(ClientTest, AReferenceTimeStepReachesTheSolverAndIsRefusedWhereItIsNone) {
  Problem problem = Mixed();
  const auto by_default = client_->Solve(problem);
  problem.regularization.reference_time_step = problem.time_step;
  const auto same = client_->Solve(problem);
  problem.regularization.reference_time_step = 50 * problem.time_step;
  const auto other = client_->Solve(problem);
  ASSERT_TRUE(by_default && same && other);
  EXPECT_EQ(same->velocity, by_default->velocity);
  EXPECT_NE(other->velocity, by_default->velocity);
  for (const double value : {-0.01, std::nan(""), std::numeric_limits<double>::infinity()}) {
    problem.regularization.reference_time_step = value;
    const auto refused = client_->Solve(problem);
    ASSERT_FALSE(refused.has_value()) << value;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().field, "regularization.reference_time_step");
  }
}

TEST_P(ClientTest, OptionsReachTheSolver) {
  SolveOptions options;
  options.solver.max_iterations = 0;
  options.response_mask = {"islands"};
  const auto solution = client_->Solve(Mixed(), options);
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  EXPECT_FALSE(solution->Solved());
  ASSERT_EQ(solution->islands.size(), 1u);
  EXPECT_EQ(solution->islands[0].status, SolveStatus::kIterationLimit);
  EXPECT_EQ(solution->islands[0].iterations, 0);
  EXPECT_TRUE(solution->velocity.empty());
}

TEST_P(ClientTest, OptionsOutOfRangeAreRefusedByName) {
  SolveOptions options;
  options.solver.max_iterations = -1;
  auto solution = client_->Solve(Mixed(), options);
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().field, "options.max_iterations");

  options = {};
  options.time_budget = std::chrono::nanoseconds(-1);
  solution = client_->Solve(Mixed(), options);
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().field, "options.time_budget");

  options = {};
  options.solver.relative_tolerance = std::numeric_limits<double>::quiet_NaN();
  solution = client_->Solve(Mixed(), options);
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().field, "options.relative_tolerance");

  options = {};
  options.response_mask = {"speed"};
  solution = client_->Solve(Mixed(), options);
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().field, "options.response_mask.paths[0]");
}

TEST_P(ClientTest, ADeadlineThatIsOverGivesNothing) {
  SolveOptions options;
  options.deadline = std::chrono::nanoseconds(0);
  const auto solution = client_->Solve(Mixed(), options);
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kDeadlineExceeded);
}

TEST_P(ClientTest, TheFarthestDeadlineIsNone) {
  SolveOptions options;
  options.deadline = std::chrono::nanoseconds::max();
  options.time_budget = std::chrono::nanoseconds::max();
  const auto solution = client_->Solve(Mixed(), options);
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  EXPECT_TRUE(solution->Solved());
}

TEST_P(ClientTest, InfoAndHealthAnswer) {
  const auto info = client_->Info();
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->version, SAP_VERSION);
  EXPECT_EQ(info->solver_threads, 2u);
  EXPECT_GT(info->max_message_bytes, 0u);
  EXPECT_GT(info->max_rows, 0u);
  EXPECT_GT(info->max_row_entries, 0u);
  EXPECT_GT(info->max_row_pairs, 0u);
  const auto serving = client_->Health();
  ASSERT_TRUE(serving.has_value()) << serving.error().message;
  EXPECT_TRUE(*serving);
}

INSTANTIATE_TEST_SUITE_P(Transports, ClientTest, testing::Values("embedded:", "tcp:", "unix:"),
                         [](const auto& test) {
                           return std::string(test.param, std::strlen(test.param) - 1);
                         });

TEST(ConnectTest, AnAddressWithoutServerIsUnavailable) {
  const test::TemporaryDirectory directory;
  const auto client = Client::Connect("unix:" + (directory / "nobody").string(),
                                      {.connect_timeout = std::chrono::milliseconds(100)});
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(client.error().message, HasSubstr("nobody"));
}

// A name that begins like a loopback address can lead to any machine.
TEST(ConnectTest, ATokenIsNotSentUnencryptedToANameThatLooksLocal) {
  const test::TemporaryDirectory directory;
  ConnectOptions options{.connect_timeout = std::chrono::milliseconds(1)};
  options.credentials.token_file = (directory / "token").string();
  std::ofstream(options.credentials.token_file) << "0123456789abcdef-secret\n";
  for (const char* address :
       {"127.example.invalid:1", "localhost.invalid:1", "127.0.0.1.invalid:1"}) {
    const auto client = Client::Connect(address, options);
    ASSERT_FALSE(client.has_value()) << address;
    EXPECT_EQ(client.error().code, ErrorCode::kInvalidArgument) << client.error().message;
  }
  for (const char* address : {"127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/nowhere"}) {
    const auto client = Client::Connect(address, options);
    ASSERT_FALSE(client.has_value()) << address;
    EXPECT_EQ(client.error().code, ErrorCode::kUnavailable) << client.error().message;
  }
}

// What the command prints is what check scripts read: names of the schema, and no field left out
// because it is empty or zero.
TEST(SolutionJsonTest, HasEveryFieldByTheNameOfTheSchema) {
  auto client = Client::Connect("embedded:");
  const auto problem = LoadProblem(test::ProblemPath("nasty_no_contacts"));
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  const auto solution = client->Solve(*problem);
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  const std::string text = SolutionToJson(*solution);
  const auto* descriptor = v1::ContactSolution::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    EXPECT_THAT(text, HasSubstr("\"" + descriptor->field(i)->name() + "\""));
  }
}

}  // namespace
}  // namespace sap::client
