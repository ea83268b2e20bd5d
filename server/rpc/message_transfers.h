// Bounds what calls hold outside of the solver, per client and in total: request messages that are
// being received, and answers that their clients have not taken.
//
// gRPC 1.51 takes in at most the initial window of 64 kB of a message before it is read. Once a
// read is posted, it opens the window for all that the client has announced, and it tells neither
// what was announced nor what has arrived before the message is complete. A posted read is
// therefore a promise of memory, which can only be taken back by ending its call, and time is all
// that tells a message that comes from one that does not.
//
//   waiting ── first read ── long (after 50 ms), with or without a slot
//        └──── slot ─────────┘
//
// A request is read at once, without a slot, as long as few of its client's are: most messages are
// complete within microseconds, and delay nobody. What is not complete after 50 ms needs a slot, of
// which there are as many as largest messages fit into three quarters of the transport's memory,
// half of them for the requests that a client has waiting. The last quarter is for the reads
// without a slot, which have a second for what the network delivers in it.
//
//   reads without a slot, of one client   those that came within 50 ms minus those that did not,
//                                         from half of the slots on, at most 64; at least one
//                                         where the client has no other read
//   waiting requests                      for the client with the fewest slots, in turns
//
// Nobody keeps a slot that another client needs. Where a waiting request or a read of a second
// finds none, the oldest read is evicted of the client that has most slots, if it is a second old
// and its client has two slots more than the other one, or if it is 10 s old. A read of a second
// that still finds no slot is evicted itself. Where all calls that may be received at the same time
// are, the client that has most loses its oldest one that waits, or that has been read for 50 ms,
// in favor of a client that has fewer; and so with answers that are not taken for a second, by
// their number and by their bytes.
//
// The limits on calls apply to calls that are being received and to answers that are not yet taken
// as they apply to calls that are being solved, each by itself, so that a client at its limit does
// not have to wait until the server knows that it has the answer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <vector>

#include "server/scheduling/client_account.h"
#include "server/server_config.h"
#include "server/service_error.h"

namespace sap {

// A short message is complete by then, unless packets are lost.
inline constexpr std::chrono::milliseconds kShortRead{50};

// Thread-safe. Accounts must outlive their calls' transfers.
class MessageTransfers {
 public:
  using Clock = std::chrono::steady_clock;

  // The read of one call, and its answer.
  class Reader {
   public:
    // Posts the read. Called at most once, possibly on the thread of another call.
    virtual void PostRead() = 0;

   protected:
    ~Reader() = default;

    // Whether the call has to end in favor of others, with SlowRequest.
    bool evicted() const { return evicted_.load(std::memory_order_relaxed) != Evicted::kNot; }
    // Whether its answer is not to be sent any longer, in favor of others.
    bool answer_evicted() const { return answer_evicted_.load(std::memory_order_relaxed); }
    // Whether it was evicted while it waited, so that its read is never posted.
    bool withdrawn() const { return evicted_.load(std::memory_order_relaxed) == Evicted::kWaiting; }

   private:
    friend class MessageTransfers;
    enum class Place : uint8_t { kWaiting, kFirstRead, kSlot, kEvicted };
    enum class Evicted : uint8_t { kNot, kWaiting, kReading };

    bool is_read() const { return place_ == Place::kFirstRead || place_ == Place::kSlot; }

    ClientAccount* client_{nullptr};
    Place place_{Place::kWaiting};
    Clock::time_point since_;  // the request waits; from its post on: is being read
    bool long_{false};         // it was read for 50 ms
    bool received_{false};     // in full; it waits to be parsed
    // A node of its own, which is in reads_, then in answers_: an answer needs no memory here.
    std::list<Reader*> node_{this};
    const std::list<Reader*>::iterator position_{node_.begin()};
    int64_t answer_bytes_{0};
    std::atomic<bool> answer_evicted_{false};
    std::atomic<Evicted> evicted_{Evicted::kNot};
  };

  explicit MessageTransfers(const ServerConfig& config, Clock::time_point (*now)() = &Clock::now);

  // RESOURCE_EXHAUSTED at a limit on calls or bytes. Otherwise the reader posts its read, now or
  // later, unless it is evicted before. Then it calls EndRead, once.
  ServiceStatus BeginRead(ClientAccount* account, Reader* reader);
  // The message has arrived, so that its read is not evicted any more.
  void Received(Reader* reader);
  // The message is parsed, or will not come.
  void EndRead(Reader* reader);

  // The call of the reader was cancelled: if its read still waits it is posted, and fails at once.
  void Expedite(Reader* reader);

  struct State {
    int waiting{0};       // requests
    int slow{0};          // requests that are read for longer than a second
    bool evicted{false};  // readers, since the last sweep
  };
  // Applies the rules on time; to be called every kSweepPeriod. The calls of evicted readers have
  // to be swept at once.
  State Sweep();
  static constexpr std::chrono::milliseconds kSweepPeriod{50};

  // From now on whatever takes 10 s to arrive is evicted: the server waits for it alone.
  void Drain();

  // The error that an evicted call is answered with.
  static ServiceError SlowRequest();

  // The answer of a call that was received is about to be sent, and has been taken. Bytes: of the
  // answer or of its request, whichever is larger.
  void BeginAnswer(Reader* reader, int64_t bytes);
  void EndAnswer(Reader* reader);

 private:
  using Use = ClientAccount::Transfers;
  using Place = Reader::Place;
  // Requests of one client that wait; not empty.
  struct Turn {
    ClientAccount* client;
    std::deque<Reader*> readers;
  };

  static Use& UseOf(const Reader& reader) { return reader.client_->transfers_; }

  // The rest holds the mutex.
  ServiceStatus CheckLimits(const ClientAccount& account);
  void MakeRoomFor(const ClientAccount& account);
  template <typename Amount, typename Evictable>
  static Reader* OldestOfMost(const std::list<Reader*>& readers, Amount Use::*amount,
                              const ClientAccount& account, const Evictable& evictable);
  void LeaveAnswers(Reader* reader);
  bool MayReadAtOnce(const Use& use) const;
  bool MayTakeSlot(const Use& use) const;
  void Post(Reader* reader, Place place);
  void TakeSlot(Reader* reader);
  void Leave(Reader* reader);
  void AppendToTurn(Reader* reader);
  void RemoveFromTurn(Reader* reader);
  std::vector<Reader*> PostWaiting();
  void Grade(Use* use, int change) const;
  void MarkLongReads(Clock::time_point now);
  void GiveSlots();
  void EvictFor(Reader* reader, Clock::time_point now);
  Reader* VictimFor(const Reader& needy, Clock::time_point now) const;
  void Evict(Reader* reader);

  const AdmissionLimits limits_;
  const int max_slots_;
  const int max_client_slots_;
  Clock::time_point (*const now_)();

  std::mutex mutex_;
  Use all_;
  int long_without_slot_{0};  // reads
  bool evicted_{false};       // since the last sweep
  bool draining_{false};
  std::list<Reader*> reads_;  // of all calls that are being received, oldest first
  std::list<Reader*> answers_;
  std::list<Turn> turns_;  // the next client first
};

}  // namespace sap
