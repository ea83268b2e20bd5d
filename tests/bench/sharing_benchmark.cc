// What islands that the problems of a batch share cost and save, on one thread.
//
//   sharing_benchmark [--repetitions N] [--only batch]
//
// `islands`: processor time per island, of heaps of one to eight boxes in one problem: solved from
// v* and from its answer, looked up in vain and then solved, and copied. `batches`: 64 problems of
// 30 heaps as separate solves and as a batch, with 29 heaps in common, or none.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "solver/engine/engine.h"
#include "solver/split/shared_islands.h"
#include "tests/support/random_problem.h"

namespace {

using sap::test::Heaps;
using sap::test::ProblemArrays;

int g_repetitions = 21;

double ProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The least of some runs of a body that follows a preparation.
template <typename Prepare, typename Body>
double LeastTime(const Prepare& prepare, const Body& body) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < g_repetitions; ++i) {
    prepare();
    const double start = ProcessorTime();
    body();
    least = std::min(least, ProcessorTime() - start);
  }
  return least;
}

class Solves {
 public:
  sap::ContactSolution One(const ProblemArrays& problem, sap::SharedIslands* shared) {
    sap::ContactSolution solution;
    const auto status = engine_.Answer(
        {.problem = problem.View(), .shared = shared}, {},
        [&](const sap::SolveTask&, sap::SolveAnswer& answer) { solution = answer.solution; });
    if (!status) std::printf("%s\n", status.error().message.c_str());
    return solution;
  }

 private:
  sap::Engine engine_{1};
};

// A row of the table of islands.
void PrintIslands(int height, bool warm) {
  constexpr int kIslands = 100;
  Solves solves;
  ProblemArrays problem = Heaps(1, kIslands, height);
  if (warm) problem.bodies.guess_velocity = solves.One(problem, nullptr).velocity;
  std::unique_ptr<sap::SharedIslands> shared;
  const auto empty = [&] {
    shared = std::make_unique<sap::SharedIslands>(sap::SharedIslands::kMostBytes, 1);
  };
  const auto solve_shared = [&] { (void)solves.One(problem, shared.get()); };
  const double solved = LeastTime([] {}, [&] { (void)solves.One(problem, nullptr); });
  const double in_vain = LeastTime(empty, solve_shared);
  const double copied = LeastTime(
      [&] {
        empty();
        solve_shared();
      },
      solve_shared);
  std::printf("%11d %-6s %8.2f %8.2f %8.2f\n", 4 * height, warm ? "answer" : "v*",
              1e6 * solved / kIslands, 1e6 * in_vain / kIslands, 1e6 * copied / kIslands);
}

// Problem i differs from the others in v* of one body of each heap, or of one heap.
std::vector<ProblemArrays> Batch(int height, bool unlike) {
  constexpr int kHeaps = 30;
  std::vector<ProblemArrays> problems(64, Heaps(2, kHeaps, height));
  for (int i = 0; i < 64; ++i) {
    for (int heap = 0; heap < kHeaps; ++heap) {
      if (unlike || heap == i % kHeaps) {
        problems[i].bodies.free_motion_velocity[6 * height * heap] += 1e-3 * (i + 1);
      }
    }
  }
  return problems;
}

void PrintBatch(int height, bool unlike, const std::string& only) {
  Solves solves;
  const std::vector<ProblemArrays> problems = Batch(height, unlike);
  const auto time = [&](bool batch) {
    return LeastTime([] {},
                     [&] {
                       sap::SharedIslands shared;
                       for (const ProblemArrays& problem : problems) {
                         (void)solves.One(problem, batch ? &shared : nullptr);
                       }
                     });
  };
  const double separate = only == "batch" ? 0 : time(false);
  const double batch = only == "separate" ? 0 : time(true);
  std::printf("%5d %-6s %9.2f %9.2f %6.3f\n", height, unlike ? "none" : "29", 1e3 * separate,
              1e3 * batch, batch / separate);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Islands that the problems of a batch share.");
  std::string only, scene = "all";
  int height = 0;
  app.add_option("--repetitions", g_repetitions, "runs, of which the least counts");
  app.add_option("--only", only, "batch or separate: only these solves of batches, to be counted");
  app.add_option("--common", scene, "29 or none: only the batch with so many heaps in common");
  app.add_option("--height", height, "only heaps of so many boxes");
  CLI11_PARSE(app, argc, argv);
  if (only.empty()) {
    std::printf("constraints from    us: solved  in vain   copied\n");
    for (const bool warm : {true, false}) {
      for (int boxes = 1; boxes <= 8; ++boxes) PrintIslands(boxes, warm);
    }
  }
  std::printf("boxes common ms: solves     batch  ratio\n");
  for (const int boxes : {4, 10, 40}) {
    if (height != 0 && height != boxes) continue;
    if (scene != "none") PrintBatch(boxes, /*unlike=*/false, only);
    if (scene != "29") PrintBatch(boxes, /*unlike=*/true, only);
  }
}
