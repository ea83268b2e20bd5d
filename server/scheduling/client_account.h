// Per-client state: name, entitlements, admitted resources, and the client's queued tasks.
// Admission and the calls of the client share ownership; Admission and FairQueue each guard their
// part with their own lock.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/server_config.h"

namespace sap {

// Queued high-priority tasks run before normal ones, up to a share of the time (see FairQueue).
enum class Priority : uint8_t { kHigh, kNormal };
constexpr int kNumPriorities = 2;

struct QueuedTask;

class ClientAccount : public std::enable_shared_from_this<ClientAccount> {
 public:
  explicit ClientAccount(std::string name, const Entitlements& entitlements = {})
      : name_(std::move(name)) {
    SetEntitlements(entitlements);
  }
  ClientAccount(const ClientAccount&) = delete;
  ClientAccount& operator=(const ClientAccount&) = delete;

  const std::string& name() const { return name_; }

  // Thread-safe; the reference stays valid while the account exists.
  const Entitlements& entitlements() const {
    return *entitlements_.load(std::memory_order_acquire);
  }
  void SetEntitlements(const Entitlements& entitlements) {
    const Entitlements* const current = entitlements_.load(std::memory_order_acquire);
    if (current != nullptr && *current == entitlements) return;
    const std::lock_guard lock(versions_mutex_);
    versions_.push_back(std::make_unique<const Entitlements>(entitlements));
    entitlements_.store(versions_.back().get(), std::memory_order_release);
  }

  // The priority with which the client's tasks are scheduled if it asks for this one.
  Priority Granted(Priority asked) const {
    return entitlements().high_priority ? asked : Priority::kNormal;
  }
  // Messages of the client in the transport.
  struct Transfers {
    int receiving{0};         // calls whose request is being received
    int first_reads{0};       // of these, those that are read without a slot
    int slots{0};             // and those that have one
    int balance{0};           // requests that came at once minus those that did not, within bounds
    int answers{0};           // calls whose answer is not yet taken
    int64_t answer_bytes{0};  // bytes of these, or of their requests if larger
  };

 private:
  friend class MessageTransfers;
  friend class Admission;
  friend class FairOrder;
  friend class InlineShares;

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

  // Use of the receiving threads; atomic, since it is updated without a lock.
  struct InlineUse {
    std::atomic<int64_t> period{-1};       // in which the time was used
    std::atomic<int64_t> used_ns{0};       // in this period
    std::atomic<int64_t> uncharged_ns{0};  // not yet part of a virtual time
    std::atomic<int> queued_flows{0};      // priorities in which the client has queued tasks
  };

  const std::string name_;

  // All versions are kept, because readers may still use an earlier one; a new one comes with a
  // changed line of the token file.
  std::atomic<const Entitlements*> entitlements_{nullptr};
  std::mutex versions_mutex_;
  std::vector<std::unique_ptr<const Entitlements>> versions_;

  // Guarded by Admission's mutex.
  int calls_{0};
  int64_t bytes_{0};
  int64_t kept_bytes_{0};  // by its sessions between steps
  double work_s_{0};
  int sessions_{0};
  // Calls that it may begin now; CheckRate cuts it to a full bucket, so the first call finds one.
  double rate_credit_{std::numeric_limits<double>::infinity()};
  std::chrono::steady_clock::time_point credited_{};

  InlineUse inline_use_;

  Transfers transfers_;  // guarded by MessageTransfers' mutex

  // Guarded by FairQueue's mutex, for its FairOrder.
  std::array<Flow, kNumPriorities> flows_;
  double scale_{0};  // measured over predicted time of its tasks, moving average; 0: no task yet
  int running_{0};   // tasks that have started and not ended
};

}  // namespace sap
