// Token buckets for rejections, one per client. Rejections beyond a client's rate are delayed by at
// most ten seconds, of calls without a valid token by at most one, and sent in 20 ms batches.
//
// Otherwise clients that retry immediately could saturate the server with rejections. A client that
// waits for its rejection sends no further request, and a batch costs less than separate responses.
// Rejections of one client delay no other client. Calls without a valid token are one client.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "server/rpc/completion_tag.h"
#include "server/scheduling/client_account.h"

namespace sap {

// Thread-safe.
class RejectionRateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RejectionRateLimiter(int solver_threads);

  // False: send the rejection now. True: the tag completes on the queue when it may be sent. The
  // account is null for a call that was not authenticated.
  bool Delay(const ClientAccount* account, grpc::CompletionQueue* queue, CompletionTag* tag,
             grpc::Alarm* alarm);

  // Takes a token of the client; an empty name is that of calls without a valid token. Returns how
  // long this rejection must be delayed; zero: send it now.
  Clock::duration Wait(std::string_view client, Clock::time_point now);

 private:
  const Clock::duration interval_;
  std::mutex mutex_;
  // Earliest send time of the last rejection of each client with fewer tokens than a full bucket.
  std::map<std::string, Clock::time_point, std::less<>> last_due_;
  size_t sweep_at_{64};  // number of clients at which those with a full bucket are erased
};

}  // namespace sap
