#include "tests/support/scripted_server.h"

#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "grpc/health/v1/health.grpc.pb.h"
#include "sap/v1/solver_service.grpc.pb.h"

namespace sap::test {

class ScriptedServer::Solver final : public v1::SolverService::Service {
 public:
  explicit Solver(std::string identity) : identity_(std::move(identity)) {}

  void EndNext(const Ending& ending) {
    const std::lock_guard lock(mutex_);
    endings_.push_back(ending);
  }
  int calls() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(attempts_.size());
  }
  std::vector<std::string> attempts() const {
    const std::lock_guard lock(mutex_);
    return attempts_;
  }
  std::vector<int> batch_sizes() const {
    const std::lock_guard lock(mutex_);
    return batch_sizes_;
  }

 private:
  grpc::Status Solve(grpc::ServerContext* context, const v1::SolveRequest* request,
                     v1::SolveResponse* response) override {
    CountCall(*context);
    response->mutable_solution()->set_cost(request->problem().time_step());
    return End(TakeEnding(), context);
  }

  grpc::Status SolveBatch(grpc::ServerContext* context, const v1::SolveBatchRequest* request,
                          v1::SolveBatchResponse* response) override {
    CountCall(*context);
    for (const auto& problem : request->problems()) {
      response->add_outcomes()->mutable_solution()->set_cost(problem.time_step());
    }
    return End(TakeEnding(), context);
  }

  // From the last problem to the first.
  grpc::Status StreamBatch(grpc::ServerContext* context, const v1::StreamBatchRequest* request,
                           grpc::ServerWriter<v1::StreamBatchResponse>* writer) override {
    CountCall(*context);
    const int size = request->problems_size();
    {
      const std::lock_guard lock(mutex_);
      batch_sizes_.push_back(size);
    }
    const Ending ending = TakeEnding();
    context->AddInitialMetadata("sap-server", identity_);
    const int answered = ending.after.value_or(ending.code == grpc::StatusCode::OK ? size : 0);
    for (int i = size - 1; i >= size - answered; --i) {
      v1::StreamBatchResponse response;
      response.set_index(i);
      response.mutable_outcome()->mutable_solution()->set_cost(request->problems(i).time_step());
      writer->Write(response);
    }
    return End(ending, context);
  }

  grpc::Status SolveSession(grpc::ServerContext* context,
                            grpc::ServerReaderWriter<v1::SolveSessionResponse,
                                                     v1::SolveSessionRequest>* stream) override {
    CountCall(*context);
    v1::SolveSessionRequest request;
    while (stream->Read(&request)) {
      v1::SolveSessionResponse response;
      if (request.has_open()) {
        response.mutable_opened()->set_server(identity_);
      } else {
        const Ending ending = TakeEnding();
        if (ending.code != grpc::StatusCode::OK) return End(ending, context);
        response.mutable_step()->set_step_id(request.step().step_id());
        response.mutable_step()->mutable_outcome()->mutable_solution()->set_cost(
            request.step().problem().time_step());
      }
      stream->Write(response);
    }
    return End({}, context);
  }

  void CountCall(const grpc::ServerContext& context) {
    const auto attempt = context.client_metadata().find("sap-attempt");
    const bool has_attempt = attempt != context.client_metadata().end();
    const std::lock_guard lock(mutex_);
    attempts_.push_back(has_attempt ? std::string(attempt->second.data(), attempt->second.size())
                                    : "");
  }

  // Without one left: an answer.
  Ending TakeEnding() {
    const std::lock_guard lock(mutex_);
    if (endings_.empty()) return {.with_identity = true};
    const Ending ending = endings_.front();
    endings_.pop_front();
    return ending;
  }

  grpc::Status End(const Ending& ending, grpc::ServerContext* context) const {
    if (ending.with_identity) context->AddTrailingMetadata("sap-server", identity_);
    if (ending.code == grpc::StatusCode::OK) return grpc::Status::OK;
    return {ending.code, ending.message};
  }

  const std::string identity_;
  mutable std::mutex mutex_;
  std::deque<Ending> endings_;
  std::vector<std::string> attempts_;  // of each call
  std::vector<int> batch_sizes_;
};

// Serves until the server is shut down.
class ScriptedServer::Health final : public grpc::health::v1::Health::Service {
 public:
  explicit Health(grpc::Status watch) : watch_(std::move(watch)) {}

 private:
  using Request = grpc::health::v1::HealthCheckRequest;
  using Response = grpc::health::v1::HealthCheckResponse;

  grpc::Status Watch(grpc::ServerContext* context, const Request*,
                     grpc::ServerWriter<Response>* writer) override {
    if (!watch_.ok()) return watch_;
    Response response;
    response.set_status(Response::SERVING);
    writer->Write(response);
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return grpc::Status::CANCELLED;
  }

  const grpc::Status watch_;
};

ScriptedServer::ScriptedServer(const std::string& identity, const grpc::Status& watch)
    : solver_(std::make_unique<Solver>(identity)), health_(std::make_unique<Health>(watch)) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(solver_.get());
  builder.RegisterService(health_.get());
  server_ = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
}

ScriptedServer::~ScriptedServer() { server_->Shutdown(std::chrono::system_clock::now()); }

void ScriptedServer::EndNext(const Ending& ending) { solver_->EndNext(ending); }

int ScriptedServer::calls() const { return solver_->calls(); }

std::vector<std::string> ScriptedServer::attempts() const { return solver_->attempts(); }

std::vector<int> ScriptedServer::batch_sizes() const { return solver_->batch_sizes(); }

}  // namespace sap::test
