#include "server/rpc/message_transfers.h"

#include <algorithm>
#include <string>
#include <utility>

namespace sap {
namespace {

using std::chrono::seconds;

constexpr int kMinSlots = 2;
constexpr int64_t kMaxSlots = 1 << 20;
constexpr double kRetryDelay_s = 0.1;

constexpr int kMostFirstReads = 64;
// A read without a slot ends by then, and one with a slot may be evicted from then on.
constexpr seconds kGrace{1};
// A read may be evicted that is as old, whoever needs its slot.
constexpr seconds kSlowRead{10};

int NumSlots(const ServerConfig& config) {
  const int64_t slots = config.connection.max_memory_bytes / 4 * 3 / config.max_message_bytes;
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

MessageTransfers::MessageTransfers(const ServerConfig& config, Clock::time_point (*now)())
    : limits_(config.admission.all),
      max_slots_(NumSlots(config)),
      max_client_slots_(max_slots_ / 2),
      now_(now) {}

ServiceError MessageTransfers::SlowRequest() {
  ServiceError error{ServiceCode::kResourceExhausted,
                     "the request did not arrive in full before its place was needed; retry later",
                     ""};
  error.reason = "SLOW_REQUEST";
  error.retry_after_s = kRetryDelay_s;
  return error;
}

ServiceStatus MessageTransfers::CheckLimits(const ClientAccount& account) {
  MakeRoomFor(account);
  return CheckUse(all_, limits_, "SERVER", "of all clients").and_then([&] {
    return CheckUse(account.transfers_, account.entitlements(), "CLIENT", "of this client");
  });
}

// The oldest of the client that has most of the amount, if that is more than this one has.
template <typename Amount, typename Evictable>
MessageTransfers::Reader* MessageTransfers::OldestOfMost(const std::list<Reader*>& readers,
                                                         Amount Use::*amount,
                                                         const ClientAccount& account,
                                                         const Evictable& evictable) {
  Reader* oldest = nullptr;
  Amount most = account.transfers_.*amount;
  for (Reader* reader : readers) {
    if (!evictable(*reader) || UseOf(*reader).*amount <= most) continue;
    most = UseOf(*reader).*amount;
    oldest = reader;
  }
  return oldest;
}

// At the limits on all calls and bytes, at the expense of the client that has most.
void MessageTransfers::MakeRoomFor(const ClientAccount& account) {
  const Clock::time_point now = now_();
  if (all_.receiving >= limits_.max_calls) {
    // A message that is being read has the time of a short one; of one that waits nothing comes.
    Reader* const read = OldestOfMost(reads_, &Use::receiving, account, [&](const Reader& reader) {
      return reader.place_ == Place::kWaiting ||
             (reader.is_read() && !reader.received_ && now - reader.since_ >= kShortRead);
    });
    if (read != nullptr) Evict(read);
  }
  const auto is_untaken = [&](const Reader& reader) {
    return !reader.answer_evicted() && now - reader.since_ >= kGrace;
  };
  Reader* answer = nullptr;
  if (all_.answers >= limits_.max_calls) {
    answer = OldestOfMost(answers_, &Use::answers, account, is_untaken);
  } else if (all_.answer_bytes >= limits_.max_bytes) {
    answer = OldestOfMost(answers_, &Use::answer_bytes, account, is_untaken);
  }
  if (answer == nullptr) return;
  LeaveAnswers(answer);
  answer->answer_evicted_.store(true, std::memory_order_relaxed);
  evicted_ = true;
}

ServiceStatus MessageTransfers::BeginRead(ClientAccount* account, Reader* reader) {
  std::unique_lock lock(mutex_);
  if (ServiceStatus checked = CheckLimits(*account); !checked) return checked;
  Use& use = account->transfers_;
  ++use.receiving;
  ++all_.receiving;
  reader->client_ = account;
  reader->since_ = now_();
  reads_.splice(reads_.end(), reader->node_);
  const bool behind = std::ranges::find(turns_, account, &Turn::client) != turns_.end();
  if (!behind && MayReadAtOnce(use)) {
    Post(reader, Place::kFirstRead);
    lock.unlock();
    reader->PostRead();
    return {};
  }
  AppendToTurn(reader);
  const std::vector<Reader*> ready = PostWaiting();
  lock.unlock();
  for (Reader* each : ready) each->PostRead();
  return {};
}

void MessageTransfers::Received(Reader* reader) {
  const std::lock_guard lock(mutex_);
  reader->received_ = true;
  if (reader->is_read() && !reader->long_) Grade(&UseOf(*reader), 1);
}

void MessageTransfers::EndRead(Reader* reader) {
  std::vector<Reader*> ready;
  {
    const std::lock_guard lock(mutex_);
    Leave(reader);
    reader->node_.splice(reader->node_.end(), reads_, reader->position_);
    ready = PostWaiting();
  }
  for (Reader* each : ready) each->PostRead();
}

void MessageTransfers::Expedite(Reader* reader) {
  {
    const std::lock_guard lock(mutex_);
    if (reader->client_ == nullptr || reader->place_ != Place::kWaiting) return;
    RemoveFromTurn(reader);
    Post(reader, Place::kFirstRead);
  }
  reader->PostRead();
}

void MessageTransfers::Drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

MessageTransfers::State MessageTransfers::Sweep() {
  State state;
  std::vector<Reader*> ready;
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = now_();
    MarkLongReads(now);
    GiveSlots();
    for (Reader* reader : reads_) {
      const Clock::duration age = now - reader->since_;
      const bool is_pending = reader->place_ != Place::kEvicted && !reader->received_;
      const bool is_late = reader->place_ == Place::kFirstRead && is_pending && age >= kGrace;
      if (draining_ && is_pending && age >= kSlowRead) {
        Evict(reader);
      } else if (is_late) {
        EvictFor(reader, now);
      }
    }
    for (const Turn& turn : turns_) {
      Reader* const next = turn.readers.front();
      if (now - next->since_ >= kShortRead) EvictFor(next, now);
    }
    ready = PostWaiting();
    for (const Reader* reader : reads_) {
      const bool is_slow =
          reader->is_read() && !reader->received_ && now - reader->since_ >= kGrace;
      if (reader->place_ == Place::kWaiting) ++state.waiting;
      if (is_slow) ++state.slow;
    }
    state.evicted = std::exchange(evicted_, false);
  }
  for (Reader* each : ready) each->PostRead();
  return state;
}

void MessageTransfers::MarkLongReads(Clock::time_point now) {
  for (Reader* reader : reads_) {
    if (!reader->is_read() || reader->received_ || reader->long_) continue;
    if (now - reader->since_ < kShortRead) continue;
    reader->long_ = true;
    if (reader->place_ == Place::kFirstRead) ++long_without_slot_;
    Grade(&UseOf(*reader), -1);
  }
}

// To the long reads without one: the oldest of the client with the fewest slots is next.
void MessageTransfers::GiveSlots() {
  while (long_without_slot_ > 0 && all_.slots < max_slots_) {
    Reader* next = nullptr;
    for (Reader* reader : reads_) {
      if (reader->place_ != Place::kFirstRead || !reader->long_) continue;
      if (next == nullptr || UseOf(*reader).slots < UseOf(*next).slots) next = reader;
    }
    TakeSlot(next);
  }
}

// For a read without a slot that has been given its time, or a request that waits.
void MessageTransfers::EvictFor(Reader* reader, Clock::time_point now) {
  const bool waits = reader->place_ == Place::kWaiting;
  const Use& use = UseOf(*reader);
  if (waits ? MayTakeSlot(use) : all_.slots < max_slots_) {
    if (!waits) TakeSlot(reader);
    return;
  }
  Reader* const victim = VictimFor(*reader, now);
  if (victim != nullptr) {
    Evict(victim);
    if (!waits) TakeSlot(reader);
  } else if (!waits) {
    Evict(reader);
  }
}

// The read that loses its slot to this one; null: there is none. A client whose requests wait has
// to make room for them itself once it has its share of the slots.
MessageTransfers::Reader* MessageTransfers::VictimFor(const Reader& needy,
                                                      Clock::time_point now) const {
  const bool has_share = needy.place_ == Place::kWaiting && UseOf(needy).slots >= max_client_slots_;
  Reader* oldest = nullptr;
  Reader* richest = nullptr;
  for (Reader* reader : reads_) {
    const bool evictable =
        reader->place_ == Place::kSlot && !reader->received_ && now - reader->since_ >= kGrace;
    if (!evictable || (has_share && reader->client_ != needy.client_)) continue;
    if (oldest == nullptr || reader->since_ < oldest->since_) oldest = reader;
    if (richest == nullptr || UseOf(*reader).slots > UseOf(*richest).slots) richest = reader;
  }
  if (richest != nullptr && UseOf(*richest).slots >= UseOf(needy).slots + 2) return richest;
  return oldest != nullptr && now - oldest->since_ >= kSlowRead ? oldest : nullptr;
}

// From here on it counts nowhere, although its call has still to end.
void MessageTransfers::Evict(Reader* reader) {
  const bool waits = reader->place_ == Place::kWaiting;
  Leave(reader);
  reader->place_ = Place::kEvicted;
  reader->evicted_.store(waits ? Reader::Evicted::kWaiting : Reader::Evicted::kReading,
                         std::memory_order_relaxed);
  evicted_ = true;
}

void MessageTransfers::BeginAnswer(Reader* reader, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  answers_.splice(answers_.end(), reader->node_);
  reader->answer_bytes_ = bytes;
  reader->since_ = now_();
  for (Use* use : {&UseOf(*reader), &all_}) {
    ++use->answers;
    use->answer_bytes += bytes;
  }
}

void MessageTransfers::EndAnswer(Reader* reader) {
  const std::lock_guard lock(mutex_);
  if (!reader->answer_evicted()) LeaveAnswers(reader);
  reader->node_.splice(reader->node_.end(), answers_, reader->position_);
}

void MessageTransfers::LeaveAnswers(Reader* reader) {
  for (Use* use : {&UseOf(*reader), &all_}) {
    --use->answers;
    use->answer_bytes -= reader->answer_bytes_;
  }
}

// Requests that came at once earn reads without a slot, others cost them.
void MessageTransfers::Grade(Use* use, int change) const {
  const int initial = std::min(max_client_slots_, kMostFirstReads);
  use->balance = std::clamp(use->balance + change, -initial, kMostFirstReads - initial);
}

bool MessageTransfers::MayReadAtOnce(const Use& use) const {
  const int earned = std::min(max_client_slots_, kMostFirstReads) + use.balance;
  return use.first_reads < std::max(earned, use.slots == 0 ? 1 : 0);
}

// Slots that reads without one are waiting for are theirs.
bool MessageTransfers::MayTakeSlot(const Use& use) const {
  return all_.slots + long_without_slot_ < max_slots_ &&
         use.slots + use.first_reads < max_client_slots_;
}

// The reader is in no place, and its read will be posted.
void MessageTransfers::Post(Reader* reader, Place place) {
  reader->place_ = place;
  reader->since_ = now_();
  Use& use = UseOf(*reader);
  if (place == Place::kFirstRead) {
    ++use.first_reads;
  } else {
    ++use.slots;
    ++all_.slots;
  }
}

// From a long read without one.
void MessageTransfers::TakeSlot(Reader* reader) {
  --UseOf(*reader).first_reads;
  --long_without_slot_;
  reader->place_ = Place::kSlot;
  ++UseOf(*reader).slots;
  ++all_.slots;
}

void MessageTransfers::Leave(Reader* reader) {
  if (reader->place_ == Place::kEvicted) return;
  Use& use = UseOf(*reader);
  --use.receiving;
  --all_.receiving;
  switch (reader->place_) {
    case Place::kWaiting:
      return RemoveFromTurn(reader);
    case Place::kFirstRead:
      --use.first_reads;
      if (reader->long_) --long_without_slot_;
      return;
    case Place::kSlot:
      --use.slots;
      --all_.slots;
      return;
    case Place::kEvicted:
      break;
  }
}

void MessageTransfers::AppendToTurn(Reader* reader) {
  auto turn = std::ranges::find(turns_, reader->client_, &Turn::client);
  if (turn == turns_.end()) turn = turns_.insert(turn, {reader->client_, {}});
  turn->readers.push_back(reader);
}

void MessageTransfers::RemoveFromTurn(Reader* reader) {
  const auto turn = std::ranges::find(turns_, reader->client_, &Turn::client);
  std::erase(turn->readers, reader);
  if (turn->readers.empty()) turns_.erase(turn);
}

// Finds places for requests that wait; their reads are then to be posted without the mutex.
std::vector<MessageTransfers::Reader*> MessageTransfers::PostWaiting() {
  std::vector<Reader*> ready;
  while (!turns_.empty()) {
    auto next = turns_.end();
    Place place = Place::kSlot;
    for (auto turn = turns_.begin(); turn != turns_.end(); ++turn) {
      const Use& use = turn->client->transfers_;
      if (MayReadAtOnce(use)) {
        next = turn;
        place = Place::kFirstRead;
        break;
      }
      const bool has_fewest = next == turns_.end() || use.slots < next->client->transfers_.slots;
      if (MayTakeSlot(use) && has_fewest) next = turn;
    }
    if (next == turns_.end()) break;
    Reader* const reader = next->readers.front();
    next->readers.pop_front();
    if (next->readers.empty()) {
      turns_.erase(next);
    } else {
      turns_.splice(turns_.end(), turns_, next);
    }
    Post(reader, place);
    ready.push_back(reader);
  }
  return ready;
}

}  // namespace sap
