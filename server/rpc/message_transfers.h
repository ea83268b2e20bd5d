// Bounds what calls hold outside of the solver, per client and in total: request messages that are
// being received, and answers that their clients have not taken.
//
// gRPC 1.51 takes in at most the initial window of 64 kB of a message before it is read. Once a
// read is posted, it opens the window for all that the client has announced, and compares the size
// with the limit only when the message is complete. So a posted read is a promise of memory, and
// reads are posted in slots: as many as largest messages fit into the transport's memory, half of
// them for one client. A message within the window completes its read in microseconds; only longer
// ones keep their slots. Reads beyond the slots wait in order. A read ends at the read timeout.
//
// The limits on calls apply to calls that are being received and to answers that are not yet taken
// as they apply to calls that are being solved, each by itself, so that a client at its limit does
// not have to wait until the server knows that it has the answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

#include "server/scheduling/client_account.h"
#include "server/server_config.h"
#include "server/service_error.h"

namespace sap {

// Thread-safe. Accounts must outlive their calls' transfers.
class MessageTransfers {
 public:
  // The read of one call.
  class Reader {
   public:
    // Posts the read. Called once, possibly on the thread of another call.
    virtual void PostRead() = 0;

   protected:
    ~Reader() = default;

   private:
    friend class MessageTransfers;
    ClientAccount* client_{nullptr};
  };

  explicit MessageTransfers(const ServerConfig& config);

  // RESOURCE_EXHAUSTED at a limit on calls or bytes. Otherwise the reader posts its read, now or
  // later, and calls EndRead when it has completed.
  ServiceStatus BeginRead(ClientAccount* account, Reader* reader);
  void EndRead(ClientAccount* account);

  // The call of the reader was cancelled: if its read still waits it is posted, and fails at once.
  void Expedite(Reader* reader);

  // An answer is about to be sent, and has been taken. Bytes: of the answer or of its request,
  // whichever is larger.
  void BeginAnswer(ClientAccount* account, int64_t bytes);
  void EndAnswer(ClientAccount* account, int64_t bytes);

 private:
  using Use = ClientAccount::Transfers;

  ServiceStatus CheckLimits(const ClientAccount& account) const;
  bool TakeSlot(ClientAccount* account);
  void PostWaiting();

  const AdmissionLimits limits_;
  const int max_slots_;
  const int max_client_slots_;
  Use all_;

  // Number of waiting readers. A returned slot is seen by a reader that starts to wait, or that
  // reader by whoever returns the slot, because all of these operations are sequentially
  // consistent.
  std::atomic<size_t> num_waiting_{0};
  std::mutex mutex_;
  std::deque<Reader*> waiting_;
};

}  // namespace sap
