// Clients of all languages that keep a fleet busy with one kind of work, and check every outcome by
// ledger.h.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/ledger.h"

namespace sap::test {

enum class Work { kSessions, kUnary, kBatch, kStreamBatch };

std::string Name(Work work);
inline void PrintTo(Work work, std::ostream* out) { *out << Name(work); }

// Whether each client has connections of its own, or those of a language share those of one.
enum class Connections { kOwn, kOne };

class Load {
 public:
  // By default more clients than servers, so that each server has some. The languages take turns.
  Load(Work work, const std::string& address, const client::ConnectOptions& options,
       int clients = 4, Connections connections = Connections::kOwn);
  ~Load();

  // Waits until every client had so many more outcomes. False if one has ended before.
  bool AwaitOutcomes(int more);

  // The longest time from the sending of a step or call to its outcome, since the last question.
  double TakeSlowest_ms() { return 1e-6 * static_cast<double>(slowest_ns_.exchange(0)); }

  // Sends no more, waits for what is in flight, and returns what the clients noted.
  std::vector<Ledger> Finish();

 private:
  struct State {
    std::shared_ptr<TestedClient> served;
    std::atomic<int> answered{0};
    std::atomic<bool> ended{false};
    Ledger ledger;
  };

  void Run(int client, Work work, State* state);

  std::atomic<bool> finishing_{false};
  std::atomic<int64_t> slowest_ns_{0};
  std::deque<State> states_;  // do not move
  std::vector<std::thread> clients_;
};

}  // namespace sap::test
