#include "server/rpc/message_transfers.h"

#include <algorithm>
#include <string>
#include <vector>

namespace sap {
namespace {

constexpr int kMinSlots = 2;
constexpr int64_t kMaxSlots = 1 << 20;
constexpr double kRetryDelay_s = 0.1;

int NumSlots(const ServerConfig& config) {
  const int64_t slots = config.connection.max_memory_bytes / config.max_message_bytes;
  return static_cast<int>(std::clamp<int64_t>(slots, kMinSlots, kMaxSlots));
}

// Limits: those of all clients (AdmissionLimits) or of one (Entitlements).
template <typename Limits>
ServiceStatus CheckUse(const ClientAccount::Transfers& use, const Limits& limits, const char* who,
                       const char* whose) {
  const auto refuse = [&](const char* what, const std::string& message) {
    ServiceError error{ServiceCode::kResourceExhausted, message + "; retry later", ""};
    error.reason = std::string(who) + what;
    error.retry_after_s = kRetryDelay_s;
    return tl::unexpected(error);
  };
  if (use.receiving >= limits.max_calls) {
    return refuse("_CALLS", std::string("the server already receives the limit of calls ") + whose);
  }
  if (use.answers >= limits.max_calls) {
    return refuse("_CALLS",
                  "answers to the limit of calls " + std::string(whose) + " are not yet taken");
  }
  if (use.answer_bytes >= limits.max_bytes) {
    return refuse("_BYTES",
                  "answers to the limit of bytes " + std::string(whose) + " are not yet taken");
  }
  return {};
}

}  // namespace

MessageTransfers::MessageTransfers(const ServerConfig& config)
    : limits_(config.admission.all),
      max_slots_(NumSlots(config)),
      max_client_slots_(max_slots_ / 2) {}

ServiceStatus MessageTransfers::CheckLimits(const ClientAccount& account) const {
  return CheckUse(all_, limits_, "SERVER", "of all clients").and_then([&] {
    return CheckUse(account.transfers_, account.entitlements(), "CLIENT", "of this client");
  });
}

ServiceStatus MessageTransfers::BeginRead(ClientAccount* account, Reader* reader) {
  if (ServiceStatus checked = CheckLimits(*account); !checked) return checked;
  reader->client_ = account;
  ++account->transfers_.receiving;
  ++all_.receiving;
  if (num_waiting_ == 0 && TakeSlot(account)) {
    reader->PostRead();
    return {};
  }
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(reader);
    num_waiting_ = waiting_.size();
  }
  PostWaiting();
  return {};
}

void MessageTransfers::EndRead(ClientAccount* account) {
  for (Use* use : {&account->transfers_, &all_}) {
    --use->receiving;
    --use->slots;
  }
  if (num_waiting_ > 0) PostWaiting();
}

void MessageTransfers::Expedite(Reader* reader) {
  if (num_waiting_ == 0) return;
  {
    const std::lock_guard lock(mutex_);
    const auto place = std::ranges::find(waiting_, reader);
    if (place == waiting_.end()) return;
    waiting_.erase(place);
    num_waiting_ = waiting_.size();
    ++reader->client_->transfers_.slots;
    ++all_.slots;
  }
  reader->PostRead();
}

void MessageTransfers::BeginAnswer(ClientAccount* account, int64_t bytes) {
  for (Use* use : {&account->transfers_, &all_}) {
    ++use->answers;
    use->answer_bytes += bytes;
  }
}

void MessageTransfers::EndAnswer(ClientAccount* account, int64_t bytes) {
  for (Use* use : {&account->transfers_, &all_}) {
    --use->answers;
    use->answer_bytes -= bytes;
  }
}

// A failed attempt may make another one fail. Its reader then waits, and takes or sees a slot that
// is returned, so the other one is posted as well.
bool MessageTransfers::TakeSlot(ClientAccount* account) {
  Use* const own = &account->transfers_;
  if (++all_.slots <= max_slots_) {
    if (++own->slots <= max_client_slots_) return true;
    --own->slots;
  }
  --all_.slots;
  return false;
}

void MessageTransfers::PostWaiting() {
  std::vector<Reader*> ready;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&](Reader* reader) {
      const bool taken = TakeSlot(reader->client_);
      if (taken) ready.push_back(reader);
      return taken;
    });
    num_waiting_ = waiting_.size();
  }
  for (Reader* reader : ready) reader->PostRead();
}

}  // namespace sap
