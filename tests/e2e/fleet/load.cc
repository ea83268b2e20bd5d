#include "tests/e2e/fleet/load.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/await.h"

namespace sap::test {

std::string Name(Work work) {
  static const std::map<Work, std::string> kNames{{Work::kSessions, "Sessions"},
                                                  {Work::kUnary, "Unary"},
                                                  {Work::kBatch, "Batch"},
                                                  {Work::kStreamBatch, "StreamBatch"}};
  return kNames.at(work);
}

Load::Load(Work work, const std::string& address, const client::ConnectOptions& options,
           int clients, Connections connections) {
  const auto connect = [&](Language language) -> std::shared_ptr<TestedClient> {
    auto connected = Connect(language, address, options);
    EXPECT_TRUE(connected.has_value()) << connected.error().message;
    return connected ? std::move(*connected) : nullptr;
  };
  std::map<Language, std::shared_ptr<TestedClient>> shared;
  for (int i = 0; i < clients; ++i) {
    State& state = states_.emplace_back();
    const Language language = LanguageOf(i);
    if (connections == Connections::kOwn) {
      state.served = connect(language);
    } else {
      if (!shared.contains(language)) shared[language] = connect(language);
      state.served = shared[language];
    }
    if (state.served == nullptr) state.ended = true;
    if (state.served != nullptr) clients_.emplace_back([=, this, &state] { Run(i, work, &state); });
  }
}

Load::~Load() { Finish(); }

void Load::Run(int client, Work work, State* state) {
  const Course course{.more = [this](int) { return !finishing_; },
                      .after = [state](int answered) { state->answered = answered; },
                      .took =
                          [this](std::chrono::nanoseconds time) {
                            int64_t slowest = slowest_ns_;
                            while (slowest < time.count() &&
                                   !slowest_ns_.compare_exchange_weak(slowest, time.count())) {
                            }
                          }};
  static const std::map<Work, CallKind> kCalls{{Work::kUnary, CallKind::kSolve},
                                               {Work::kBatch, CallKind::kBatch},
                                               {Work::kStreamBatch, CallKind::kStreamBatch}};
  TestedClient* const served = state->served.get();
  state->ledger = work == Work::kSessions ? DriveSession(served, client, course)
                                          : DriveCalls(served, kCalls.at(work), client, course);
  state->ended = true;
}

bool Load::AwaitOutcomes(int more) {
  std::vector<int> enough;
  for (const State& state : states_) enough.push_back(state.answered + more);
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    if (!Await([&] { return state.answered >= enough[i] || state.ended; })) return false;
    if (state.ended) return false;
  }
  return true;
}

std::vector<Ledger> Load::Finish() {
  finishing_ = true;
  for (std::thread& client : clients_) client.join();
  clients_.clear();
  std::vector<Ledger> ledgers;
  for (const State& state : states_) ledgers.push_back(state.ledger);
  return ledgers;
}

}  // namespace sap::test
