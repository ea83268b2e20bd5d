// Attempts of a call after losses: when the next one is made, and for how long. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <optional>

#include "client/cpp/transport/transport.h"

namespace sap::client {

// None before the first attempt after a loss, which a server next to the lost one takes at once;
// then 50 ms, doubling up to 1 s.
class RetryPauses {
 public:
  std::chrono::milliseconds Next();
  void Restart() { next_ = {}; }

 private:
  std::chrono::milliseconds next_{0};
};

// The attempts of one call. They end with the deadline of the call, which covers all of them, and
// `within` after the first loss.
class Retry {
 public:
  using Clock = std::chrono::steady_clock;

  Retry(grpc::Channel* channel, std::chrono::nanoseconds within, Transport::Timeout deadline);

  // For the next attempt: the time until the deadline.
  Transport::Timeout left() const;

  // After an attempt: whether to make another one. Waits for its time and for a connection.
  bool After(const Error& error);

  // A part of the answer has arrived: the next loss counts as the first one.
  void Restart();

 private:
  grpc::Channel* const channel_;
  const Clock::duration within_;
  std::optional<Clock::time_point> deadline_;
  std::optional<Clock::time_point> until_;  // absent: nothing was lost
  RetryPauses pauses_;
};

}  // namespace sap::client
