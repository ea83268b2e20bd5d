// A server whose calls end as a test says, with or without the identity of a server: as other
// builds, other servers and proxies end them. It solves nothing; the answer to a problem is its
// time step, as the cost of a solution.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sap::test {

class ScriptedServer {
 public:
  struct Ending {
    grpc::StatusCode code{grpc::StatusCode::OK};
    bool with_identity{false};
    // Outcomes of a StreamBatch. Absent: all where the code is OK, else none.
    std::optional<int> after{};
    std::string message{"as the test says"};
  };

  // The identity is "VERSION INSTRUCTION_SET BOOT_ID". Streams of Watch end with the status at once
  // unless it is OK; then they stay, and say that the server serves.
  explicit ScriptedServer(const std::string& identity, const grpc::Status& watch = {});
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  const std::string& address() const { return address_; }

  // The next call, or the next step of a session, ends so; those after it, as later ones say, or
  // with an answer.
  void EndNext(const Ending& ending);

  // Calls of the solver so far; of a StreamBatch, how many problems each had.
  int calls() const;
  std::vector<int> batch_sizes() const;
  // Values of sap-attempt, which are empty where a call has none.
  std::vector<std::string> attempts() const;

 private:
  class Solver;
  class Health;

  std::unique_ptr<Solver> solver_;
  std::unique_ptr<Health> health_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace sap::test
