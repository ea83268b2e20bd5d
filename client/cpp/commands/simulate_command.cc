#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/commands/commands.h"
#include "client/cpp/commands/progress.h"
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
  std::string server{"embedded:"};
  ConnectOptions connect;
  SolveOptions solve;
  std::string csv;
  std::string picture;
};

int WriteFile(const std::string& path, const std::string& text) {
  if (path.empty()) return 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return 0;
  return Report({ErrorCode::kInvalidArgument, path + ": cannot write", ""});
}

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

// Steps to the end; false where a step has no answer, which is reported.
bool RunSteps(const SimulateFlags& flags, Simulation* simulation,
              std::vector<StepStatistics>* steps) {
  const auto count = static_cast<int>(std::llround(flags.time_s / flags.step_s));
  Progress progress(flags.scene, flags.time_s, "s");
  while (simulation->steps_done() < count) {
    const auto step = simulation->Step();
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
  std::printf("%s: %zu bodies, %d steps of %g ms, solved by %s\n", flags.scene.c_str(),
              simulation.scene().bodies.size(), simulation.steps_done(), 1e3 * flags.step_s,
              flags.server == "embedded:" ? "an embedded server" : flags.server.c_str());
  std::printf("%s", simulation::SummaryTable(steps).c_str());
  std::printf("failed steps: %d\n", failed);
}

int Simulate(const SimulateFlags& flags) {
  const auto scene = simulation::MakeScene(flags.scene, flags.scene_options);
  if (!scene) return Report({ErrorCode::kInvalidArgument, scene.error(), ""});
  auto client = Client::Connect(flags.server, flags.connect);
  if (!client) return Report(client.error());
  Simulation simulation(*scene, flags.step_s, [&](const Problem& problem) {
    return client->Solve(problem, flags.solve);
  });

  std::vector<StepStatistics> steps;
  const bool finished = RunSteps(flags, &simulation, &steps);
  int failed = 0;
  for (const StepStatistics& step : steps) failed += step.failed_islands > 0;
  PrintSummary(flags, simulation, steps, failed);
  int exit_code = !finished ? kFailed : failed > 0 ? kNotSolved : 0;
  exit_code = std::max(exit_code, WriteFile(flags.csv, simulation::StepsAsCsv(steps)));
  if (!flags.picture.empty() && !steps.empty()) {
    const std::string picture =
        simulation::DrawPicture(simulation.scene(), simulation.island_of_body(),
                                {.caption = Caption(flags, simulation, steps.back()),
                                 .note = "One color per island of bodies in contact; gray: "
                                         "touching nothing."});
    exit_code = std::max(exit_code, WriteFile(flags.picture, picture));
  }
  return exit_code;
}

void AddSceneOptions(CLI::App* command, const std::shared_ptr<SimulateFlags>& flags) {
  const std::map<std::string, ShapeMix> shapes{
      {"mixed", ShapeMix::kMixed}, {"boxes", ShapeMix::kBoxes}, {"spheres", ShapeMix::kSpheres}};
  SceneOptions* options = &flags->scene_options;
  command->add_option("SCENE", flags->scene, "What to simulate")
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
      ->transform(CLI::CheckedTransformer(shapes));
  command->add_option("--seed", options->seed, "Of shapes, places and turns, 0");
}

}  // namespace

void AddSimulateCommand(CLI::App* app, Run* run) {
  CLI::App* command =
      app->add_subcommand("simulate", "Simulate rigid bodies, every step solved by a server");
  const auto flags = std::make_shared<SimulateFlags>();
  flags->solve.response_mask = {"velocity", "island_of_tree", "islands", "timings"};
  SolverOptions* solver = &flags->solve.solver;
  const std::map<std::string, NewtonMethod> methods{{"plain", NewtonMethod::kPlain},
                                                    {"accelerated", NewtonMethod::kAccelerated}};
  AddSceneOptions(command, flags);
  command->add_option("--time", flags->time_s, "Seconds to simulate, 2")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--step", flags->step_s, "Time step in seconds, 0.01")
      ->check(CLI::Range(1e-6, 1.0));
  CLI::Option* server =
      command->add_option("--server", flags->server, "HOST:PORT or unix:PATH; embedded without");
  command->add_option("--tolerance", solver->relative_tolerance, "Relative tolerance, 1e-6");
  command->add_option("--newton", solver->newton, "plain or accelerated")
      ->transform(CLI::CheckedTransformer(methods));
  command->add_option("--threads", flags->connect.threads, "Solver threads when embedded")
      ->check(CLI::Range(1, 1024))
      ->excludes(server);
  command->add_option("--csv", flags->csv, "File for one row per step");
  command->add_option("--picture", flags->picture, "File for an SVG of the end");
  command->callback([=] { *run = [=] { return Simulate(*flags); }; });
}

}  // namespace sap::client
