// Processes made by fork() go on with the solvers and sessions of their parent.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <vector>

#include "tests/client/c/c_objects.h"
#include "tests/client/c/pile.h"

namespace sap::test {
namespace {

std::vector<double> VelocityOf(const Answer& answer) {
  const sap_solution* solution = sap_answer_solution(answer.get());
  if (solution == nullptr) return {};
  return {solution->velocity.data, solution->velocity.data + solution->velocity.length};
}

std::vector<double> Solved(const Client& client, const Pile& pile) {
  const Answer answer;
  sap_solve(client.get(), &pile.problem, nullptr, nullptr, answer.get());
  return VelocityOf(answer);
}

std::vector<double> Stepped(const Session& session, const Pile& pile) {
  const Answer answer;
  sap_session_step(session.get(), &pile.problem, nullptr, nullptr, answer.get());
  return VelocityOf(answer);
}

int NumThreads() {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  for (const dirent* task = readdir(tasks); task != nullptr; task = readdir(tasks)) {
    count += task->d_name[0] != '.';
  }
  closedir(tasks);
  return count;
}

// The exit status of a child that does this; it ends as a process does that forked on purpose.
int InChild(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) std::exit(check() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(ForkTest, AChildSolvesToTheSameBitsOnThreadsOfItsOwn) {
  const Pile pile(10);
  const Client client(3);
  const std::vector<double> expected = Solved(client, pile);
  ASSERT_EQ(expected.size(), 6000u);
  ASSERT_GE(NumThreads(), 2);
  EXPECT_EQ(InChild([&] {
              if (NumThreads() != 1 || Solved(client, pile) != expected) return false;
              return NumThreads() >= 2 && Solved(Client(2), pile) == expected;
            }),
            0);
  EXPECT_EQ(Solved(client, pile), expected);
}

TEST(ForkTest, AChildOfAChildSolvesToTheSameBits) {
  const Pile pile(6);
  const Client client(2);
  const std::vector<double> expected = Solved(client, pile);
  EXPECT_EQ(InChild([&] {
              return Solved(client, pile) == expected &&
                     InChild([&] { return Solved(client, pile) == expected; }) == 0;
            }),
            0);
}

TEST(ForkTest, ASessionGoesOnInParentAndChild) {
  Pile pile(6);
  const Client client(2);
  const Session one(client), other(client);
  Stepped(one, pile);
  Stepped(other, pile);
  for (double& v : pile.v_star) v += 0.01;
  const std::vector<double> expected = Stepped(other, pile);
  ASSERT_NE(expected, Solved(client, pile));  // it starts from the step before
  EXPECT_EQ(InChild([&] { return Stepped(one, pile) == expected; }), 0);
  EXPECT_EQ(Stepped(one, pile), expected);
}

TEST(ForkTest, ABatchOfTheParentIsOverInAChild) {
  const Pile pile(6);
  const Client client(2);
  const Answer answer;
  const sap_problem* const problems[] = {&pile.problem};
  sap_answer* const answers[] = {answer.get()};
  sap_batch* batch = nullptr;
  ASSERT_EQ(sap_batch_begin(client.get(), 1, problems, nullptr, nullptr, answers, &batch), SAP_OK);
  EXPECT_EQ(InChild([&] {
              const bool is_over = sap_batch_next(batch, nullptr) == SAP_BATCH_ENDED;
              sap_batch_free(batch);
              return is_over;
            }),
            0);
  EXPECT_EQ(sap_batch_next(batch, nullptr), 0);
  sap_batch_free(batch);
}

}  // namespace
}  // namespace sap::test
