#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/commands/commands.h"
#include "client/cpp/commands/interrupt.h"
#include "client/cpp/commands/progress.h"
#include "client/cpp/commands/solve_flags.h"
#include "client/cpp/recording.h"
#include "client/cpp/resting_islands.h"
#include "client/cpp/simulation/picture.h"
#include "client/cpp/simulation/run_report.h"
#include "client/cpp/simulation/simulation.h"

namespace sap::client {
namespace {

using simulation::Scene;
using simulation::SceneOptions;
using simulation::ShapeMix;
using simulation::Simulation;
using simulation::StepStatistics;

struct SimulateFlags {
  std::string scene;
  SceneOptions scene_options;
  double time_s{2};
  double step_s{0.01};
  SolveFlags solve;
  std::optional<RestFlag> rest;  // bodies at rest are left out
  std::string csv;
  std::string record;
  std::string picture;
};

std::string Caption(const SimulateFlags& flags, const Simulation& simulation,
                    const StepStatistics& last) {
  std::array<char, 256> text;
  std::snprintf(text.data(), text.size(),
                "%s: %zu bodies after %.2f s, %d contacts, %d islands, the largest with %d dofs",
                flags.scene.c_str(), simulation.scene().bodies.size(),
                simulation.steps_done() * simulation.time_step(), last.contacts, last.islands,
                last.largest_island_dofs);
  return text.data();
}

// Runs all steps, or until Ctrl-C. False: a step had no answer; its error is printed.
bool RunSteps(const SimulateFlags& flags, Simulation* simulation,
              std::vector<StepStatistics>* steps) {
  const auto count = static_cast<int>(std::llround(flags.time_s / flags.step_s));
  Progress progress(flags.scene, flags.time_s, "s");
  while (simulation->steps_done() < count && !Interrupted()->load()) {
    const auto step = simulation->Step();
    if (!step && Interrupted()->load()) break;
    if (!step) {
      progress.Clear();
      std::fprintf(stderr, "step %d has no answer\n", simulation->steps_done());
      Report(step.error());
      return false;
    }
    if (step->failed_islands > 0) {
      progress.Clear();
      std::fprintf(stderr, "step %d: %d of %d islands not solved, %s\n", step->step,
                   step->failed_islands, step->islands, Name(step->worst_status));
    }
    steps->push_back(*step);
    progress.Show(simulation->steps_done() * flags.step_s);
  }
  return true;
}

void PrintSummary(const SimulateFlags& flags, const Simulation& simulation,
                  const std::vector<StepStatistics>& steps, int failed) {
  std::printf(
      "%s: %zu bodies, %d steps of %g ms, solved by %s\n", flags.scene.c_str(),
      simulation.scene().bodies.size(), simulation.steps_done(), 1e3 * flags.step_s,
      flags.solve.server == "embedded:" ? "an embedded server" : flags.solve.server.c_str());
  std::printf("%s", simulation::SummaryTable(steps).c_str());
  if (flags.rest) {
    std::printf("%s", simulation::RestSummary(steps, simulation.scene().bodies.size()).c_str());
  }
  std::printf("failed steps: %d\n", failed);
}

// Solves steps in a session and appends each to the recording, if there is one.
class SessionSolver {
 public:
  static tl::expected<SessionSolver, Error> Open(const SimulateFlags& flags) {
    auto client = Client::Connect(flags.solve.server, flags.solve.connect);
    if (!client) return tl::unexpected(client.error());
    SolveOptions options = flags.solve.options;
    // A recording needs all fields of an answer.
    if (flags.record.empty()) {
      options.response_mask = {"velocity", "island_of_tree", "islands", "timings"};
    }
    auto session = client->OpenSession(options);
    if (!session) return tl::unexpected(session.error());
    SessionSolver solver(std::move(*session), options);
    if (flags.record.empty()) return solver;
    const auto info = client->Info();
    if (!info) return tl::unexpected(info.error());
    auto recording = RecordingWriter::Create(flags.record, *info);
    if (!recording) return tl::unexpected(recording.error());
    solver.recording_ = std::move(*recording);
    return solver;
  }

  tl::expected<Solution, Error> Step(const Problem& problem) {
    const auto start = std::chrono::steady_clock::now();
    auto solution = session_.Step(ViewOf(problem), std::nullopt, {.cancelled = Interrupted()});
    const std::chrono::duration<double> duration = std::chrono::steady_clock::now() - start;
    const bool interrupted = !solution && Interrupted()->load();
    if (!recording_ || interrupted) return solution;
    const auto kept = recording_->Append(problem, options_, solution, duration.count());
    if (!kept) return tl::unexpected(kept.error());
    return solution;
  }

  // Closes the recording, if there is one. An error if a part of it was not written.
  tl::expected<void, Error> Close() {
    if (recording_) return recording_->Close();
    return {};
  }

 private:
  SessionSolver(Session session, SolveOptions options)
      : session_(std::move(session)), options_(std::move(options)) {}

  Session session_;
  SolveOptions options_;
  std::optional<RecordingWriter> recording_;
};

// Who is left out of the steps; absent: nobody. The horizon becomes a whole number of steps.
tl::expected<std::optional<RestingIslands>, Error> MakeResting(const SimulateFlags& flags) {
  if (!flags.rest) return std::nullopt;
  auto resting = RestingIslands::Make({.horizon = flags.rest->horizon,
                                       .tolerance = flags.rest->tolerance,
                                       .time_step = flags.step_s});
  if (!resting) return tl::unexpected(resting.error());
  return std::move(*resting);
}

int Simulate(SimulateFlags flags) {
  if (flags.time_s / flags.step_s > std::numeric_limits<int>::max()) {
    return Report({ErrorCode::kInvalidArgument, "--time is more than 2^31 times --step", ""});
  }
  const auto scene = simulation::MakeScene(flags.scene, flags.scene_options);
  if (!scene) return Report({ErrorCode::kInvalidArgument, scene.error(), ""});
  auto resting = MakeResting(flags);
  if (!resting) return Report(resting.error());
  if (*resting) flags.solve.options.solver.rest = {.horizon = (*resting)->horizon()};
  auto solver = SessionSolver::Open(flags);
  if (!solver) return Report(solver.error());
  Simulation simulation(
      *scene, flags.step_s, [&](const Problem& problem) { return solver->Step(problem); },
      std::move(*resting));

  std::vector<StepStatistics> steps;
  const bool finished = RunSteps(flags, &simulation, &steps);
  int failed = 0;
  for (const StepStatistics& step : steps) failed += step.failed_islands > 0;
  PrintSummary(flags, simulation, steps, failed);
  int exit_code = !finished ? kFailed : failed > 0 ? kNotSolved : 0;
  if (Interrupted()->load()) exit_code = kInterrupted;
  if (const auto closed = solver->Close(); !closed) exit_code = Report(closed.error());
  if (!flags.csv.empty()) {
    exit_code = std::max(exit_code, Write(simulation::StepsAsCsv(steps), flags.csv));
  }
  if (!flags.picture.empty() && !steps.empty()) {
    const std::string picture =
        simulation::DrawPicture(simulation.scene(), simulation.IslandOfBody(),
                                {.caption = Caption(flags, simulation, steps.back()),
                                 .note = "One color per island of bodies in contact; gray: no "
                                         "contact."});
    exit_code = std::max(exit_code, Write(picture, flags.picture));
  }
  return exit_code;
}

void AddSceneOptions(CLI::App* command, const std::shared_ptr<SimulateFlags>& flags) {
  const std::map<std::string, ShapeMix> shapes{
      {"mixed", ShapeMix::kMixed}, {"boxes", ShapeMix::kBoxes}, {"spheres", ShapeMix::kSpheres}};
  SceneOptions* options = &flags->scene_options;
  command->add_option("SCENE", flags->scene, "Scene to simulate")
      ->required()
      ->check(CLI::IsMember(simulation::SceneNames()));
  command->add_option("--bodies", options->bodies, "Number of bodies");
  CLI::Option* walls = command->add_flag_callback(
      "--walls", [options] { options->walls = true; }, "With the walls of a bin");
  command
      ->add_flag_callback(
          "--no-walls", [options] { options->walls = false; }, "On open ground")
      ->excludes(walls);
  command->add_option("--shape", options->shapes, "mixed, boxes or spheres")
      ->transform(OneOf(shapes));
  command
      ->add_option("--seed", options->seed, "Seed of shapes, positions and orientations; default 0")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace

void AddSimulateCommand(CLI::App* app, Run* run) {
  CLI::App* command =
      app->add_subcommand("simulate", "Simulate rigid bodies, each step solved in a session");
  const auto flags = std::make_shared<SimulateFlags>();
  AddSceneOptions(command, flags);
  command->add_option("--time", flags->time_s, "Simulated time in seconds; default 2")
      ->check(Between(0, 1e6));
  command->add_option("--step", flags->step_s, "Time step in seconds; default 0.01")
      ->check(Between(1e-6, 1));
  AddServerFlags(command, &flags->solve);
  AddSolverFlags(command, &flags->solve);
  AddRestFlag(command,
              "HORIZON,TOLERANCE: leave out bodies that move less than TOLERANCE [m] within so "
              "many seconds, until something comes near; each takes a long step per horizon",
              &flags->solve.options, &flags->rest);
  command
      ->add_option("--csv", flags->csv,
                   "File with one row per step; contacts include gaps that may close in the step")
      ->check(OutputFile());
  command->add_option("--picture", flags->picture, "SVG file with the final state")
      ->check(OutputFile());
  command->add_option("--record", flags->record, "Recording of every step, for replay");
  command->callback([=] { *run = [=] { return Simulate(*flags); }; });
}

}  // namespace sap::client
