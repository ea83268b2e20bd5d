#include "client/cpp/bench/load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>

namespace sap::client {
namespace {

using Clock = std::chrono::steady_clock;
using Status = tl::expected<void, Error>;

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double SecondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// One call at a time.
class Worker {
 public:
  Worker(const Load& load, std::shared_ptr<Client> client)
      : load_(load), client_(std::move(client)) {
    for (int i = 0; load.mode == LoadMode::kBatch && i < load.batch_size; ++i) {
      batch_.push_back(load.problems[i % load.problems.size()]);
    }
  }

  // Selects the problem of the next call.
  void GoTo(uint64_t number) { next_ = number; }

  Status Call() {
    switch (load_.mode) {
      case LoadMode::kUnary:
        return Answered(client_->Solve(NextProblem(), load_.options));
      case LoadMode::kSession:
        return Step();
      case LoadMode::kBatch:
        return SolveBatch();
    }
    return {};
  }

  void Count(Clock::time_point due, const Status& status, LoadResult* result) const {
    const double took_s = SecondsBetween(due, Clock::now());
    if (status) {
      result->answered.Add(took_s);
      result->queue_s += timings_.queue_s;
      result->decode_s += timings_.decode_s;
      result->solve_s += timings_.solve_s + timings_.islands_s;
      result->encode_s += timings_.encode_s;
    } else {
      if (status.error().code == ErrorCode::kResourceExhausted) result->refused.Add(took_s);
      ++result->failed[Name(status.error().code)];
    }
  }

 private:
  const Problem& NextProblem() { return load_.problems[next_++ % load_.problems.size()]; }

  Status Answered(const Client::SolveOutcome& outcome) {
    timings_ = outcome ? outcome->timings : PhaseTimings();
    if (!outcome) return tl::unexpected(outcome.error());
    return {};
  }

  // The call counts, not its problems; it fails with all of them.
  Status SolveBatch() {
    timings_ = {};
    const auto outcomes = client_->SolveBatch(batch_, load_.options);
    const auto solved = [](const auto& outcome) { return outcome.has_value(); };
    if (outcomes.empty() || std::ranges::any_of(outcomes, solved)) return {};
    return tl::unexpected(outcomes.front().error());
  }

  Status Step() {
    if (!session_ || !session_->open()) {
      auto opened = client_->OpenSession(load_.options);
      if (!opened) return tl::unexpected(opened.error());
      session_.emplace(std::move(*opened));
    }
    return Answered(session_->Step(NextProblem()));
  }

  const Load& load_;
  std::shared_ptr<Client> client_;
  std::vector<Problem> batch_;
  std::optional<Session> session_;
  PhaseTimings timings_;  // of the last call
  uint64_t next_{0};
};

// Shared by the workers: start and end of the measurement, and the number of the next call.
struct Schedule {
  Clock::time_point start;
  Clock::time_point measured;
  Clock::time_point end;
  const std::atomic<bool>* cancelled;
  std::atomic<uint64_t> next{0};

  bool Cancelled() const { return cancelled != nullptr && cancelled->load(); }
  bool Ended() const { return Cancelled() || Clock::now() >= end; }
  void SleepUntil(Clock::time_point due) const {
    constexpr std::chrono::milliseconds kSlice{20};
    while (!Cancelled() && Clock::now() < due) {
      std::this_thread::sleep_until(std::min(due, Clock::now() + kSlice));
    }
  }
};

// Counts the calls that start within the measurement, whenever they end.
void RunClosed(const Load& load, const Schedule& schedule, Worker* worker, LoadResult* result) {
  while (!schedule.Ended()) {
    const Clock::time_point due = Clock::now();
    const auto status = worker->Call();
    if (schedule.Cancelled()) return;
    if (due >= schedule.measured) worker->Count(due, status, result);
    if (!status && load.obey_retry_delay) {
      schedule.SleepUntil(Clock::now() + status.error().retry_after);
    }
  }
}

// Due time of call n, after the start [s].
double DueAt(const Load& load, uint64_t n) {
  const size_t count = load.due_s.size();
  if (count == 0) return static_cast<double>(n) / load.rate;
  // The pause before a repetition is the mean pause between problems.
  const double round_s = load.due_s.back() * (1 + 1 / std::max<double>(1, count - 1));
  const uint64_t rounds = n / count;
  return static_cast<double>(rounds) * std::max(round_s, 1e-6) + load.due_s[n % count];
}

void RunAtRate(const Load& load, Schedule* schedule, Worker* worker, LoadResult* result) {
  while (true) {
    const uint64_t number = schedule->next.fetch_add(1);
    const Clock::time_point due = schedule->start + Seconds(DueAt(load, number));
    if (due >= schedule->end) return;
    schedule->SleepUntil(due);
    if (schedule->Cancelled()) return;
    const Clock::time_point begin = Clock::now();
    if (begin >= schedule->end) {
      ++result->unsent;
      continue;
    }
    if (!load.due_s.empty()) worker->GoTo(number);
    const auto status = worker->Call();
    if (schedule->Cancelled()) return;
    if (begin >= schedule->measured) worker->Count(due, status, result);
  }
}

LoadResult Add(const std::vector<LoadResult>& parts) {
  LoadResult sum;
  for (const LoadResult& part : parts) {
    sum.answered.Add(part.answered);
    sum.refused.Add(part.refused);
    sum.unsent += part.unsent;
    for (const auto& [code, count] : part.failed) sum.failed[code] += count;
    sum.queue_s += part.queue_s;
    sum.decode_s += part.decode_s;
    sum.solve_s += part.solve_s;
    sum.encode_s += part.encode_s;
  }
  const double count = std::max<double>(1, static_cast<double>(sum.answered.count()));
  for (double* phase : {&sum.queue_s, &sum.decode_s, &sum.solve_s, &sum.encode_s}) *phase /= count;
  return sum;
}

}  // namespace

tl::expected<LoadResult, Error> RunLoad(const Load& load, const Connector& connect) {
  std::vector<std::shared_ptr<Client>> clients;
  const int connections = load.connections > 0 ? load.connections : load.workers;
  for (int i = 0; i < std::min(connections, load.workers); ++i) {
    auto client = connect();
    if (!client) return tl::unexpected(client.error());
    clients.push_back(std::make_shared<Client>(std::move(*client)));
  }
  std::vector<std::unique_ptr<Worker>> workers;
  workers.reserve(load.workers);
  for (int i = 0; i < load.workers; ++i) {
    workers.push_back(std::make_unique<Worker>(load, clients[i % clients.size()]));
  }
  Schedule schedule;
  schedule.start = Clock::now();
  schedule.measured = schedule.start + Seconds(load.warmup_s);
  schedule.end = schedule.measured + Seconds(load.duration_s);
  schedule.cancelled = load.cancelled;
  std::vector<LoadResult> results(workers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.emplace_back([&, i] {
      if (load.rate > 0 || !load.due_s.empty()) {
        RunAtRate(load, &schedule, workers[i].get(), &results[i]);
      } else {
        RunClosed(load, schedule, workers[i].get(), &results[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  LoadResult result = Add(results);
  const double lasted_s = SecondsBetween(schedule.measured, Clock::now());
  result.elapsed_s =
      schedule.Cancelled() ? std::clamp(lasted_s, 0.0, load.duration_s) : load.duration_s;
  return result;
}

}  // namespace sap::client
