#include "client/cpp/transport/world_calls.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "client/cpp/transport/loss.h"
#include "client/cpp/transport/request_bytes.h"

namespace sap::client {
namespace {

constexpr const char* kAdvance = "/sap.v1.WorldService/Advance";
constexpr const char* kPutModel = "/sap.v1.WorldService/PutModel";

// Most bytes of the arrays of a slice.
constexpr int64_t kSlice_bytes = int64_t{4} << 20;
// How often a server may say that it does not have a model that it was given. Behind a proxy each
// call may go to another one: after the k-th time it is put k times.
constexpr int kMostNotFound = 8;

// Reasons of WorldService.
constexpr std::string_view kModel = "MODEL";
constexpr std::string_view kMujocoVersion = "MUJOCO_VERSION";
constexpr std::string_view kAnswerBytes = "ANSWER_BYTES";
constexpr std::string_view kStepTime = "WORLD_STEP_TIME";
constexpr std::string_view kWorldLost = "WORLD_LOST";

// The numbers in a message are those of the slice: "step 2 of world 3 took longer" -> "it took
// longer", "step 2 of world 3: why" -> "why".
std::string WithoutStep(const std::string& message, const WorldStep& at) {
  const std::string step =
      "step " + std::to_string(at.step) + " of world " + std::to_string(at.world);
  if (!message.starts_with(step)) return message;
  const std::string rest = message.substr(step.size());
  return rest.starts_with(": ") ? rest.substr(2) : "it" + rest;
}

std::string HexOf(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text.push_back(kDigits[static_cast<uint8_t>(byte) >> 4]);
    text.push_back(kDigits[static_cast<uint8_t>(byte) & 15]);
  }
  return text;
}

std::string NameOf(const WorldSlice& slice) {
  return "worlds " + std::to_string(slice.begin) + " to " + std::to_string(slice.end - 1) +
         ", steps " + std::to_string(slice.first_step) + " to " +
         std::to_string(slice.first_step + slice.steps - 1) + ": ";
}

}  // namespace

WorldCalls::WorldCalls(std::shared_ptr<WorldServers> servers, Events* events,
                       const WorldsView& worlds, const WorldCallSettings& settings)
    : servers_(std::move(servers)),
      events_(events),
      worlds_(worlds),
      settings_(settings),
      results_(worlds),
      queue_(worlds.models, worlds.steps, worlds.every),
      bytes_(kSlice_bytes) {}

Task<Status> WorldCalls::Run() {
  if (Status found = FindServers(); !found) co_return found;
  while (true) {
    BeginCalls();
    if (calls_.empty() && (error_ || queue_.empty())) break;
    co_await events_->Next();
    TakeEnded();
  }
  if (error_) co_return tl::unexpected(*error_);
  co_return Status();
}

Status WorldCalls::FindServers() {
  auto found = servers_->Find();
  if (!found) return tl::unexpected(found.error());
  for (auto& server : *found) members_.push_back({.server = std::move(server)});
  return {};
}

// ---- Begin

void WorldCalls::BeginCalls() {
  while (!error_ && !queue_.empty() && BeginNext()) {
  }
  if (!error_) return;
  for (Call& call : calls_) call.context.TryCancel();
}

bool WorldCalls::BeginNext() {
  if (events_->cancelled()) return Fail(CallCancelled()), false;
  if (settings_.deadline && Clock::now() >= *settings_.deadline) {
    return Fail({ErrorCode::kDeadlineExceeded, "the deadline of the call has passed"}), false;
  }
  const auto member = ChooseServer(queue_.front());
  if (!member) return false;
  BeginAdvance(*member, queue_.Acquire(LimitsFor(queue_.front())));
  return true;
}

std::optional<size_t> WorldCalls::ChooseServer(const WorldSlice& slice) {
  const Clock::time_point now = Clock::now();
  std::optional<size_t> chosen;
  int least = 0;
  bool are_all_passed_over = true;
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    are_all_passed_over = are_all_passed_over && member.is_passed_over;
    if (!MayTake(member, slice, now)) continue;
    const int outstanding = servers_->Outstanding(*member.server);
    if (chosen && outstanding >= least) continue;
    chosen = i;
    least = outstanding;
  }
  if (are_all_passed_over) {
    Fail(*refusal_);
  } else if (!chosen) {
    AwaitPausedServer(now);
  }
  return chosen;
}

// A slice that was lost goes to another server, if one can be reached.
bool WorldCalls::MayTake(const Member& member, const WorldSlice& slice,
                         Clock::time_point now) const {
  const auto is_reached = [&](const Member& one) {
    return !one.is_passed_over && servers_->PausedUntil(*one.server) <= now;
  };
  if (!is_reached(member) || member.in_flight >= member.most_in_flight) return false;
  if (member.putting == IdOf(*worlds_.models[slice.begin])) return false;
  const bool was_lost_here = slice.lost_at >= 0 && &members_[slice.lost_at] == &member;
  return !was_lost_here || std::ranges::none_of(members_, [&](const Member& other) {
    return &other != &member && is_reached(other);
  });
}

// Sets a timer for the first server that was lost and may be back, unless that is too late.
void WorldCalls::AwaitPausedServer(Clock::time_point now) {
  Clock::time_point first = kNever;
  for (const Member& member : members_) {
    if (member.is_passed_over) continue;
    const Clock::time_point until = servers_->PausedUntil(*member.server);
    if (until > now) first = std::min(first, until);
  }
  if (first == kNever) return;
  if (calls_.empty() && lost_until_ && first >= *lost_until_) return Fail(*refusal_);
  if (settings_.deadline) first = std::min(first, *settings_.deadline);
  if (timer_ > now && timer_ <= first) return;
  timer_ = first;
  events_->AddAt(first);
}

SliceLimits WorldCalls::LimitsFor(const WorldSlice& slice) const {
  const auto speed = servers_->SpeedOf(SpeedName(slice));
  const auto usable =
      std::ranges::count_if(members_, [](const Member& member) { return !member.is_passed_over; });
  return {.step_s = speed.step_s,
          .threads = speed.threads,
          .servers = static_cast<int>(usable),
          .bytes = bytes_,
          .bytes_per_world = results_.bytes_per_world(),
          .bytes_per_step = results_.bytes_per_step()};
}

std::string WorldCalls::SpeedName(const WorldSlice& slice) const {
  return IdOf(*worlds_.models[slice.begin]) + std::to_string(static_cast<int>(worlds_.law));
}

WorldCalls::Call* WorldCalls::NewCall(size_t member, int lost_attempts) {
  Call* const call = &calls_.emplace_back(events_, member);
  const Channel& channel = members_[member].server->channel();
  const CallStart start{channel.authorization, settings_.call, settings_.high_priority,
                        channel.encrypted};
  Timeout left;
  if (settings_.deadline) left = *settings_.deadline - Clock::now();
  start.Prepare(left, lost_attempts, &call->context);
  ++members_[member].in_flight;
  servers_->Begin(members_[member].server.get());
  return call;
}

void WorldCalls::BeginAdvance(size_t member, const WorldSlice& slice) {
  Call* const call = NewCall(member, slice.lost_attempts);
  call->slice = slice;
  call->advance_reader =
      BytesStub<v1::AdvanceResponse>(members_[member].server->channel().channel)
          .PrepareUnaryCall(&call->context, kAdvance, Serialize(results_.RequestOf(slice)),
                            events_->queue());
  call->advance_reader->StartCall();
  call->advance_reader->Finish(&call->advanced, &call->status, events_->Begin(&call->operation));
}

void WorldCalls::BeginPut(size_t member, const WorldModel& model, int further) {
  Call* const call = NewCall(member, 0);
  call->put = &model;
  call->puts_left = further;
  members_[member].putting = IdOf(model);
  call->put_reader = BytesStub<v1::PutModelResponse>(members_[member].server->channel().channel)
                         .PrepareUnaryCall(&call->context, kPutModel,
                                           Serialize(PutRequestOf(model)), events_->queue());
  call->put_reader->StartCall();
  call->put_reader->Finish(&call->kept, &call->status, events_->Begin(&call->operation));
}

// ---- End

void WorldCalls::TakeEnded() {
  for (auto call = calls_.begin(); call != calls_.end();) {
    if (call->operation.pending) {
      ++call;
      continue;
    }
    Member& member = members_[call->member];
    --member.in_flight;
    servers_->End(member.server.get());
    if (call->put != nullptr) member.putting.clear();
    if (!error_) End(&*call);
    call = calls_.erase(call);
  }
}

void WorldCalls::End(Call* call) {
  if (!call->status.ok()) {
    if (events_->cancelled()) return Fail(CallCancelled());
    const bool encrypted = members_[call->member].server->channel().encrypted;
    return Failed(*call, ToError(call->status, call->context, encrypted));
  }
  servers_->Answered(members_[call->member].server.get());
  lost_until_.reset();
  if (call->put == nullptr) return Answered(*call);
  if (call->puts_left > 0) return BeginPut(call->member, *call->put, call->puts_left - 1);
  members_[call->member].put = IdOf(*call->put);
  members_[call->member].put_at = Clock::now();
}

void WorldCalls::Answered(const Call& call) {
  if (Status checked = CheckServer(call); !checked) {
    return PassOver(call, checked.error());
  }
  if (Status taken = results_.Take(call.slice, call.advanced); !taken) return Fail(taken.error());
  Measure(call);
  members_[call.member].not_found = 0;
  queue_.Continue(call.slice, [this](int64_t world) { return results_.GoesOn(world); });
}

// Bits are equal for equal version, instruction set and library of MuJoCo.
Status WorldCalls::CheckServer(const Call& call) {
  const ServerIdentity server = IdentityIn(call.context.GetServerTrailingMetadata());
  if (server.build.empty()) return {};
  const std::string& library = call.advanced.mujoco_library_sha256();
  std::string build(server.build);
  if (!library.empty()) build += ", MuJoCo " + HexOf(library).substr(0, 16);
  if (!settings_.allow_mixed_servers) return pin_.Take({build, server.boot_id});
  pin_.TakeAny({build, server.boot_id});
  return {};
}

void WorldCalls::Measure(const Call& call) {
  int64_t steps = 0;
  for (const v1::WorldOutcome& outcome : call.advanced.outcomes()) steps += outcome.steps();
  if (steps == 0) return;
  double time_s = call.advanced.step_time();
  if (!(time_s > 0)) time_s = std::chrono::duration<double>(Clock::now() - call.begun).count();
  servers_->Measure(SpeedName(call.slice), time_s / static_cast<double>(steps),
                    std::max(1, static_cast<int>(call.advanced.threads())));
}

void WorldCalls::Failed(const Call& call, Error error) {
  if (error.reason == kModel && call.put == nullptr) return PutModelAt(call, std::move(error));
  if (error.reason == kMujocoVersion || error.code == ErrorCode::kUnimplemented) {
    return PassOver(call, std::move(error));
  }
  if (IsLoss(error, CallKind::kCall)) return Lost(call, std::move(error));
  if (call.put == nullptr &&
      (Narrowed(call, error) || WorldFailed(call, error) || FewerCalls(call, error))) {
    return;
  }
  Fail(std::move(error));
}

void WorldCalls::Lost(const Call& call, Error error) {
  const auto within = settings_.reconnect_within;
  if (!lost_until_) lost_until_ = Clock::now() + within;
  servers_->Lost(members_[call.member].server.get());
  WorldSlice slice = call.slice;
  slice.lost_attempts += error.lost_attempts;
  slice.lost_at = static_cast<int>(call.member);
  error.lost_attempts = slice.lost_attempts;
  refusal_ = error;
  const bool is_over = within <= Clock::duration::zero() || Clock::now() >= *lost_until_;
  if (call.put == nullptr && slice.lost_attempts >= kMaxLostAttempts) {
    error.message.insert(0, NameOf(slice));
    return Fail(std::move(error));
  }
  if (is_over) return Fail(std::move(error));
  if (call.put == nullptr) queue_.Return(slice);
}

void WorldCalls::PutModelAt(const Call& call, Error error) {
  Member& member = members_[call.member];
  queue_.Return(call.slice);
  const WorldModel& model = *worlds_.models[call.slice.begin];
  if (member.putting == IdOf(model)) return;                            // for another slice
  if (member.put == IdOf(model) && call.begun < member.put_at) return;  // it has come since
  if (++member.not_found > kMostNotFound) {
    error.code = ErrorCode::kFailedPrecondition;
    error.message = "no server keeps the model that it was given: " + error.message;
    return Fail(std::move(error));
  }
  BeginPut(call.member, model, member.not_found - 1);
}

void WorldCalls::PassOver(const Call& call, Error error) {
  if (error.code == ErrorCode::kUnimplemented && error.server.empty()) {
    error.message =
        "the server steps no worlds: it is of an older version, or was started without "
        "--mujoco-library";
  }
  members_[call.member].is_passed_over = true;
  refusal_ = std::move(error);
  if (call.put == nullptr) queue_.Return(call.slice);
}

bool WorldCalls::Narrowed(const Call& call, const Error& error) {
  const bool is_too_large = error.reason == kAnswerBytes || IsTooLarge(error);
  if (!is_too_large || call.slice.world_steps() <= worlds_.every) return false;
  const double bytes = static_cast<double>(call.slice.worlds()) *
                       (results_.bytes_per_world() +
                        static_cast<double>(call.slice.steps) * results_.bytes_per_step());
  bytes_ = std::min(bytes_, static_cast<int64_t>(bytes / 2));
  queue_.Return(call.slice);
  return true;
}

bool WorldCalls::WorldFailed(const Call& call, const Error& error) {
  if (error.reason != kStepTime && error.reason != kWorldLost) return false;
  const std::optional<WorldStep> at = WorldStepIn(call.status);
  const WorldSlice& slice = call.slice;
  if (!at || at->world >= slice.worlds() || at->step >= slice.steps) return false;
  const int64_t world = slice.begin + at->world;
  Error failure = error;
  failure.message = WithoutStep(error.message, *at);
  results_.Fail(slice, world, slice.first_step + at->step, std::move(failure));
  WorldSlice other = slice;
  other.begin = world + 1;
  if (other.worlds() > 0) queue_.Return(other);
  other.begin = slice.begin;
  other.end = world;
  if (other.worlds() > 0) queue_.Return(other);
  return true;
}

// Where a limit of calls is reached by calls of this one, it goes on with fewer.
bool WorldCalls::FewerCalls(const Call& call, const Error& error) {
  Member& member = members_[call.member];
  if (error.code != ErrorCode::kResourceExhausted || member.in_flight == 0) return false;
  member.most_in_flight = 1;
  queue_.Return(call.slice);
  return true;
}

void WorldCalls::Fail(Error error) {
  if (!error_) error_ = std::move(error);
}

}  // namespace sap::client
