// Attempts of a call after losses: when the next one is made, and for how long. Internal.
//
// A call may be what ends the servers that get it. One that is lost after it was sent is therefore
// sent to one other server and then returned; attempts that met no server do not count.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <optional>

#include "client/cpp/backend/call_types.h"
#include "client/cpp/transport/event_loop.h"
#include "client/cpp/transport/server_identity.h"
#include "client/cpp/transport/task.h"

namespace sap::client {

// Sent messages that were lost with their connection, after which a call or step is returned.
constexpr int kMaxLostAttempts = 2;

// None before the first attempt after a loss, which a server next to the lost one takes at once;
// then 50 ms, doubling up to 1 s, times a random factor from 0.5 to 1.5: clients that lost a server
// together do not come back together.
class RetryPauses {
 public:
  std::chrono::milliseconds Next();
  void Restart() { next_ = {}; }

 private:
  std::chrono::milliseconds next_{0};
};

// Waits until the time. False: the call was cancelled.
Task<bool> Pause(Events* events, Clock::time_point until);

// The attempts of one call. They end with the deadline of the call, which covers all of them, and
// `within` after the first loss.
class Retry {
 public:
  Retry(grpc::Channel* channel, Events* events, std::chrono::nanoseconds within, Timeout deadline);

  // For the next attempt: the time until the deadline.
  Timeout left() const;

  // After an attempt that was lost, or answered by a server of another build: whether to make
  // another one. Waits for its time and for a connection. Writes the lost attempts so far into the
  // error.
  Task<bool> After(Error* error);
  int lost_attempts() const { return lost_attempts_; }

  // A part of the answer has arrived: there is as much time as after the first loss.
  void Restart();

  // Called when so much of the answer has arrived that the call is not what ends servers.
  void ForgetLostAttempts() { lost_attempts_ = 0; }

 private:
  bool MayRepeat(Error* error);
  Task<bool> AwaitConnection();

  grpc::Channel* const channel_;
  Events* const events_;
  const Clock::duration within_;
  std::optional<Clock::time_point> deadline_;
  std::optional<Clock::time_point> until_;  // absent: nothing was lost
  int lost_attempts_{0};
  BuildSearch build_search_;
  RetryPauses pauses_;
};

}  // namespace sap::client
