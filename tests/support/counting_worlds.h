// A server of worlds without MuJoCo, whose calls also end as a test says. Its state is a time and a
// position x, its checkpoint has a speed h as well, and its sensor is 2 x:
//
//   h' = h / 4 + u,  x' = x + h',  t' = t + 1
//
// Worlds begin with h = 0. A world with u = kWarns is held, one with u = kFails fails.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "sap/v1/world_service.grpc.pb.h"

namespace sap::test {

class CountingWorlds final : public v1::WorldService::Service {
 public:
  static constexpr double kWarns = 1e6;
  static constexpr double kFails = 2e6;

  struct Ending {
    grpc::StatusCode code;
    std::string message{};
    std::string reason{};
    bool with_identity{true};
    std::map<std::string, std::string> metadata{};  // of ErrorInfo
  };

  // The identity is "VERSION INSTRUCTION_SET BOOT_ID".
  explicit CountingWorlds(std::string identity, std::string library = "library");
  ~CountingWorlds() override;
  CountingWorlds(const CountingWorlds&) = delete;
  CountingWorlds& operator=(const CountingWorlds&) = delete;

  const std::string& address() const { return address_; }

  // The next call of Advance that finds its model ends so.
  void EndNext(const Ending& ending);
  void Forget();  // all models
  // Each step of a world takes so long, and says that it does.
  void set_step_s(double step_s);
  // Answers of more numbers end with ANSWER_BYTES.
  void set_most_numbers(int64_t most);

  int puts() const;
  // Worlds times steps of the calls of Advance that found their model, and their sap-attempt.
  std::vector<int64_t> slices() const;
  std::vector<std::string> attempts() const;

 private:
  grpc::Status PutModel(grpc::ServerContext* context, const v1::PutModelRequest* request,
                        v1::PutModelResponse* response) override;
  grpc::Status Advance(grpc::ServerContext* context, const v1::AdvanceRequest* request,
                       v1::AdvanceResponse* response) override;
  grpc::Status End(const Ending& ending, grpc::ServerContext* context) const;
  bool Begin(const grpc::ServerContext& context, const v1::AdvanceRequest& request, Ending* ending);

  const std::string identity_;
  const std::string library_;
  mutable std::mutex mutex_;
  std::set<std::string> models_;
  std::deque<Ending> endings_;
  std::vector<int64_t> slices_;
  std::vector<std::string> attempts_;
  int puts_{0};
  double step_s_{1e-6};
  int64_t most_numbers_{int64_t{1} << 40};
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace sap::test
