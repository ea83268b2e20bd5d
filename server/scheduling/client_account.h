// What the server keeps about one client while it has work here: a name, what it holds, and its
// queued tasks. Admission owns it; the work queue keeps its place in the round there.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace sap {

// Tasks of high priority go first, whoever they are of.
enum class Priority : uint8_t { kHigh, kNormal };
constexpr int kNumPriorities = 2;

struct QueuedTask;

class ClientAccount {
 public:
  explicit ClientAccount(std::string name) : name_(std::move(name)) {}
  ClientAccount(const ClientAccount&) = delete;
  ClientAccount& operator=(const ClientAccount&) = delete;

  const std::string& name() const { return name_; }

 private:
  friend class Admission;
  friend class WorkQueue;

  // Its queued tasks of one priority, oldest first, and its place among the clients that have some.
  struct Flow {
    QueuedTask* first{nullptr};
    QueuedTask* last{nullptr};
    Flow* next{nullptr};
    double credit_s{0};    // work that it may still start in this round
    double work_s{0};      // of its queued tasks
    double mean_s{0};      // of a task, lately
    int expected{0};       // its calls whose messages are being read
    double expected_s{0};  // and their work
  };

  const std::string name_;

  // Under Admission's lock.
  int calls_{0};
  int64_t bytes_{0};
  double work_s_{0};

  // Under WorkQueue's lock.
  std::array<Flow, kNumPriorities> flows_;
};

}  // namespace sap
