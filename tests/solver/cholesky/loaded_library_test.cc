// The solver in a shared library that a process opens by dlopen with RTLD_LOCAL, as Python's ctypes
// and plug-ins do. This process contains neither the solver nor METIS.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/solver/cholesky/solve_pile.h"

namespace sap {
namespace {

constexpr int kNumBlocks = 700;  // dissected by the rule of kAuto
constexpr size_t kNumRows = 6 * kNumBlocks;

std::vector<double> SolvedByTheLibrary(Ordering ordering) {
  std::vector<double> x(kNumRows);
  void* const library = dlopen(SAP_PILE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << dlerror();
    return x;
  }
  const auto solve = reinterpret_cast<decltype(&SolvePile)>(dlsym(library, "SolvePile"));
  solve(kNumBlocks, ordering, x.data());
  return x;
}

std::vector<double> SolvedByAnExecutable() {
  std::vector<double> x(kNumRows);
  FILE* const output = popen((SAP_PRINT_PILE " " + std::to_string(kNumBlocks)).c_str(), "r");
  EXPECT_NE(output, nullptr);
  EXPECT_EQ(std::fread(x.data(), sizeof(double), x.size(), output), x.size());
  EXPECT_EQ(pclose(output), 0);
  return x;
}

// A thread that draws the random numbers of the process all the time.
class DrawingThread {
 public:
  DrawingThread()
      : thread_([this] {
          while (!done_.load()) random();
        }) {}
  ~DrawingThread() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

TEST(LoadedLibraryTest, SolvesToTheBitsOfAnExecutableWhileTheProcessDrawsRandomNumbers) {
  const std::vector<double> expected = SolvedByAnExecutable();
  const DrawingThread drawing;
  for (int repetition = 0; repetition < 5; ++repetition) {
    EXPECT_EQ(SolvedByTheLibrary(Ordering::kAuto), expected);
  }
}

// The test above shows nothing unless the pile is dissected.
TEST(LoadedLibraryTest, DissectsThePile) {
  EXPECT_NE(SolvedByTheLibrary(Ordering::kAuto), SolvedByTheLibrary(Ordering::kMinimumDegree));
}

TEST(LoadedLibraryTest, LeavesTheRandomNumbersOfTheProcessAlone) {
  srandom(1);
  const std::vector<long> expected{random(), random(), random()};
  srandom(1);
  std::vector<long> drawn;
  for (int i = 0; i < 3; ++i) {
    drawn.push_back(random());
    SolvedByTheLibrary(Ordering::kAuto);
  }
  EXPECT_EQ(drawn, expected);
}

// A process that has loaded METIS before the library, for all its libraries to use, has bound the
// functions of METIS to METIS itself.
TEST(LoadedLibraryTest, SolvesToTheBitsOfAnExecutableWhereMetisWasLoadedBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a new process
  const auto solve_beside_metis = [] {
    if (dlopen("libmetis.so.5", RTLD_NOW | RTLD_GLOBAL) == nullptr) std::_Exit(1);
    const DrawingThread drawing;
    const bool same = SolvedByTheLibrary(Ordering::kAuto) == SolvedByAnExecutable();
    std::_Exit(same ? 0 : 2);
  };
  EXPECT_EXIT(solve_beside_metis(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sap
