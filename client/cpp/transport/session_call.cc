#include "client/cpp/transport/session_call.h"

#include <algorithm>
#include <utility>

namespace sap::client {
namespace {

// A message that takes longer to send waits for the server to read.
constexpr std::chrono::milliseconds kLongWrite{1};

}  // namespace

SessionCall::SessionCall(v1::SolverService::Stub* stub, const CallStart& start,
                         Transport::Timeout deadline, int lost_attempts, bool polls,
                         WithoutConnection without_connection, Clock::time_point limit)
    : completions_(polls), limit_(limit) {
  start.Prepare(deadline, &context_, lost_attempts);
  context_.set_wait_for_ready(without_connection == WithoutConnection::kWaits);
  write_.pending = true;
  stream_ = stub->AsyncSolveSession(&context_, completions_.get(), &write_);
  Await(&write_);
}

bool SessionCall::Write(const v1::SolveSessionRequest& request) {
  write_.pending = true;
  stream_->Write(request, &write_);
  AwaitAny(Clock::now() + kLongWrite);
  while (write_.pending) {
    if (!read_.pending && read_.ok) arrived_.emplace_back().Swap(&next_);
    if (!read_.pending && !at_end_) StartRead();
    AwaitAny(Clock::time_point::max());
  }
  return write_.ok;
}

bool SessionCall::Read(v1::SolveSessionResponse* response) {
  if (!arrived_.empty()) {
    response->Swap(&arrived_.front());
    arrived_.pop_front();
    return true;
  }
  if (!read_.pending && !read_.ok && !at_end_) StartRead();
  if (at_end_ || !Await(&read_)) return false;
  read_.ok = false;
  response->Swap(&next_);
  return true;
}

void SessionCall::StartRead() {
  read_ = {.pending = true};
  stream_->Read(&next_, &read_);
}

bool SessionCall::AwaitAny(Clock::time_point until) {
  const CallCompletions::Completion done = completions_.Next(std::min(until, limit_));
  if (done.tag == nullptr) {
    if (Clock::now() < limit_) return false;
    limit_ = Clock::time_point::max();
    Cancel();  // completes all operations
    return false;
  }
  *static_cast<Operation*>(done.tag) = {.pending = false, .ok = done.ok};
  if (done.tag == &read_ && !done.ok) at_end_ = true;
  return true;
}

bool SessionCall::Await(Operation* operation) {
  while (operation->pending) AwaitAny(Clock::time_point::max());
  return operation->ok;
}

grpc::Status SessionCall::Close() {
  write_.pending = true;
  stream_->WritesDone(&write_);
  Await(&write_);
  v1::SolveSessionResponse unwanted;
  while (Read(&unwanted)) {
  }
  return Finish();
}

grpc::Status SessionCall::Finish() {
  grpc::Status status;
  write_.pending = true;
  stream_->Finish(&status, &write_);
  Await(&write_);
  while (read_.pending) AwaitAny(Clock::time_point::max());
  return status;
}

}  // namespace sap::client
