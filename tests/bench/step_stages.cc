// Stages of a session step of a large scene, and which thread runs each.
//
//   step_stages [--threads N] [--connections C] SERVER SCENE BODIES FROM TO
//                                                           SERVER: path of sap-server
//
// The scene is simulated by steps of 10 ms; the steps FROM <= step < TO are measured, of which FROM
// should leave some to warm up. Each stage is run here, on one thread, by the functions that client
// and server call, and those that one thread runs while the step waits are added up: the serial
// chain. Then the step is taken by a session at a server with N solver threads on a Unix socket,
// over C connections, for the processor time and page faults of its threads. Prints, separated by
// semicolons: thread, stage, processor time [ms] and page faults of a step; medians of the stages,
// means of the threads.
#include <dirent.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/transport/message_conversion.h"
#include "client/cpp/transport/request_bytes.h"
#include "proto/codec/problem_decoder.h"
#include "proto/codec/solution_encoder.h"
#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/message_bytes.h"
#include "solver/engine/solve_task.h"
#include "tests/bench/scene_sequence.h"
#include "tests/support/child_process.h"

namespace sap::bench {
namespace {

// Threads with less time per step are left out.
constexpr double kLeast_s = 50e-6;

constexpr char kAllThreads[] = "server, all solver threads";

double ThreadTime_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int64_t ThreadFaults() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

void PrintLine(const std::string& who, const std::string& what, double seconds, double faults) {
  std::printf("%s;%s;%.3f;%.0f\n", who.c_str(), what.c_str(), 1e3 * seconds, faults);
}

// Times of the stages in the order of their first calls.
class Stages {
 public:
  explicit Stages(const bool* measured) : measured_(*measured) {}

  template <typename Stage>
  void Run(const char* who, const char* what, const Stage& stage) {
    const double start_s = ThreadTime_s();
    const int64_t faults = ThreadFaults();
    stage();
    if (!measured_) return;
    auto found = std::ranges::find(lines_, std::string(what), &Line::what);
    if (found == lines_.end()) found = lines_.insert(found, {who, what, {}, {}});
    found->seconds.push_back(ThreadTime_s() - start_s);
    found->faults.push_back(static_cast<double>(ThreadFaults() - faults));
  }

  void Print() const {
    double serial_s = 0, serial_faults = 0;
    for (const Line& line : lines_) {
      PrintLine(line.who, line.what, Median(line.seconds), Median(line.faults));
      if (line.who == kAllThreads) continue;
      serial_s += Median(line.seconds);
      serial_faults += Median(line.faults);
    }
    PrintLine("one after the other", "serial chain", serial_s, serial_faults);
  }

 private:
  struct Line {
    std::string who, what;
    std::vector<double> seconds, faults;
  };
  const bool& measured_;
  std::vector<Line> lines_;
};

// Processor time [s] and page faults of each thread of a process.
struct ThreadUse {
  double seconds{0};
  double faults{0};
};
std::map<std::string, ThreadUse> ThreadsOf(pid_t process) {
  std::map<std::string, ThreadUse> threads;
  const std::string folder = "/proc/" + std::to_string(process) + "/task/";
  DIR* const tasks = opendir(folder.c_str());
  if (tasks == nullptr) return threads;
  while (const dirent* entry = readdir(tasks)) {
    const std::string name = entry->d_name;
    if (name.front() == '.') continue;
    ThreadUse& use = threads[name];
    double nanoseconds = 0;
    std::ifstream(folder + name + "/schedstat") >> nanoseconds;
    use.seconds = 1e-9 * nanoseconds;
    std::ifstream stat(folder + name + "/stat");
    std::string line;
    std::getline(stat, line, ')');
    for (int field = 3; field <= 10 && stat >> line; ++field) {
    }
    use.faults = std::strtod(line.c_str(), nullptr);
  }
  closedir(tasks);
  return threads;
}

// One step by the functions of client and server, one after the other.
class Here {
 public:
  Here(int threads, const bool* measured) : threads_(threads), stages_(measured) {}

  void Step(const ContactProblemView& view) {
    grpc::ByteBuffer request, answer;
    v1::SolveSessionRequest message;
    v1::SolveSessionResponse response;
    stages_.Run("client", "request from the arrays",
                [&] { request = client::StepRequestBytes(1, view, std::nullopt); });
    stages_.Run("server, long messages", "bounds and parse of the request",
                [&] { (void)ParseMessage(bounds_, &request, &message); });
    stages_.Run("server, solver thread", "indices, islands, shards, bound of memory", [&] {
      const SolveRequest step{.problem = *DecodeProblem(message.step().problem())};
      (void)task_.Read(step, EngineLimits(), threads_);
    });
    stages_.Run("server, solver thread", "guess by names",
                [&] { (void)task_.StartFrom(velocities_); });
    stages_.Run(kAllThreads, "shards read, laid out, solved",
                [&] { (void)task_.Solve(&solver_, {}, {}, {}, &solution_); });
    stages_.Run("server, solver thread", "velocities kept",
                [&] { velocities_.Remember(task_.trees(), solution_); });
    stages_.Run("server, solver thread", "answer encoded", [&] {
      EncodeSolution(solution_, SolutionMask().set(),
                     response.mutable_step()->mutable_outcome()->mutable_solution());
    });
    stages_.Run("server, solver thread", "request freed", [&] { message.Clear(); });
    stages_.Run("server, solver thread", "answer serialized",
                [&] { answer = sap::Serialize(response); });
    stages_.Run("server, solver thread", "answer freed", [&] { response.Clear(); });
    stages_.Run("client", "answer to arrays", [&] {
      v1::SolveSessionResponse received;
      (void)grpc::SerializationTraits<v1::SolveSessionResponse>::Deserialize(&answer, &received);
      (void)client::FromMessage(received.step().outcome());
    });
  }

  const ContactSolution& solution() const { return solution_; }
  void Print() const { stages_.Print(); }

 private:
  const int threads_;
  const MessageBounds bounds_{v1::SolveSessionRequest::descriptor(), EngineLimits()};
  SolveTask task_;
  Solver solver_{nullptr};
  NamedVelocities velocities_;
  ContactSolution solution_;
  Stages stages_;
};

struct Request {
  std::string server, scene;
  int bodies{0}, from{0}, to{0}, threads{2}, connections{1};
};

int Run(const Request& request) {
  const auto& [server, scene, bodies, from, to, threads, connections] = request;
  const test::TemporaryDirectory directory;
  const test::ChildProcess process({server, "--listen", "unix:" + (directory / "socket").string(),
                                    "--threads", std::to_string(threads)});
  auto client =
      client::Client::Connect(process.WaitForLine("listening on ", std::chrono::seconds(60)),
                              {.scene_connections = connections});
  if (!client) return std::fprintf(stderr, "%s\n", client.error().message.c_str()), 1;
  auto session = client->OpenSession();
  bool measured = false;
  Here here(threads, &measured);
  std::map<std::string, ThreadUse> before;
  std::vector<double> client_s, client_faults, wall_s;
  const auto solve = [&](const ContactProblemView& view,
                         int step) -> tl::expected<const ContactSolution*, ProblemError> {
    measured = step >= from;
    here.Step(view);
    if (step == from) before = ThreadsOf(process.pid());
    const double start_s = ThreadTime_s();
    const int64_t faults = ThreadFaults();
    const auto start = std::chrono::steady_clock::now();
    const auto answer = session->Step(view);
    if (!answer || answer->velocity != here.solution().velocity) {
      std::fprintf(stderr, "step %d: the session has no answer, or other bits\n", step);
      std::exit(1);
    }
    if (measured) {
      client_s.push_back(ThreadTime_s() - start_s);
      client_faults.push_back(static_cast<double>(ThreadFaults() - faults));
      wall_s.push_back(SecondsSince(start));
    }
    return &here.solution();
  };
  const auto done = RunSceneByViews(scene, bodies, false, to, solve);
  if (!done) return std::fprintf(stderr, "step_stages: %s\n", done.error().c_str()), 1;
  here.Print();
  PrintLine("client", "session step, in all", Median(client_s), Median(client_faults));
  std::vector<ThreadUse> uses;
  for (const auto& [thread, use] : ThreadsOf(process.pid())) {
    const double steps = to - from;
    uses.push_back({(use.seconds - before[thread].seconds) / steps,
                    (use.faults - before[thread].faults) / steps});
  }
  std::ranges::sort(uses, std::greater(), &ThreadUse::seconds);
  for (size_t i = 0; i < uses.size() && uses[i].seconds > kLeast_s; ++i) {
    PrintLine("server, thread " + std::to_string(i + 1), "session step, in all", uses[i].seconds,
              uses[i].faults);
  }
  PrintLine("wall clock", "session step, in all", Median(wall_s), 0);
  return 0;
}

}  // namespace
}  // namespace sap::bench

int main(int argc, char** argv) {
  sap::bench::Request request;
  CLI::App app("Times the stages of a session step.", "step_stages");
  app.add_option("SERVER", request.server)->required();
  app.add_option("SCENE", request.scene)->required();
  app.add_option("BODIES", request.bodies)->required();
  app.add_option("FROM", request.from)->required();
  app.add_option("TO", request.to)->required();
  app.add_option("--threads", request.threads)->check(CLI::PositiveNumber);
  app.add_option("--connections", request.connections)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return sap::bench::Run(request);
}
