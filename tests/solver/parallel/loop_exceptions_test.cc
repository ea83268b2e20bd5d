// A body that fails ends its loop and nothing else: its opener gets the exception, no thread still
// runs the body by then, and the arena goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "solver/parallel/task_arena.h"

namespace sap::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono_literals::operator""us;

constexpr int kRounds = 300;

class LoopExceptionsTest : public testing::TestWithParam<int> {
 protected:
  // Runs body(i) for all i in [0, count) by either kind of loop.
  template <typename Body>
  void Loop(bool pieces, int count, Body&& body) {
    if (pieces) {
      arena_.ParallelForPieces(count, body);
    } else {
      arena_.ParallelFor(count, body);
    }
  }

  // Every thread still takes part, and every index is still taken once.
  void ExpectCorrectLoops() {
    std::vector<int> value(100, 0);
    for (const bool pieces : {false, true}) {
      Loop(pieces, 100, [&](int i) { value[i] += i; });
    }
    for (int i = 0; i < 100; ++i) ASSERT_EQ(value[i], 2 * i);
    const int threads = arena_.num_threads();
    std::atomic<int> present{0};
    arena_.ParallelFor(threads, [&](int) {
      ++present;
      while (present < threads) std::this_thread::yield();
    });
    ASSERT_EQ(present, threads);
  }

  TaskArena arena_{GetParam(), Sharing::kAlways};
};

TEST_P(LoopExceptionsTest, TheOpenerGetsTheExceptionOfAnyIndex) {
  for (const bool pieces : {false, true}) {
    for (const int count : {1, 2, 37}) {
      for (const int bad : {0, count / 2, count - 1}) {
        for (int round = 0; round < kRounds / 10; ++round) {
          try {
            Loop(pieces, count, [&](int i) {
              if (i == bad) throw std::runtime_error("index " + std::to_string(i));
            });
            FAIL() << bad << " of " << count;
          } catch (const std::runtime_error& error) {
            EXPECT_EQ(error.what(), "index " + std::to_string(bad));
          }
        }
        ExpectCorrectLoops();
      }
    }
  }
}

// The context of a loop is on the stack of its opener: no thread may use it after the opener has
// returned.
TEST_P(LoopExceptionsTest, NoThreadRunsTheBodyWhenTheOpenerHasTheException) {
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> inside{0};
    EXPECT_THROW(arena_.ParallelFor(50,
                                    [&](int i) {
                                      ++inside;
                                      if (i == round % 7) {
                                        --inside;
                                        throw std::bad_alloc();
                                      }
                                      // To yield would take far longer on a busy machine.
                                      const auto end = Clock::now() + 20us;
                                      while (Clock::now() < end) {
                                      }
                                      --inside;
                                    }),
                 std::bad_alloc);
    ASSERT_EQ(inside, 0);
  }
  ExpectCorrectLoops();
}

TEST_P(LoopExceptionsTest, ThatOfAHelperReachesTheOpener) {
  if (GetParam() == 1) return;  // there is no helper
  const std::thread::id opener = std::this_thread::get_id();
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<bool> helped{false};
    EXPECT_THROW(arena_.ParallelFor(2,
                                    [&](int) {
                                      if (std::this_thread::get_id() == opener) {
                                        while (!helped) std::this_thread::yield();
                                        return;
                                      }
                                      helped = true;
                                      throw std::bad_alloc();
                                    }),
                 std::bad_alloc);
  }
  ExpectCorrectLoops();
}

TEST_P(LoopExceptionsTest, OfManyOneIsHandedOn) {
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_THROW(Loop(round % 2 == 0, 20, [](int) { throw std::bad_alloc(); }), std::bad_alloc);
  }
  ExpectCorrectLoops();
}

// As many begin as there are threads, where all come to their first index before one fails: a
// thread whose index has failed begins no other.
TEST_P(LoopExceptionsTest, IndicesThatHaveNotBegunAreLeftOut) {
  constexpr int kCount = 1'000'000;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> begun{0};
    EXPECT_THROW(Loop(round % 2 == 0, kCount,
                      [&](int) {
                        ++begun;
                        while (begun < GetParam()) std::this_thread::yield();
                        throw std::bad_alloc();
                      }),
                 std::bad_alloc);
    ASSERT_EQ(begun, GetParam());
  }
}

// One of three chains of tasks fails in its middle.
TEST_P(LoopExceptionsTest, TasksThatWaitForOneThatFailedAreLeftOut) {
  const TaskOrder order{
      {0, 1, 2}, {0, 0, 0, 1, 1, 1, 1, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 6, 6, 6}, {3, 4, 5, 6, 7, 8}};
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int> state(order.size());
    std::vector<std::atomic<int>> done(order.size());
    const auto body = [&](int task) {
      if (task == 4) throw std::runtime_error("in the middle");
      ++done[task];
    };
    EXPECT_THROW(arena_.ParallelForTasks(order, state.data(), body), std::runtime_error);
    EXPECT_EQ(done[1], 1);
    EXPECT_EQ(done[7], 0);
  }
  ExpectCorrectLoops();
}

TEST_P(LoopExceptionsTest, ThatOfAnInnerLoopPassesThroughTheOuterOne) {
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> passed{0};
    try {
      arena_.ParallelFor(6, [&](int i) {
        try {
          arena_.ParallelForPieces(9, [&](int j) {
            if (i == round % 6 && j == round % 9) throw std::runtime_error("inner");
          });
        } catch (const std::runtime_error&) {
          ++passed;
          throw;
        }
      });
      FAIL() << "round " << round;
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "inner");
    }
    ASSERT_EQ(passed, 1);
  }
  ExpectCorrectLoops();
}

TEST_P(LoopExceptionsTest, AnInnerLoopThatFailsAndIsCaughtEndsNoOuterOne) {
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> caught{0};
    arena_.ParallelFor(8, [&](int) {
      try {
        arena_.ParallelFor(4, [](int j) {
          if (j == 3) throw std::bad_alloc();
        });
      } catch (const std::bad_alloc&) {
        ++caught;
      }
    });
    ASSERT_EQ(caught, 8);
  }
}

TEST_P(LoopExceptionsTest, LoopsOfOtherCallersAreUnharmed) {
  std::vector<std::thread> callers;
  std::atomic<int> sum{0};
  std::atomic<int> failures{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, bad = caller % 2 == 0] {
      for (int round = 0; round < kRounds; ++round) {
        try {
          arena_.ParallelFor(20, [&](int i) {
            if (bad && i == round % 20) throw std::bad_alloc();
            if (!bad) sum += i;
          });
        } catch (const std::bad_alloc&) {
          ++failures;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 2 * kRounds * 190);
  EXPECT_EQ(failures, 2 * kRounds);
  ExpectCorrectLoops();
}

INSTANTIATE_TEST_SUITE_P(Threads, LoopExceptionsTest, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace sap::test
