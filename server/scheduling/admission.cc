#include "server/scheduling/admission.h"

#include <algorithm>

#include "server/scheduling/retry_delay.h"

namespace sap {
namespace {

// Longer than a client's rate takes to fill up again.
constexpr std::chrono::seconds kKeepUnused{10};
// Sessions are long-lived, so a shorter delay is of no use.
constexpr double kSessionRetryDelay_s = 1;
// Memory is looked at once per second.
constexpr double kMemoryRetryDelay_s = 2;

}  // namespace

ServiceError ShortOfMemory() {
  ServiceError error{ServiceCode::kResourceExhausted,
                     "the memory of the server is nearly used up; retry later", ""};
  error.reason = "SERVER_MEMORY";
  error.retry_after_s = kMemoryRetryDelay_s;
  return error;
}

std::shared_ptr<ClientAccount> Admission::AccountOf(std::string_view name) {
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(name);
  if (found != accounts_.end()) {
    found->second.last_call = now;
    return found->second.account;
  }
  if (accounts_.size() >= sweep_at_) {
    std::erase_if(accounts_, [&](const auto& entry) {
      return entry.second.account.use_count() == 1 && now - entry.second.last_call > kKeepUnused;
    });
    sweep_at_ = std::max<size_t>(64, 2 * accounts_.size());
  }
  auto account = std::make_shared<ClientAccount>(std::string(name), config_.client);
  accounts_[account->name()] = {account, now};
  return account;
}

ServiceStatus Admission::CheckRate(ClientAccount* account, Clock::time_point now) {
  const double rate = account->entitlements().max_calls_per_s;
  if (rate == 0) return {};
  const std::lock_guard lock(mutex_);
  const std::chrono::duration<double> elapsed = now - account->credited_;
  account->credited_ = now;
  account->rate_credit_ =
      std::min(std::max(1.0, rate), account->rate_credit_ + rate * elapsed.count());
  if (account->rate_credit_ < 1) {
    ServiceError error{ServiceCode::kResourceExhausted,
                       "this client begins more calls per second than it may; retry later", ""};
    error.reason = "CLIENT_RATE";
    error.retry_after_s = BoundedRetryDelay((1 - account->rate_credit_) / rate);
    return tl::unexpected(error);
  }
  account->rate_credit_ -= 1;
  return {};
}

ServiceStatus Admission::CheckMemory() const {
  if (short_of_memory()) return tl::unexpected(ShortOfMemory());
  return {};
}

ServiceStatus Admission::CheckCalls(const ClientAccount* account) const {
  const std::lock_guard lock(mutex_);
  return CheckCallsLocked(*account);
}

ServiceStatus Admission::CheckCallsLocked(const ClientAccount& account) const {
  const auto refuse = [&](const char* reason, const std::string& what) {
    return tl::unexpected(Refusal(reason, what, work_s_));
  };
  if (calls_ >= config_.all.max_calls) {
    return refuse("SERVER_CALLS", "the server is already serving its limit of " +
                                      std::to_string(config_.all.max_calls) + " concurrent calls");
  }
  const int client_calls = account.entitlements().max_calls;
  if (account.calls_ >= client_calls) {
    return refuse("CLIENT_CALLS", "this client already has its limit of " +
                                      std::to_string(client_calls) + " concurrent calls");
  }
  return {};
}

ServiceStatus Admission::Admit(ClientAccount* account, const Demand& demand) {
  const std::lock_guard lock(mutex_);
  if (ServiceStatus checked = CheckCallsLocked(*account); !checked) return checked;
  const AdmissionLimits& all = config_.all;
  const Entitlements& client = account->entitlements();
  const auto refuse = [&](const char* reason, const std::string& what) {
    return tl::unexpected(Refusal(reason, what, work_s_));
  };
  if (demand.bytes > 0 && calls_ > 0 && bytes_ + demand.bytes > all.max_bytes) {
    return tl::unexpected(ServerBytes());
  }
  if (demand.bytes > 0 && account->calls_ > 0 &&
      account->bytes_ + demand.bytes > client.max_bytes) {
    return tl::unexpected(ClientBytes(*account));
  }
  if (calls_ > 0 && work_s_ + demand.work_s > all.max_work_s) {
    return refuse("SERVER_WORK", "the predicted work of all calls reaches the server's limit");
  }
  if (account->calls_ > 0 && account->work_s_ + demand.work_s > client.max_work_s) {
    return refuse("CLIENT_WORK", "the predicted work of this client's calls reaches its limit");
  }
  ++calls_;
  bytes_ += demand.bytes;
  work_s_ += demand.work_s;
  ++account->calls_;
  account->bytes_ += demand.bytes;
  account->work_s_ += demand.work_s;
  return {};
}

void Admission::Release(ClientAccount* account, const Demand& demand) {
  const std::lock_guard lock(mutex_);
  --calls_;
  bytes_ -= demand.bytes;
  work_s_ = calls_ > 0 ? work_s_ - demand.work_s : 0;  // resets accumulated round-off
  --account->calls_;
  account->bytes_ -= demand.bytes;
  account->work_s_ = account->calls_ > 0 ? account->work_s_ - demand.work_s : 0;
}

void Admission::ReleasePart(ClientAccount* account, const Demand& part, Demand* demand) {
  const std::lock_guard lock(mutex_);
  bytes_ -= part.bytes;
  work_s_ -= part.work_s;
  account->bytes_ -= part.bytes;
  account->work_s_ -= part.work_s;
  demand->bytes -= part.bytes;
  demand->work_s -= part.work_s;
}

ServiceStatus Admission::AdmitSession(ClientAccount* account) {
  if (ServiceStatus checked = CheckMemory(); !checked) return checked;
  const std::lock_guard lock(mutex_);
  const auto refuse = [&](const char* reason, const std::string& what) {
    ServiceError error{ServiceCode::kResourceExhausted, what + " sessions; retry later", ""};
    error.reason = reason;
    error.retry_after_s = kSessionRetryDelay_s;
    return tl::unexpected(error);
  };
  const int max_sessions = config_.all.max_sessions;
  const int max_client_sessions = account->entitlements().max_sessions;
  if (sessions_ >= max_sessions) {
    return refuse("SERVER_SESSIONS",
                  "the server already has its limit of " + std::to_string(max_sessions));
  }
  if (account->sessions_ >= max_client_sessions) {
    return refuse("CLIENT_SESSIONS",
                  "this client already has its limit of " + std::to_string(max_client_sessions));
  }
  ++sessions_;
  ++account->sessions_;
  return {};
}

void Admission::ReleaseSession(ClientAccount* account) {
  const std::lock_guard lock(mutex_);
  --sessions_;
  --account->sessions_;
}

ServiceStatus Admission::HoldBytes(ClientAccount* account, int64_t bytes, int64_t held) {
  const std::lock_guard lock(mutex_);
  const auto exceeds = [&](int64_t all, int64_t limit) {
    const int64_t others = all - held;
    return others > 0 && others + bytes > limit;
  };
  if (exceeds(bytes_, config_.all.max_bytes)) {
    return tl::unexpected(ServerBytes());
  }
  if (exceeds(account->bytes_, account->entitlements().max_bytes)) {
    return tl::unexpected(ClientBytes(*account));
  }
  bytes_ += bytes;
  account->bytes_ += bytes;
  return {};
}

void Admission::AddBytes(ClientAccount* account, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ += bytes;
  account->bytes_ += bytes;
}

ServiceStatus Admission::KeepBytes(ClientAccount* account, int64_t more) {
  const std::lock_guard lock(mutex_);
  if (more > 0 && kept_bytes_ + more > config_.all.max_bytes) {
    return tl::unexpected(ServerBytes());
  }
  if (more > 0 && account->kept_bytes_ + more > account->entitlements().max_bytes) {
    return tl::unexpected(ClientBytes(*account));
  }
  kept_bytes_ += more;
  account->kept_bytes_ += more;
  return {};
}

bool Admission::IsFull(const ClientAccount& account) const {
  const std::lock_guard lock(mutex_);
  return bytes_ >= config_.all.max_bytes || account.bytes_ >= account.entitlements().max_bytes;
}

int Admission::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

int64_t Admission::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

int64_t Admission::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

int Admission::sessions() const {
  const std::lock_guard lock(mutex_);
  return sessions_;
}

ServiceError Admission::ServerBytes() const {
  return Refusal("SERVER_BYTES",
                 "the server already holds requests up to its limit of " +
                     std::to_string(config_.all.max_bytes) + " bytes",
                 work_s_);
}

ServiceError Admission::ClientBytes(const ClientAccount& account) const {
  return Refusal("CLIENT_BYTES",
                 "the requests of this client already reach its limit of " +
                     std::to_string(account.entitlements().max_bytes) + " bytes",
                 work_s_);
}

// The delay is the time in which the solver threads finish a tenth of the admitted work.
ServiceError Admission::Refusal(const char* reason, const std::string& what, double work_s) const {
  ServiceError error{ServiceCode::kResourceExhausted, what + "; retry later", ""};
  error.reason = reason;
  error.retry_after_s = BoundedRetryDelay(work_s / threads_ / 10);
  return error;
}

}  // namespace sap
