// The standard health protocol, served from the same completion queues as the solver, so that an
// answer also proves that the thread of one of them runs. (gRPC's own implementation adds polling
// threads, which would take events of other connections and deliver them late.)
//
// Service names: "" is the whole server, "sap.v1.SolverService" the solver. Both are SERVING from
// the start, since there is no initialization to wait for, and NOT_SERVING once the server drains.
// Watch streams stay open until the server shuts down: clients that watch would ask again at once.
//
// Everybody may call this service, and gRPC 1.51 takes in a message of any length once its read is
// posted. Where tokens are required, the message of a call without a valid one is therefore not
// read: it gets the status of the server, whatever name it asks for, and holds no more than the
// initial window of 64 kB. Messages of clients are read, since they may hold memory elsewhere as
// well: at most 4 are being received for longer than 50 ms, a further one cancels the oldest, and
// none for longer than 1.5 s. A message is freed once its name is compared, without being parsed if
// it is too long to be a known name.
//
// Watch streams are limited per connection, and in all, at the expense of the address that has most
// (watch_shares.h).
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <list>
#include <mutex>
#include <string>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/auth/authenticator.h"
#include "server/ops/call_observer.h"
#include "server/rpc/server_call.h"
#include "server/rpc/watch_shares.h"
#include "server/server_config.h"

namespace sap {

class HealthService {
 public:
  HealthService(const ConnectionConfig& limits, InFlightCalls* in_flight_calls,
                const Authenticator* authenticator, const CallObserver& observer)
      : check_(this, kCheck, in_flight_calls),
        watch_(this, kWatch, in_flight_calls),
        authenticator_(authenticator),
        observer_(observer),
        watchers_(limits.max_watches, limits.max_watches_per_connection) {}

  grpc::Service* service() { return &service_; }

  // Keeps `count` Check calls and one Watch call awaited on the queue.
  void Await(grpc::ServerCompletionQueue* queue, int count);

  // From now on NOT_SERVING. Watch streams receive it.
  void Drain();

  // Cancels calls that their clients hold up; call periodically.
  void Sweep();

 private:
  using Clock = std::chrono::steady_clock;
  using Service = grpc::health::v1::Health::Service;
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // Indices in the schema.
  enum : uint8_t { kCheck, kWatch };

  class Call;

  // The calls do not end as those of the solver do: nobody reports them, no drain waits for them.
  struct HealthMethod final : RpcMethod {
    HealthMethod(HealthService* owner, int index, InFlightCalls* in_flight_calls)
        : RpcMethod({&owner->service_, index, {.in_flight_calls = in_flight_calls}}) {}
  };

  void Await(grpc::ServerCompletionQueue* queue, HealthMethod* method);

  // Cancels the oldest reads beyond the limit.
  void CancelReads(Clock::time_point now);

  // May end it, or another one in its favor.
  void AddWatcher(Call* watcher, const std::string& peer);
  void RemoveWatcher(Call* watcher);

  HeadersFirstService<Service> service_{2};
  HealthMethod check_;
  HealthMethod watch_;
  const Authenticator* const authenticator_;
  const CallObserver observer_;

  std::mutex mutex_;
  bool draining_{false};
  // Accepted calls, oldest first.
  std::list<Call*> reading_;
  std::list<Call*> checks_;
  WatchShares<Call> watchers_;
};

}  // namespace sap
