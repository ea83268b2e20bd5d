// Worlds stepped by the servers of an address: one call of a client as many of WorldService, two at
// a time for each server. Internal.
//
//   slices of worlds -> Advance at the server with the fewest calls -> rows of the caller
//                    <- lost: at another server
//                    <- NOT_FOUND: PutModel there, then again
#pragma once

#include <grpcpp/grpcpp.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cpp/backend/call_types.h"
#include "client/cpp/transport/event_loop.h"
#include "client/cpp/transport/grpc_call.h"
#include "client/cpp/transport/server_identity.h"
#include "client/cpp/transport/task.h"
#include "client/cpp/transport/world_messages.h"
#include "client/cpp/transport/world_queue.h"
#include "client/cpp/transport/world_servers.h"
#include "client/cpp/worlds.h"

namespace sap::client {

struct WorldCallSettings {
  CallOptions call{};
  bool high_priority{false};
  std::optional<Clock::time_point> deadline{};
  Clock::duration reconnect_within{};
  bool allow_mixed_servers{false};
};

class WorldCalls {
 public:
  WorldCalls(std::shared_ptr<WorldServers> servers, Events* events, const WorldsView& worlds,
             const WorldCallSettings& settings);

  // Steps the worlds. Failures of worlds are in their outcomes.
  Task<Status> Run();

 private:
  // A server, as this call sees it.
  struct Member {
    std::shared_ptr<WorldServers::Server> server;
    int in_flight{0};
    int most_in_flight{2};
    bool is_passed_over{false};  // it cannot step these worlds with the bits of the others
    std::string putting{};       // the model that it gets now
    std::string put{};           // the last one that it got, and when
    Clock::time_point put_at{};
    int not_found{0};  // how often it did not have one
  };

  // A call of gRPC.
  struct Call {
    Call(Events* events, size_t at) : member(at), cancelled(events, &context) {}

    const size_t member;
    WorldSlice slice{};
    const WorldModel* put{nullptr};  // PutModel; null: Advance
    int puts_left{0};                // after this one
    Clock::time_point begun{Clock::now()};
    grpc::ClientContext context;
    const CancelledWithEvents cancelled;
    v1::AdvanceResponse advanced;
    v1::PutModelResponse kept;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::AdvanceResponse>> advance_reader;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::PutModelResponse>> put_reader;
    grpc::Status status;
    Operation operation{};
  };

  Status FindServers();
  void BeginCalls();
  bool BeginNext();
  // The server for a slice; absent: there is none now.
  std::optional<size_t> ChooseServer(const WorldSlice& slice);
  bool MayTake(const Member& member, const WorldSlice& slice, Clock::time_point now) const;
  void AwaitPausedServer(Clock::time_point now);
  SliceLimits LimitsFor(const WorldSlice& slice) const;
  // Names how fast worlds of a model are under this law.
  std::string SpeedName(const WorldSlice& slice) const;
  Call* NewCall(size_t member, int lost_attempts);
  void BeginAdvance(size_t member, const WorldSlice& slice);
  void BeginPut(size_t member, const WorldModel& model, int further);

  void TakeEnded();
  void End(Call* call);
  void Answered(const Call& call);
  void Measure(const Call& call);
  void Failed(const Call& call, Error error);
  void Lost(const Call& call, Error error);
  void PutModelAt(const Call& call, Error error);
  void PassOver(const Call& call, Error error);
  // Whether the slice goes on in smaller parts, or without a world.
  bool Narrowed(const Call& call, const Error& error);
  bool WorldFailed(const Call& call, const Error& error);
  bool FewerCalls(const Call& call, const Error& error);
  Status CheckServer(const Call& call);
  void Fail(Error error);

  const std::shared_ptr<WorldServers> servers_;
  Events* const events_;
  const WorldsView worlds_;
  const WorldCallSettings settings_;
  WorldResults results_;
  WorldQueue queue_;
  int64_t bytes_;  // most of a slice
  std::vector<Member> members_;
  std::list<Call> calls_;
  BuildPin pin_;
  std::optional<Clock::time_point> lost_until_;  // since the first loss without an answer after it
  Clock::time_point timer_{};                    // that was set last
  std::optional<Error> refusal_;                 // of the last server that was passed over, or lost
  std::optional<Error> error_;                   // of the call
};

}  // namespace sap::client
