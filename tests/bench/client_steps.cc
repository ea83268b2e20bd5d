// Time that each layer adds to a session step of 16 contacts at a server on a Unix socket: the
// client for C++, the C interface over it, and the C interface in this process.
//
//   client_steps SERVER [STEPS]        path of sap-server
//
// Every step is taken by all three in turn, so that a noisy machine slows all of them; times are
// medians and 99th percentiles.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "client/c/sap_islands.h"
#include "client/cpp/client.h"
#include "tests/client/c/pile.h"
#include "tests/support/child_process.h"

namespace sap::test {
namespace {

using Clock = std::chrono::steady_clock;

// A session of the C interface with what it needs.
class CSession {
 public:
  explicit CSession(const std::string& address) : answer_(sap_answer_new()) {
    sap_connect_options options{};
    options.struct_size = sizeof options;
    options.threads = 1;
    Check(sap_connect(address.c_str(), &options, nullptr, &client_, answer_));
    Check(sap_session_open(client_, nullptr, nullptr, &session_, answer_));
  }
  ~CSession() {
    sap_session_free(session_);
    sap_client_free(client_);
    sap_answer_free(answer_);
  }
  CSession(const CSession&) = delete;
  CSession& operator=(const CSession&) = delete;

  double Step(const sap_problem& problem) {
    Check(sap_session_step(session_, &problem, nullptr, nullptr, answer_));
    return sap_answer_solution(answer_)->cost;
  }

 private:
  void Check(int32_t kind) const {
    if (kind == SAP_OK) return;
    std::fprintf(stderr, "%s\n", sap_answer_error(answer_)->message);
    std::exit(1);
  }

  sap_answer* answer_;
  sap_client* client_{nullptr};
  sap_session* session_{nullptr};
};

// The view of the bodies and contacts of a pile.
ContactProblemView ViewOf(const Pile& pile) {
  ContactProblemView view;
  view.time_step = pile.problem.time_step;
  view.bodies.mass = pile.mass;
  view.bodies.inertia = pile.inertia;
  view.bodies.center_of_mass = pile.center;
  view.bodies.free_motion_velocity = pile.v_star;
  view.bodies.body_id = pile.id;
  view.body_contacts.body_a = pile.body_a;
  view.body_contacts.body_b = pile.body_b;
  view.body_contacts.point = pile.point;
  view.body_contacts.normal = pile.normal;
  view.body_contacts.law.signed_distance = pile.distance;
  view.body_contacts.law.stiffness = pile.stiffness;
  view.body_contacts.law.relaxation_time = pile.relaxation;
  view.body_contacts.law.friction = pile.friction;
  return view;
}

struct Way {
  const char* name;
  std::function<double()> step;  // returns the cost
  std::vector<double> times_us{};
};

int Main(const std::string& server, int steps) {
  const TemporaryDirectory directory;
  const ChildProcess process(
      {server, "--listen", "unix:" + (directory / "socket").string(), "--threads", "1"});
  const std::string address = process.WaitForLine("listening on ", std::chrono::seconds(60));
  Pile pile(2);  // 8 bodies with 16 contacts
  auto client = client::Client::Connect(address);
  if (!client) return std::fprintf(stderr, "%s\n", client.error().message.c_str()), 1;
  auto session = client->OpenSession();
  CSession there(address), here("embedded:");
  const ContactProblemView view = ViewOf(pile);
  Way ways[] = {{"C++", [&] { return session->Step(view)->cost; }},
                {"C", [&] { return there.Step(pile.problem); }},
                {"C, embedded:", [&] { return here.Step(pile.problem); }}};
  constexpr int kWarmUp = 100;
  for (int i = -kWarmUp; i < steps; ++i) {
    pile.v_star[0] = 0.1 + 0.01 * (i % 7);
    double cost = 0;
    for (Way& way : ways) {
      const auto start = Clock::now();
      const double own = way.step();
      const double time_us = 1e6 * std::chrono::duration<double>(Clock::now() - start).count();
      if (&way != ways && own != cost) return std::fprintf(stderr, "other bits\n"), 1;
      cost = own;
      if (i >= 0) way.times_us.push_back(time_us);
    }
  }
  std::printf("%zu contacts, us\n%-14s %8s %8s\n", pile.friction.size(), "", "p50", "p99");
  for (Way& way : ways) {
    std::sort(way.times_us.begin(), way.times_us.end());
    const size_t count = way.times_us.size();
    std::printf("%-14s %8.1f %8.1f\n", way.name, way.times_us[count / 2],
                way.times_us[count * 99 / 100]);
  }
  return 0;
}

}  // namespace
}  // namespace sap::test

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "client_steps SERVER [STEPS]\n"), 1;
  int steps = 2000;
  if (argc > 2) {
    const std::string_view text = argv[2];
    const auto read = std::from_chars(text.data(), text.data() + text.size(), steps);
    if (read.ec != std::errc() || steps < 1) return std::fprintf(stderr, "STEPS >= 1\n"), 1;
  }
  return sap::test::Main(argv[1], steps);
}
