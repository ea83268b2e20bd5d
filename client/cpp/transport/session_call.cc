#include "client/cpp/transport/session_call.h"

#include <utility>

namespace sap::client {

Task<bool> SessionCall::Open(const std::shared_ptr<grpc::Channel>& channel, const CallStart& start,
                             Timeout deadline, int lost_attempts,
                             WithoutConnection without_connection, Clock::time_point limit) {
  start.Prepare(deadline, lost_attempts, &context_);
  context_.set_wait_for_ready(without_connection == WithoutConnection::kWaits);
  SetLimit(limit);
  stream_ = BytesStub<v1::SolveSessionResponse>(channel).PrepareCall(
      &context_, methods::kSolveSession, events_->queue());
  stream_->StartCall(events_->Begin(&write_));
  const bool opened = co_await Await(write_);
  co_return opened;
}

void SessionCall::SetLimit(Clock::time_point limit) {
  limit_ = limit;
  if (limit_ != kNever) events_->AddAt(limit_);
}

void SessionCall::CheckLimit() {
  if (limit_ == kNever || Clock::now() < limit_) return;
  limit_ = kNever;
  Cancel();  // completes all operations
}

Task<bool> SessionCall::Write(const grpc::ByteBuffer& request) {
  stream_->Write(request, events_->Begin(&write_));
  while (write_.pending) {
    StartReading();
    co_await events_->Next();
    CheckLimit();
    KeepResponse();
  }
  co_return write_.ok;
}

void SessionCall::StartReading() {
  KeepResponse();
  if (is_reading_ || at_end_) return;
  is_reading_ = true;
  stream_->Read(&next_, events_->Begin(&read_));
}

void SessionCall::KeepResponse() {
  if (!is_reading_ || read_.pending) return;
  is_reading_ = false;
  if (read_.ok) {
    arrived_.emplace_back().Swap(&next_);
  } else {
    at_end_ = true;
  }
}

bool SessionCall::TakeResponse(v1::SolveSessionResponse* response) {
  KeepResponse();
  if (arrived_.empty()) return false;
  response->Swap(&arrived_.front());
  arrived_.pop_front();
  return true;
}

Task<bool> SessionCall::Read(v1::SolveSessionResponse* response) {
  while (!TakeResponse(response)) {
    if (at_end()) co_return false;
    StartReading();
    co_await events_->Next();
    CheckLimit();
  }
  co_return true;
}

Task<bool> SessionCall::Await(const Operation& operation) {
  while (operation.pending) {
    co_await events_->Next();
    CheckLimit();
  }
  co_return operation.ok;
}

Task<grpc::Status> SessionCall::Close() {
  stream_->WritesDone(events_->Begin(&write_));
  co_await Await(write_);
  v1::SolveSessionResponse unwanted;
  while (true) {
    const bool more = co_await Read(&unwanted);
    if (!more) break;
  }
  grpc::Status status = co_await Finish();
  co_return status;
}

Task<grpc::Status> SessionCall::Finish() {
  grpc::Status status;
  stream_->Finish(&status, events_->Begin(&write_));
  co_await Await(write_);
  co_await Await(read_);
  co_return status;
}

}  // namespace sap::client
