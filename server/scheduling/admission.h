// How much work the server takes on: calls, bytes and predicted work, of each client and of all.
//
// What is over a bound is refused at once, with the bound as reason and a time after which it is
// worth trying again, so that an overloaded server spends its time on what it has accepted.
#pragma once

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

// What a call brings.
struct Demand {
  int64_t bytes{0};
  double work_s{0};
};

// Thread-safe.
class Admission {
 public:
  // Threads: among which the work is shared, to tell when there is room again.
  Admission(const AdmissionConfig& config, int threads) : config_(config), threads_(threads) {}

  // The account of the client of that name, the same one for as long as somebody holds it.
  std::shared_ptr<ClientAccount> AccountOf(std::string_view name);

  // On success the client holds it until Leave. A client that holds nothing may bring any amount
  // of work, or its largest problem would never be solved.
  ServiceStatus Enter(ClientAccount* account, const Demand& demand);
  void Leave(ClientAccount* account, const Demand& demand);

  // Whether another call of the client would be over a bound on their number.
  ServiceStatus CheckCalls(const ClientAccount* account) const;

  int calls() const;
  int64_t bytes() const;

 private:
  ServiceStatus CheckCallsLocked(const ClientAccount& account) const;
  ServiceError Refusal(const char* reason, const std::string& what, double work_s) const;

  const AdmissionConfig config_;
  const int threads_;

  mutable std::mutex mutex_;
  int calls_{0};
  int64_t bytes_{0};
  double work_s_{0};
  std::map<std::string, std::weak_ptr<ClientAccount>, std::less<>> accounts_;
  size_t sweep_at_{64};  // accounts, when those that nobody holds are dropped
};

}  // namespace sap
