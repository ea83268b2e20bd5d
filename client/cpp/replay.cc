#include "client/cpp/replay.h"

#include <utility>

#include "client/cpp/backend/backend.h"
#include "client/cpp/files/recording_reader.h"
#include "client/cpp/files/replay_comparison.h"
#include "client/cpp/transport/message_conversion.h"
#include "client/cpp/transport/server_identity.h"
#include "proto/codec/problem_decoder.h"
#include "sap/v1/recording.pb.h"

namespace sap::client {
namespace {

struct Judgement {
  enum class Verdict : uint8_t { kIdentical, kDifferent, kNotReplayable };
  Verdict verdict{Verdict::kIdentical};
  std::string why;
};

Judgement NotReplayable(const std::string& why) {
  return {Judgement::Verdict::kNotReplayable, why};
}

// Identical if the difference is empty.
Judgement Differs(const std::string& difference) {
  if (difference.empty()) return {};
  return {Judgement::Verdict::kDifferent, difference};
}

Judgement OutcomeDiffers(const std::string& now, const std::string& recorded) {
  return Differs("the outcome is '" + now + "', recorded as '" + recorded + "'");
}

// Solves the recorded problem with these options, but without their time budget and response mask.
SolveOutcome Solve(const v1::RecordedSolve& record, v1::SolveOptions options, Backend* backend,
                   BuildPin* pin) {
  if (!record.has_problem()) {
    return FromEngine(RefuseField("problem", "is missing; every request needs one").value());
  }
  options.clear_time_budget();
  options.clear_response_mask();
  const auto settings = DecodeOptions(options, kInProcessLimits);
  if (!settings) return FromEngine(settings.error());
  const auto problem = DecodeProblem(record.problem());
  if (!problem) return FromEngine(problem.error());
  SolveOptions own;
  own.solver = settings->solver;
  if (options.priority() == v1::PRIORITY_HIGH) own.priority = Priority::kHigh;
  return Await<SolveOutcome>([&](Where where, Done<SolveOutcome> done) {
    backend->Solve(*problem, own, std::nullopt, where, pin, std::move(done));
  });
}

tl::expected<Judgement, Error> ReplayFailure(const v1::RecordedSolve& record, Backend* backend,
                                             BuildPin* pin) {
  const v1::Failure& failure = record.outcome().failure();
  const ErrorCode code = FromCode(failure.code());
  if (code != ErrorCode::kInvalidArgument) {
    return NotReplayable(std::string("ended with ") + Name(code));
  }
  const SolveOutcome solved = Solve(record, record.options(), backend, pin);
  if (solved) return OutcomeDiffers("a solution", failure.message());
  if (solved.error().code != code) return tl::unexpected(solved.error());
  if (solved.error().message == failure.message() && solved.error().field == failure.field()) {
    return Judgement();
  }
  return OutcomeDiffers(solved.error().message, failure.message());
}

tl::expected<Judgement, Error> ReplaySolution(const v1::RecordedSolve& record, Backend* backend,
                                              BuildPin* pin) {
  ReplayComparison comparison(record);
  if (!comparison.complete()) return Differs("the recorded solution is not complete");
  v1::SolveOptions options = record.options();
  for (const ReplayComparison::Run& run : comparison.runs()) {
    options.set_max_iterations(run.iteration_limit);
    options.set_newton(run.method);
    const SolveOutcome solved = Solve(record, options, backend, pin);
    if (!solved) {
      if (solved.error().code != ErrorCode::kInvalidArgument) {
        return tl::unexpected(solved.error());
      }
      return OutcomeDiffers(solved.error().message, "a solution");
    }
    comparison.AddRun(*solved);
  }
  return Differs(comparison.FirstDifference());
}

tl::expected<Judgement, Error> Replay(const v1::RecordedSolve& record, Backend* backend,
                                      BuildPin* pin) {
  switch (record.outcome().outcome_case()) {
    case v1::Outcome::kSolution:
      return ReplaySolution(record, backend, pin);
    case v1::Outcome::kFailure:
      return ReplayFailure(record, backend, pin);
    case v1::Outcome::OUTCOME_NOT_SET:
      break;
  }
  return NotReplayable("has no outcome");
}

void Count(const Judgement& judgement, ReplayReport* report) {
  const std::string why = "record " + std::to_string(++report->records) + ": " + judgement.why;
  switch (judgement.verdict) {
    case Judgement::Verdict::kIdentical:
      ++report->identical;
      break;
    case Judgement::Verdict::kDifferent:
      if (report->different++ == 0) report->first_difference = why;
      break;
    case Judgement::Verdict::kNotReplayable:
      if (report->not_replayable++ == 0) report->first_not_replayable = why;
      break;
  }
}

}  // namespace

tl::expected<ReplayReport, Error> ReplayRecording(const std::string& path, Backend* backend) {
  const auto server = InfoOf(backend, CallOptions());
  if (!server) return tl::unexpected(server.error());
  auto reader = RecordingReader::Open(path);
  if (!reader) return tl::unexpected(reader.error());
  BuildPin pin(BuildName(server->version, server->instruction_set));
  ReplayReport report;
  v1::RecordedSolve record;
  while (true) {
    const auto found = reader->Next(&record);
    if (!found) return tl::unexpected(found.error());
    report.truncated = *found == RecordingReader::Found::kIncomplete;
    if (*found != RecordingReader::Found::kRecord) break;
    const auto judgement = Replay(record, backend, &pin);
    if (!judgement) return tl::unexpected(judgement.error());
    Count(*judgement, &report);
    const std::string recorded = BuildName(record.version(), record.instruction_set());
    report.same_build = report.same_build && recorded == pin.build();
  }
  if (report.records > 0) return report;
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, path + ": is not a recording", ""});
}

}  // namespace sap::client
