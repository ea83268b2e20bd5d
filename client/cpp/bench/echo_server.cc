#include "client/cpp/bench/echo_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "proto/codec/engine_messages.h"

namespace sap::client {
namespace {

using Clock = std::chrono::steady_clock;

grpc::ByteBuffer ToBytes(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

template <typename Message>
bool Parse(const grpc::ByteBuffer& bytes, Message* message) {
  grpc::Slice slice;
  return bytes.DumpToSingleSlice(&slice).ok() &&
         message->ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
}

// Responses by method and size of the request.
class Answers {
 public:
  explicit Answers(std::chrono::nanoseconds busy) : busy_(busy) {}

  grpc::ByteBuffer To(const std::string& method, const grpc::ByteBuffer& request) {
    const auto until = Clock::now() + busy_;
    while (Clock::now() < until) {
    }
    const std::lock_guard lock(mutex_);
    const auto key = std::make_pair(method, request.Length());
    auto found = answers_.find(key);
    if (found == answers_.end()) found = answers_.emplace(key, Make(method, request)).first;
    return found->second;
  }

 private:
  grpc::ByteBuffer Make(const std::string& method, const grpc::ByteBuffer& bytes) {
    if (method.ends_with("/SolveBatch")) {
      v1::SolveBatchRequest request;
      v1::SolveBatchResponse response;
      if (!Parse(bytes, &request)) return ToBytes(response);
      for (const v1::ContactProblem& problem : request.problems()) {
        v1::SolveRequest one;
        *one.mutable_problem() = problem;
        *one.mutable_options() = request.options();
        v1::SolveResponse solved;
        (void)Solve(&engine_, one, &solved);
        response.add_outcomes()->mutable_solution()->Swap(solved.mutable_solution());
      }
      return ToBytes(response);
    }
    v1::SolveRequest request;
    v1::SolveResponse response;
    if (method.ends_with("/Solve")) {
      if (Parse(bytes, &request)) (void)Solve(&engine_, request, &response);
      return ToBytes(response);
    }
    v1::SolveSessionRequest message;
    v1::SolveSessionResponse answer;
    if (!Parse(bytes, &message) || message.has_open()) {
      answer.mutable_opened()->set_max_steps_in_flight(8);
      return ToBytes(answer);
    }
    *request.mutable_problem() = message.step().problem();
    (void)Solve(&engine_, request, &response);
    answer.mutable_step()->mutable_outcome()->mutable_solution()->Swap(response.mutable_solution());
    answer.mutable_step()->set_step_id(message.step().step_id());
    return ToBytes(answer);
  }

  const std::chrono::nanoseconds busy_;
  std::mutex mutex_;
  Engine engine_{1};
  std::map<std::pair<std::string, size_t>, grpc::ByteBuffer> answers_;
};

// One call: reads and answers until the client closes its side. Deletes itself at the end.
class EchoCall {
 public:
  EchoCall(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue, Answers* answers)
      : service_(service), queue_(queue), answers_(answers), stream_(&context_) {
    service_->RequestCall(&context_, &stream_, queue_, queue_, this);
  }

  void Go(bool ok) {
    switch (state_) {
      case State::kAwaited:
        if (!ok) return Delete();
        new EchoCall(service_, queue_, answers_);
        return Read();
      case State::kReading:
        if (!ok) return Finish();
        if (!context_.method().ends_with("Session")) {
          state_ = State::kFinishing;
          return stream_.WriteAndFinish(answers_->To(context_.method(), message_), {},
                                        grpc::Status::OK, this);
        }
        state_ = State::kWriting;
        return stream_.Write(answers_->To(context_.method(), message_), this);
      case State::kWriting:
        if (!ok) return Finish();
        return Read();
      case State::kFinishing:
        return Delete();
    }
  }

 private:
  enum class State : uint8_t { kAwaited, kReading, kWriting, kFinishing };

  void Read() {
    state_ = State::kReading;
    stream_.Read(&message_, this);
  }
  void Finish() {
    state_ = State::kFinishing;
    stream_.Finish(grpc::Status::OK, this);
  }
  void Delete() { delete this; }

  grpc::AsyncGenericService* const service_;
  grpc::ServerCompletionQueue* const queue_;
  Answers* const answers_;
  State state_{State::kAwaited};
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  grpc::ByteBuffer message_;
};

}  // namespace

std::string ServeEcho(const std::string& address, int threads, std::chrono::nanoseconds busy,
                      const std::function<void(const std::string& address)>& listening) {
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(-1);
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterAsyncGenericService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (server == nullptr || port == 0) return "cannot listen on " + address;
  Answers answers(busy);
  for (int i = 0; i < 16; ++i) new EchoCall(&service, queue.get(), &answers);
  const std::string host = address.substr(0, address.rfind(':') + 1);
  listening(address.starts_with("unix:") ? address : host + std::to_string(port));
  const auto serve = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) static_cast<EchoCall*>(tag)->Go(ok);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(serve);
  serve();
  for (std::thread& other : others) other.join();
  return "";
}

}  // namespace sap::client
