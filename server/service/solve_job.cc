#include "server/service/solve_job.h"

#include <algorithm>

#include "proto/codec/derivatives_codec.h"
#include "proto/codec/solution_encoder.h"
#include "server/server_identity.h"
#include "server/service/call_trace.h"
#include "server/service/failure_encoder.h"
#include "solver/build_info.h"

namespace sap {
namespace {

using Clock = CallContext::Clock;

// Predicted time to validate and copy a problem, per byte of its message.
constexpr double kDecodeTimePerByte_s = 1e-9;
// Predicted time to encode and send an answer, per byte of its request, which is rarely smaller.
constexpr std::chrono::nanoseconds kAnswerTimePerByte{10};

std::chrono::nanoseconds Nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

bool AllSolved(const ContactSolution& solution) {
  return std::ranges::all_of(solution.islands, [](const IslandReport& island) {
    return island.status == SolveStatus::kConverged ||
           island.status == SolveStatus::kStalledAtRoundoff;
  });
}

// Writes the guess that the solve started from into the message, so that the record is
// self-contained.
void SetGuess(const std::vector<double>& guess, v1::ContactProblem* message) {
  const auto trees_end = guess.begin() + message->trees().free_motion_velocity_size();
  if (message->has_trees()) {
    message->mutable_trees()->mutable_guess_velocity()->Assign(guess.begin(), trees_end);
  }
  if (message->has_bodies()) {
    message->mutable_bodies()->mutable_guess_velocity()->Assign(trees_end, guess.end());
  }
}

void SetTime(Clock::time_point time, google::protobuf::Timestamp* message) {
  using std::chrono::nanoseconds;
  const auto since_epoch = std::chrono::duration_cast<nanoseconds>(
      (std::chrono::system_clock::now() - (Clock::now() - time)).time_since_epoch());
  message->set_seconds(since_epoch.count() / 1'000'000'000);
  message->set_nanos(static_cast<int32_t>(since_epoch.count() % 1'000'000'000));
}

}  // namespace

void SolveJob::Begin(const v1::ContactProblem* problem, const v1::SolveOptions& options,
                     const CallContext& call, SharedIslands* shared) {
  message_ = problem;
  options_ = &options;
  call_ = call;
  differentiation_ = nullptr;
  batch_ = nullptr;
  shared_ = shared;
  decoded_ = false;
  queue_s_ = 0;
  decode_s_ = 0;
  encode_s_ = 0;
}

void SolveJob::Begin(const v1::DifferentiateRequest& request, const CallContext& call,
                     v1::DifferentiateResponse* response,
                     const v1::DifferentiateBatchRequest* batch) {
  Begin(request.has_problem() ? &request.problem() : nullptr, request.options(), call);
  differentiation_ =
      std::make_unique<Differentiation>(Differentiation{.request = &request, .response = response});
  batch_ = batch;
}

void SolveJob::AddQueueTime(double seconds) {
  queue_s_ += seconds;
  EndPhase(Phase::kQueue, seconds);
}

// Tells the trace of the call, if there is one, of a phase that ends now.
void SolveJob::EndPhase(Phase phase, double duration_s) const {
  if (call_.trace != nullptr) call_.trace->Add(phase, Clock::now(), duration_s);
}

bool SolveJob::IsLongMessage(const ServerConfig& config) const {
  return message_ != nullptr &&
         static_cast<double>(message_->ByteSizeLong()) * kDecodeTimePerByte_s >=
             config.inline_below_us * 1e-6;
}

bool SolveJob::IsSmall(const ServerConfig& config) const {
  return task_.IsSmall(settings_.solver, config.inline_below_us * 1e-6);
}

ServiceStatus SolveJob::Decode(const ServerConfig& config) {
  return CatchExceptions([&] { return DecodeAll(config); });
}

ServiceStatus SolveJob::DecodeAll(const ServerConfig& config) {
  if (message_ == nullptr) return RefuseField("problem", "is missing; every request needs one");
  if (ServiceStatus decoded = DecodeSettings(config); !decoded) return decoded;
  const auto view = DecodeProblem(*message_);
  if (!view) return tl::unexpected(view.error());
  SolveRequest request{.problem = *view, .settings = settings_, .shared = shared_};
  if (differentiation_) request.derivatives = DecodeDerivatives(*differentiation_->request);
  if (const auto read = task_.Read(std::move(request), config, config.threads); !read) {
    return tl::unexpected(read.error());
  }
  if (differentiation_) {
    const auto size = CheckSize(*differentiation_->request, config);
    if (!size) return tl::unexpected(size.error());
    differentiation_->answer_bytes = size->answer_bytes;
  }
  decoded_ = true;
  decode_s_ = SecondsSince(call_.arrival) - queue_s_;
  EndPhase(Phase::kDecode, decode_s_);
  small_ = IsSmall(config);
  return {};
}

ServiceStatus SolveJob::DecodeSettings(const ServerConfig& config) {
  const auto settings =
      DecodeOptions(*options_, config,
                    differentiation_ ? kDerivativeTolerance : SolverOptions().relative_tolerance);
  if (!settings) return tl::unexpected(settings.error());
  settings_ = *settings;
  if (batch_ == nullptr) return {};
  if (settings_.time_budget) {
    return RefuseTimeBudgetInBatch();
  }
  if (batch_->has_time_budget()) settings_.time_budget = *DecodeTimeBudget(batch_->time_budget());
  return {};
}

SolveLimits SolveJob::Limits() const {
  SolveLimits limits{.time_budget = settings_.time_budget};
  if (call_.deadline != Clock::time_point::max()) {
    const auto request_bytes = static_cast<int64_t>(message_->ByteSizeLong());
    const int64_t answer_bytes = differentiation_ ? differentiation_->answer_bytes : 0;
    limits.answer_time = std::max(request_bytes, answer_bytes) * kAnswerTimePerByte;
  }
  // Small problems are bounded by their iterations, and spared the clock.
  if (call_.account != nullptr && !small_) {
    limits.latest = Clock::now() + Nanoseconds(call_.account->entitlements().max_solve_s);
  }
  return limits;
}

ServiceStatus SolveJob::Solve(Solver* solver, v1::ContactSolution* answer) {
  Derivatives* derivatives = differentiation_ ? &differentiation_->derivatives : nullptr;
  const EngineStatus solved =
      task_.Solve(solver, settings_.solver, call_, Limits(), &solution_, derivatives);
  if (!solved) return tl::unexpected(solved.error());
  const Clock::time_point encoding = Clock::now();
  EndPhase(Phase::kSolve, solution_.times.islands_s + solution_.times.solve_s);
  EncodeSolution(solution_, settings_.mask, answer);
  if (differentiation_ != nullptr) {
    EncodeDerivatives(task_, derivatives, differentiation_->response);
  }
  encode_s_ = SecondsSince(encoding);
  EndPhase(Phase::kEncode, encode_s_);
  if (answer->has_timings()) AddTimings(answer->mutable_timings());
  return {};
}

double SolveJob::share_of_work() const {
  if (solution_.shared_constraints == 0) return 1;
  const auto constraints =
      static_cast<double>(solution_.delassus_estimate.size() + solution_.row_impulse.size());
  return 1 - static_cast<double>(solution_.shared_constraints) / constraints;
}

void SolveJob::AddTimings(v1::PhaseTimings* timings) const {
  timings->set_decode_s(decode_s_);
  timings->set_queue_s(queue_s_);
  timings->set_encode_s(encode_s_);
}

void SolveJob::Report(const ServiceStatus& status, const Telemetry& telemetry) {
  if (telemetry.metrics != nullptr) {
    if (!status) telemetry.CountRefusal(status.error());
    const double solve_s = solution_.times.islands_s + solution_.times.solve_s;
    telemetry.metrics->ProblemEnded({queue_s_, decode_s_, solve_s, encode_s_},
                                    status ? &solution_ : nullptr);
  }
  // A replay solves. The solution of a call of Differentiate has taken a further Newton step, whose
  // bits it would not find.
  if (differentiation_ == nullptr) Record(status, telemetry.recorder);
  differentiation_ = nullptr;
}

void SolveJob::Record(const ServiceStatus& status, RequestRecorder* recorder) const {
  if (recorder == nullptr) return;
  const double duration_s = SecondsSince(call_.arrival);
  const bool failed = !status || !AllSolved(solution_);
  if (!recorder->Wants(failed, duration_s)) return;
  const ServiceStatus recorded = CatchExceptions([&]() -> ServiceStatus {
    recorder->Add(MakeRecord(status, duration_s));
    return {};
  });
  if (!recorded) recorder->Drop();
}

v1::RecordedSolve SolveJob::MakeRecord(const ServiceStatus& status, double duration_s) const {
  v1::RecordedSolve record;
  record.set_version(ServerVersion());
  record.set_instruction_set(InstructionSet());
  SetTime(call_.arrival, record.mutable_arrival_time());
  if (message_ != nullptr) *record.mutable_problem() = *message_;
  *record.mutable_options() = *options_;
  record.set_duration_s(duration_s);
  // A problem that is refused where it is solved stays as it came.
  const bool refused = !status && status.error().code == ServiceCode::kInvalidArgument;
  if (decoded_ && !refused) {
    SetGuess(task_.guess(), record.mutable_problem());
    // Explicit, since this server's limit may be lower than the default of the server that replays.
    record.mutable_options()->set_max_iterations(settings_.solver.max_iterations);
  }
  if (!status) {
    EncodeFailure(status.error(), record.mutable_outcome()->mutable_failure());
    return record;
  }
  v1::ContactSolution* solution = record.mutable_outcome()->mutable_solution();
  EncodeSolution(solution_, SolutionMask().set(), solution);
  AddTimings(solution->mutable_timings());
  return record;
}

}  // namespace sap
