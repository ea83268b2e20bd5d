// Processes made by fork() go on with the solvers and sessions of their parent.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <vector>

#include "tests/client/c/c_objects.h"

namespace sap::test {
namespace {

// A lattice of spheres at rest on each other, large enough for several threads.
struct Pile {
  explicit Pile(int side) {
    const int count = side * side * side;
    const auto number = [side](int x, int y, int z) { return (z * side + y) * side + x; };
    for (int i = 0; i < count; ++i) {
      mass.push_back(1 + 0.001 * i);
      for (const double value : {0.1, 0.1, 0.1, 0.0, 0.0, 0.0}) inertia.push_back(value);
      for (const int d : {i % side, i / side % side, i / side / side}) center.push_back(d);
      for (const double value : {0.1, 0.0, -0.1, 0.0, 0.0, 0.0}) v_star.push_back(value);
      id.push_back(static_cast<uint32_t>(i));
    }
    for (int z = 0; z < side; ++z) {
      for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x) {
          if (x > 0) Touch(number(x, y, z), number(x - 1, y, z), {1, 0, 0});
          if (y > 0) Touch(number(x, y, z), number(x, y - 1, z), {0, 1, 0});
          Touch(number(x, y, z), z > 0 ? number(x, y, z - 1) : -1, {0, 0, 1});
        }
      }
    }
    const auto doubles = [](const std::vector<double>& values) {
      return sap_doubles{values.data(), static_cast<int64_t>(values.size())};
    };
    laws.struct_size = sizeof laws;
    contacts.struct_size = sizeof contacts;
    bodies.struct_size = sizeof bodies;
    problem.struct_size = sizeof problem;
    laws.signed_distance = doubles(distance);
    laws.stiffness = doubles(stiffness);
    laws.relaxation_time = doubles(relaxation);
    laws.friction = doubles(friction);
    contacts.body_a = {body_a.data(), static_cast<int64_t>(body_a.size())};
    contacts.body_b = {body_b.data(), static_cast<int64_t>(body_b.size())};
    contacts.point = doubles(point);
    contacts.normal = doubles(normal);
    contacts.laws = &laws;
    bodies.mass = doubles(mass);
    bodies.inertia = doubles(inertia);
    bodies.center_of_mass = doubles(center);
    bodies.free_motion_velocity = doubles(v_star);
    bodies.body_id = {id.data(), static_cast<int64_t>(id.size())};
    problem.time_step = 0.01;
    problem.bodies = &bodies;
    problem.body_contacts = &contacts;
  }
  Pile(const Pile&) = delete;
  Pile& operator=(const Pile&) = delete;

  void Touch(int a, int b, const std::vector<double>& n) {
    body_a.push_back(a);
    body_b.push_back(b);
    for (int d = 0; d < 3; ++d) point.push_back(center[3 * a + d] - 0.5 * n[d]);
    normal.insert(normal.end(), n.begin(), n.end());
    distance.push_back(-1e-4);
    stiffness.push_back(1e5);
    relaxation.push_back(0.01);
    friction.push_back(0.5);
  }

  std::vector<double> mass, inertia, center, v_star;
  std::vector<uint32_t> id;
  std::vector<int32_t> body_a, body_b;
  std::vector<double> point, normal, distance, stiffness, relaxation, friction;
  sap_contact_laws laws{};
  sap_body_contacts contacts{};
  sap_bodies bodies{};
  sap_problem problem{};
};

std::vector<double> VelocityOf(const Answer& answer) {
  const sap_solution* solution = sap_answer_solution(answer.get());
  if (solution == nullptr) return {};
  return {solution->velocity.data, solution->velocity.data + solution->velocity.length};
}

std::vector<double> Solved(const Solver& solver, const Pile& pile) {
  const Answer answer;
  sap_solve(solver.get(), &pile.problem, nullptr, nullptr, answer.get());
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
  const Solver solver(3);
  const std::vector<double> expected = Solved(solver, pile);
  ASSERT_EQ(expected.size(), 6000u);
  ASSERT_GE(NumThreads(), 2);
  EXPECT_EQ(InChild([&] {
              if (NumThreads() != 1 || Solved(solver, pile) != expected) return false;
              return NumThreads() >= 2 && Solved(Solver(2), pile) == expected;
            }),
            0);
  EXPECT_EQ(Solved(solver, pile), expected);
}

TEST(ForkTest, AChildOfAChildSolvesToTheSameBits) {
  const Pile pile(6);
  const Solver solver(2);
  const std::vector<double> expected = Solved(solver, pile);
  EXPECT_EQ(InChild([&] {
              return Solved(solver, pile) == expected &&
                     InChild([&] { return Solved(solver, pile) == expected; }) == 0;
            }),
            0);
}

TEST(ForkTest, ASessionGoesOnInParentAndChild) {
  Pile pile(6);
  const Solver solver(2);
  const Session one(solver), other(solver);
  Stepped(one, pile);
  Stepped(other, pile);
  for (double& v : pile.v_star) v += 0.01;
  const std::vector<double> expected = Stepped(other, pile);
  ASSERT_NE(expected, Solved(solver, pile));  // it starts from the step before
  EXPECT_EQ(InChild([&] { return Stepped(one, pile) == expected; }), 0);
  EXPECT_EQ(Stepped(one, pile), expected);
}

}  // namespace
}  // namespace sap::test
