// Per-client state: name, admitted resources, and the client's queued tasks. The calls of the
// client share ownership; Admission and FairQueue each guard their part with their own lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace sap {

// Queued high-priority tasks run before normal ones, up to a share of the time (see FairQueue).
enum class Priority : uint8_t { kHigh, kNormal };
constexpr int kNumPriorities = 2;

struct QueuedTask;

class ClientAccount : public std::enable_shared_from_this<ClientAccount> {
 public:
  explicit ClientAccount(std::string name) : name_(std::move(name)) {}
  ClientAccount(const ClientAccount&) = delete;
  ClientAccount& operator=(const ClientAccount&) = delete;

  const std::string& name() const { return name_; }

 private:
  friend class Admission;
  friend class FairQueue;

  // FIFO and fair-queuing state of one client in one priority class.
  struct Flow {
    QueuedTask* first{nullptr};
    QueuedTask* last{nullptr};
    Flow* next{nullptr};   // next client in the ring
    double virtual_s{0};   // virtual time: what its tasks have taken
    double work_s{0};      // expected time of its queued tasks
    double mean_s{0};      // expected time of a task, moving average
    int reserved{0};       // calls with a reservation: their messages are being read
    double reserved_s{0};  // sum of the reserved work
  };

  const std::string name_;

  // Guarded by Admission's mutex.
  int calls_{0};
  int64_t bytes_{0};
  double work_s_{0};

  // Guarded by FairQueue's mutex.
  std::array<Flow, kNumPriorities> flows_;
  double scale_{0};  // measured over predicted time of its tasks, moving average; 0: no task yet
};

}  // namespace sap
