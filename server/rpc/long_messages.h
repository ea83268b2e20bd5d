// A thread that parses long messages, so that no call behind them on the receiving threads waits.
// Not one of the arena: a long solve would delay the parse, and what a call asks for would not be
// known while it waits. Clients take turns.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <thread>

#include "server/scheduling/client_account.h"

namespace sap {

// Parsing takes some 0.3 ns per byte and 100 ns per message within, so shorter messages delay the
// calls behind them by less than a millisecond.
inline constexpr int64_t kLongMessage_bytes = 1 << 20;

// Thread-safe.
class LongMessages {
 public:
  struct Task {
    void (*run)(void* context);
    void* context;
  };

  // The thread has the nice value of the solver threads.
  explicit LongMessages(int nice);
  // Requires that no task is left.
  ~LongMessages() = default;

  // The account must live until the task has run.
  void Push(const ClientAccount* account, Task task);

 private:
  struct Turn {
    const ClientAccount* account;
    std::deque<Task> tasks;  // not empty
  };

  void Run(const std::stop_token& stop, int nice);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::list<Turn> turns_;  // the next client first
  std::jthread thread_;
};

}  // namespace sap
