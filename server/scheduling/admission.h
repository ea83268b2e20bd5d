// Admission control: limits on concurrent calls, held bytes, predicted work and sessions, per
// client and in total.
//
// A call over a limit is rejected at once, with the name of the limit and a retry delay. An
// overloaded server thus spends its time on the calls that it has accepted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "server/scheduling/client_account.h"
#include "server/server_config.h"
#include "server/service_error.h"

namespace sap {

// The answer to a new call while the memory of the process runs short.
ServiceError ShortOfMemory();

// Resources that a call holds while it is admitted.
struct Demand {
  int64_t bytes{0};  // of the request; 0 for a step of a session, which holds them itself
  double work_s{0};  // predicted solve time on one core
};

// Thread-safe.
class Admission {
 public:
  using Clock = std::chrono::steady_clock;

  // `threads` is the number of solver threads; it converts the admitted work into a retry delay.
  Admission(const AdmissionConfig& config, int threads) : config_(config), threads_(threads) {}

  // Returns the account of the named client, a new one with the default entitlements. It is kept
  // for a while after its last call, so that rates and predictions outlast a client's single calls.
  std::shared_ptr<ClientAccount> AccountOf(std::string_view name);

  // On success the demand counts against the limits until Release. The byte and work limits do not
  // apply to a client's only call (nor the total limits to the server's only call): otherwise a
  // problem over a limit could never be solved.
  ServiceStatus Admit(ClientAccount* account, const Demand& demand);
  void Release(ClientAccount* account, const Demand& demand);
  // Takes what turns out not to be needed out of the demand of an admitted call.
  void ReleasePart(ClientAccount* account, const Demand& part, Demand* demand);

  // Counts a call that begins; RESOURCE_EXHAUSTED if the client exceeds its rate. A client may
  // begin the calls of one second at once.
  ServiceStatus CheckRate(ClientAccount* account, Clock::time_point now = Clock::now());

  // Whether the memory of the process runs short: RESOURCE_EXHAUSTED to new calls and sessions.
  void SetShortOfMemory(bool is_short) { short_of_memory_.store(is_short); }
  bool short_of_memory() const { return short_of_memory_.load(std::memory_order_relaxed); }
  ServiceStatus CheckMemory() const;

  // Checks the limits on the number of calls, without admitting one.
  ServiceStatus CheckCalls(const ClientAccount* account) const;

  // A session counts from its admission to its release.
  ServiceStatus AdmitSession(ClientAccount* account);
  void ReleaseSession(ClientAccount* account);

  // A step that a session has received counts with its bytes. An error if these and those of other
  // calls and sessions are over a limit; without others the limits do not apply, as in Admit.
  // `held` is what the session holds already.
  ServiceStatus HoldBytes(ClientAccount* account, int64_t bytes, int64_t held);
  // Adds to the held bytes (negative: releases), where an answer replaces its step or is sent.
  void AddBytes(ClientAccount* account, int64_t bytes);
  // Whether a limit on bytes is reached.
  bool IsFull(const ClientAccount& account) const;

  // Memory that a session keeps between its steps, counted by itself against the limits on bytes.
  // An error: it would be over one, and is not counted.
  ServiceStatus KeepBytes(ClientAccount* account, int64_t more);

  int calls() const;
  int64_t bytes() const;
  int64_t kept_bytes() const;
  int sessions() const;

 private:
  ServiceStatus CheckCallsLocked(const ClientAccount& account) const;
  ServiceError ServerBytes() const;
  ServiceError ClientBytes(const ClientAccount& account) const;
  ServiceError Refusal(const char* reason, const std::string& what, double work_s) const;

  struct Known {
    std::shared_ptr<ClientAccount> account;
    Clock::time_point last_call;
  };

  const AdmissionConfig config_;
  const int threads_;
  std::atomic<bool> short_of_memory_{false};

  mutable std::mutex mutex_;
  int calls_{0};
  int64_t bytes_{0};
  int64_t kept_bytes_{0};
  double work_s_{0};
  int sessions_{0};
  std::map<std::string, Known, std::less<>> accounts_;
  size_t sweep_at_{64};  // number of accounts at which unused ones are erased
};

}  // namespace sap
