#include "client/cpp/transport/grpc_session.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "client/cpp/transport/call_completions.h"

namespace sap::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenAttempts{50};
// No further attempt to resume is started after this time; the session then ends with the error.
constexpr std::chrono::seconds kLongestResume{5};

// One gRPC stream with blocking operations.
class Stream {
 public:
  Stream(v1::SolverService::Stub* stub, const CallStart& start, Transport::Timeout timeout,
         bool polls)
      : completions_(polls) {
    start.Prepare(timeout, &context_);
    stream_ = stub->AsyncSolveSession(&context_, completions_.get(), completions_.tag());
    completions_.Await();
  }

  // False if the stream has ended.
  bool Write(const v1::SolveSessionRequest& request) {
    stream_->Write(request, completions_.tag());
    return completions_.Await();
  }
  bool Read(v1::SolveSessionResponse* response) {
    stream_->Read(response, completions_.tag());
    return completions_.Await();
  }

  void WritesDone() {
    stream_->WritesDone(completions_.tag());
    completions_.Await();
  }

  // To be called once, after Read has returned false or Cancel was called.
  Transport::Status Finish() {
    grpc::Status status;
    stream_->Finish(&status, completions_.tag());
    completions_.Await();
    return FromRpcStatus(status, context_);
  }

  void Cancel() { context_.TryCancel(); }

 private:
  CallCompletions completions_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::SolveSessionRequest, v1::SolveSessionResponse>>
      stream_;
};

class GrpcSession final : public SessionStream {
 public:
  GrpcSession(std::shared_ptr<v1::SolverService::Stub> stub, const CallStart& start,
              Transport::Timeout deadline, bool low_latency)
      : stub_(std::move(stub)), start_(start), low_latency_(low_latency) {
    if (deadline) deadline_ = Clock::now() + *deadline;
  }

  ~GrpcSession() override { Abandon(); }

  Transport::Status Open(const v1::SolveSessionRequest& request) {
    v1::SolveSessionResponse response;
    if (auto opened = Begin(request, TimeLeft(), &response); !opened) return opened;
    // Absent counts as 1.
    most_in_flight_ = static_cast<int>(
        std::clamp(response.opened().max_steps_in_flight(), uint32_t{1}, uint32_t{1} << 20));
    credits_ = most_in_flight_;
    resume_token_ = response.opened().resume_token();
    resume_within_ = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
        std::clamp(response.opened().resume_within_s(), 0.0, 86'400.0)));
    return {};
  }

  int max_steps_in_flight() const override { return credits_; }
  bool draining() const override { return draining_; }

  bool Send(const v1::SolveSessionRequest& request) override {
    if (resume_token_.empty()) return stream_->Write(request);
    // If the connection is lost, Receive notices it and sends the step again.
    unanswered_.push_back(request);
    stream_->Write(request);
    return true;
  }

  Transport::Status Receive(v1::SolveSessionResponse* response) override {
    while (!stream_->Read(response)) {
      const Error why = End();
      if (!Resume(why)) return tl::unexpected(why);
    }
    if (!unanswered_.empty()) unanswered_.pop_front();
    if (response->credits() > 0) {
      credits_ = static_cast<int>(std::min<uint32_t>(response->credits(), most_in_flight_));
    }
    draining_ = response->draining();
    return {};
  }

  Transport::Status Close() override {
    stream_->WritesDone();
    v1::SolveSessionResponse unwanted;
    while (stream_->Read(&unwanted)) {
    }
    return Finish();
  }

 private:
  Transport::Timeout TimeLeft() const {
    if (!deadline_) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(*deadline_ - Clock::now());
  }

  // Starts a stream, sends the request and reads the response to it.
  Transport::Status Begin(const v1::SolveSessionRequest& request, Transport::Timeout timeout,
                          v1::SolveSessionResponse* response) {
    stream_ = std::make_unique<Stream>(stub_.get(), start_, timeout, low_latency_);
    finished_ = false;
    stream_->Write(request);  // if this fails, so does the read
    if (!stream_->Read(response)) return tl::unexpected(End());
    return {};
  }

  // Resumes the session on a new connection and sends the steps without an outcome again. False if
  // the session has ended.
  bool Resume(const Error& why) {
    // Only a lost connection: a status that the server sent with a reason is final.
    if (resume_token_.empty() || why.code != ErrorCode::kUnavailable || !why.reason.empty()) {
      return false;
    }
    v1::SolveSessionRequest request;
    request.mutable_open()->set_resume_token(resume_token_);
    request.mutable_open()->set_resumable(true);
    const Clock::time_point until =
        Clock::now() + std::min<Clock::duration>(resume_within_, kLongestResume);
    v1::SolveSessionResponse response;
    while (Clock::now() < until && (!deadline_ || Clock::now() < *deadline_)) {
      const auto opened = Begin(request, TimeLeft(), &response);
      if (opened) return SendAgain();
      if (opened.error().code != ErrorCode::kUnavailable || !opened.error().reason.empty()) break;
      std::this_thread::sleep_for(kBetweenAttempts);
    }
    return false;
  }

  bool SendAgain() {
    for (const v1::SolveSessionRequest& request : unanswered_) stream_->Write(request);
    return true;
  }

  void Abandon() {
    if (finished_) return;
    stream_->Cancel();
    Finish();
  }

  Transport::Status Finish() {
    finished_ = true;
    return stream_->Finish();
  }

  // Finishes the stream and returns why there is nothing more to read.
  Error End() {
    if (finished_) return {ErrorCode::kUnavailable, "the session has ended", ""};
    const auto status = Finish();
    if (!status) return status.error();
    return {ErrorCode::kUnavailable, "the server has ended the session", "", "ENDED"};
  }

  const std::shared_ptr<v1::SolverService::Stub> stub_;
  const CallStart start_;
  std::optional<Clock::time_point> deadline_;
  const bool low_latency_;
  std::unique_ptr<Stream> stream_;
  bool finished_{true};
  int most_in_flight_{1};
  int credits_{1};
  bool draining_{false};
  std::string resume_token_;  // empty: the session cannot be resumed
  Clock::duration resume_within_{};
  std::deque<v1::SolveSessionRequest> unanswered_;  // steps to send again; empty without a token
};

}  // namespace

tl::expected<std::unique_ptr<SessionStream>, Error> OpenGrpcSession(
    std::shared_ptr<v1::SolverService::Stub> stub, const CallStart& start,
    const v1::SolveSessionRequest& request, Transport::Timeout deadline) {
  auto session =
      std::make_unique<GrpcSession>(std::move(stub), start, deadline, request.open().low_latency());
  if (const auto opened = session->Open(request); !opened) return tl::unexpected(opened.error());
  return session;
}

}  // namespace sap::client
