// Cost of a shared loop in addition to its work.
//
//   loop_benchmark [--threads N...] [--loops N]
//
// Loops with the same work per index and equally many indices per thread: prints how much longer a
// loop takes than its work divided by the threads, the least mean of several rounds. Work
// and cores are those of one process that has the machine for itself.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <vector>

#include "solver/parallel/task_arena.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 15;
constexpr double kWorkMicroseconds[] = {0, 1, 5, 20};
constexpr int kIndicesPerThread[] = {1, 4};

// A chain of dependent operations: its time depends neither on memory nor on other cores.
double Work(int steps) {
  double x = 2;
  for (int i = 0; i < steps; ++i) x = x * 0.999 + 1e-3;
  return x;
}

double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double MicrosecondsPerStep() {
  volatile int steps = 100'000;
  volatile double sink = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point begin = Clock::now();
    sink = sink + Work(steps);
    least = std::min(least, MicrosecondsSince(begin) / steps);
  }
  return least;
}

struct alignas(64) Sink {
  volatile double value{0};
};

// Mean time of a loop [us].
template <typename RunLoop>
double LoopTime(int loops, int count, int steps, RunLoop&& run_loop) {
  std::vector<Sink> sinks(count);
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < loops; ++i) {
      run_loop(count, [&](int index) { sinks[index].value = Work(steps); });
    }
    least = std::min(least, MicrosecondsSince(begin) / loops);
  }
  return least;
}

void Run(int threads, int loops) {
  sap::TaskArena arena(threads);
  const double step = MicrosecondsPerStep();
  for (const int per_thread : kIndicesPerThread) {
    for (const bool pieces : {false, true}) {
      std::printf("%7d %7d %10s", threads, threads * per_thread,
                  pieces ? "neighbors" : "ascending");
      for (const double work : kWorkMicroseconds) {
        const double time = LoopTime(loops, threads * per_thread, static_cast<int>(work / step),
                                     [&](int count, auto&& body) {
                                       if (pieces) {
                                         arena.ParallelForPieces(count, body);
                                       } else {
                                         arena.ParallelFor(count, body);
                                       }
                                     });
        std::printf(" %8.2f", time - per_thread * work);
      }
      std::printf("\n");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> threads = {1, 2, 4, 8, 16};
  int loops = 500;
  CLI::App app("Times what shared loops cost in addition to their work.", "loop_benchmark");
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  app.add_option("--loops", loops)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  std::printf("%7s %7s %10s", "threads", "indices", "claimed");
  for (const double work : kWorkMicroseconds) std::printf("  %4g+/us", work);
  std::printf("\n");
  for (const int count : threads) Run(count, loops);
}
