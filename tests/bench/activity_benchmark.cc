// Times steps of scenes in which most bodies rest: a scene settles, then two copies go on in turn,
// one with all bodies awake, the other without those at rest (client/cpp/resting_islands.h).
//
//   activity_benchmark [--csv] SCENE BODIES SETTLE_S MEASURE_S MOVING
//
// Steps of 10 ms, horizon 0.25 s, tolerance 0.1 mm, one thread, in process. Of the bodies MOVING,
// evenly chosen, are pushed sideways by 0.2 m/s every half a second, to and fro. Shares are of the
// body steps of the time that is measured: steps, and long steps. Times are processor times per
// step, collision and all else of the simulation included.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>

#include "client/cpp/client.h"
#include "client/cpp/simulation/simulation.h"

namespace {

using sap::client::RestingIslands;
using sap::simulation::Scene;
using sap::simulation::Simulation;
using sap::simulation::Vector3d;

constexpr double kStep = 0.01;
constexpr double kHorizon = 0.25;
constexpr double kTolerance = 1e-4;
constexpr int kStepsBetweenPushes = 50;
constexpr double kPush = 0.2;  // m/s

struct Request {
  bool csv{false};
  std::string scene;
  int bodies{0};
  double settle_s{0};
  double measure_s{0};
  int moving{0};
};

double ProcessorTime_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A simulation in process, with what its steps came to.
class Run {
 public:
  Run(const Scene& scene, bool leaves_out)
      : client_(*sap::client::Client::Connect("embedded:", {.threads = 1})),
        simulation_(
            scene, kStep,
            [this](const sap::client::Problem& problem) {
              return client_.Solve(problem, options_);
            },
            leaves_out ? std::optional(*RestingIslands::Make(
                             {.horizon = kHorizon, .tolerance = kTolerance, .time_step = kStep}))
                       : std::nullopt) {
    options_.response_mask = {"velocity", "island_of_tree", "islands", "timings"};
    if (leaves_out) options_.solver.rest = {.horizon = kHorizon};
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void Step() {
    const double start = ProcessorTime_s();
    const auto step = simulation_.Step();
    seconds_ += ProcessorTime_s() - start;
    if (!step) {
      std::fprintf(stderr, "%s\n", step.error().message.c_str());
      std::exit(1);
    }
    bodies_ += step->bodies;
    long_step_bodies_ += step->long_step_bodies;
    woken_by_pair_ += static_cast<double>(step->rest.woken_by_pair);
    refused_ += static_cast<double>(step->rest.long_steps_refused);
  }

  void Push(int moving, double speed) {
    const auto count = static_cast<int>(scene().bodies.size());
    for (int i = 0; i < moving; ++i) {
      const auto body = static_cast<int>((i + 1LL) * count / moving - 1);
      const auto& now = scene().bodies[body];
      simulation_.SetVelocity(body, {now.velocity + Vector3d(speed, 0, 0), now.angular_velocity});
    }
  }

  const Scene& scene() const { return simulation_.scene(); }
  double seconds() const { return seconds_; }
  double bodies() const { return bodies_; }
  double long_step_bodies() const { return long_step_bodies_; }
  double woken_by_pair() const { return woken_by_pair_; }
  double refused() const { return refused_; }

 private:
  sap::client::Client client_;
  sap::client::SolveOptions options_;
  Simulation simulation_;
  double seconds_{0}, bodies_{0}, long_step_bodies_{0}, woken_by_pair_{0}, refused_{0};
};

double Farthest_m(const Scene& a, const Scene& b) {
  double farthest = 0;
  for (size_t i = 0; i < a.bodies.size(); ++i) {
    farthest = std::max(farthest, (a.bodies[i].position - b.bodies[i].position).norm());
  }
  return farthest;
}

int Measure(const Request& request) {
  const auto scene = sap::simulation::MakeScene(request.scene, {.bodies = request.bodies});
  if (!scene) {
    std::fprintf(stderr, "%s\n", scene.error().c_str());
    return 2;
  }
  Run settling(*scene, false);
  for (long i = std::lround(request.settle_s / kStep); i > 0; --i) settling.Step();
  Run awake(settling.scene(), false), resting(settling.scene(), true);
  const long steps = std::lround(request.measure_s / kStep);
  for (long i = 0; i < steps; ++i) {
    if (i % kStepsBetweenPushes == 0) {
      const double speed = i / kStepsBetweenPushes % 2 == 0 ? kPush : -kPush;
      for (Run* run : {&awake, &resting}) run->Push(request.moving, speed);
    }
    awake.Step();
    resting.Step();
  }
  const double all = static_cast<double>(steps) * request.bodies;
  const double awake_ms = 1e3 * awake.seconds() / static_cast<double>(steps);
  const double resting_ms = 1e3 * resting.seconds() / static_cast<double>(steps);
  const char* format =
      request.csv ? "%s;%d;%d;%.2f;%.2f;%.3f;%.3f;%.3f;%.1f;%.0f;%.0f\n"
                  : "%s, %d bodies, %d pushed: %.2f %% of the body steps and %.2f %% long ones; "
                    "%.3f ms a step all awake, %.3f ms without those at rest, ratio %.3f; farthest "
                    "apart %.1f um; islands woken by a pair %.0f, long steps refused %.0f\n";
  std::printf(format, request.scene.c_str(), request.bodies, request.moving,
              100 * resting.bodies() / all, 100 * resting.long_step_bodies() / all, awake_ms,
              resting_ms, resting_ms / awake_ms, 1e6 * Farthest_m(awake.scene(), resting.scene()),
              resting.woken_by_pair(), resting.refused());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times steps of scenes in which most bodies rest");
  Request request;
  app.add_flag("--csv", request.csv, "One row of numbers, separated by semicolons");
  app.add_option("SCENE", request.scene)->required();
  app.add_option("BODIES", request.bodies)->required();
  app.add_option("SETTLE_S", request.settle_s)->required();
  app.add_option("MEASURE_S", request.measure_s)->required();
  app.add_option("MOVING", request.moving)->required();
  CLI11_PARSE(app, argc, argv);
  return Measure(request);
}
