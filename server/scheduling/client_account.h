// Per-client state: name, admitted resources, and the client's queued tasks. The calls of the
// client share ownership; Admission and FairQueue each guard their part with their own lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace sap {

// Strict priority: queued high-priority tasks run before all normal ones, across clients.
enum class Priority : uint8_t { kHigh, kNormal };
constexpr int kNumPriorities = 2;

struct QueuedTask;

class ClientAccount {
 public:
  explicit ClientAccount(std::string name) : name_(std::move(name)) {}
  ClientAccount(const ClientAccount&) = delete;
  ClientAccount& operator=(const ClientAccount&) = delete;

  const std::string& name() const { return name_; }

  // Messages of the client in the transport.
  struct Transfers {
    std::atomic<int> receiving{0};         // calls whose request is being received
    std::atomic<int> slots{0};             // of these, those with a posted read
    std::atomic<int> answers{0};           // calls whose answer is not yet taken
    std::atomic<int64_t> answer_bytes{0};  // bytes of their requests
  };

 private:
  friend class MessageTransfers;
  friend class Admission;
  friend class FairQueue;

  // FIFO and deficit-round-robin state of one client in one priority class.
  struct Flow {
    QueuedTask* first{nullptr};
    QueuedTask* last{nullptr};
    Flow* next{nullptr};   // next client in the ring
    double credit_s{0};    // deficit: work that it may still start in this round
    double work_s{0};      // sum over its queued tasks
    double mean_s{0};      // moving average over its tasks
    int reserved{0};       // calls with a reservation: their messages are being read
    double reserved_s{0};  // sum of the reserved work
  };

  const std::string name_;

  // Guarded by Admission's mutex.
  int calls_{0};
  int64_t bytes_{0};
  double work_s_{0};

  Transfers transfers_;

  // Guarded by FairQueue's mutex.
  std::array<Flow, kNumPriorities> flows_;
};

}  // namespace sap
