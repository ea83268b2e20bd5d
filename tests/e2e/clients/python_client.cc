// The Python package in a process of its own, tests/client/python/support/called_client.py, which
// is called through a Unix socket. A connection of it makes one call at a time.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/cpp/transport/message_conversion.h"
#include "tests/e2e/clients/tested_client.h"
#include "tests/support/child_process.h"

namespace sap::test {
namespace {

using client::Error;
using client::Problem;
using Settings = nlohmann::json;

constexpr std::chrono::seconds kStart{300};
constexpr uint32_t kEndOfCall = ~0u;  // in place of a number

enum class Operation : char {
  kSolve = 's',
  kSolveBatch = 'b',
  kStreamBatch = 'm',
  kOpen = 'o',
  kStep = 'p',
  kSend = 'n',
  kReceive = 'r',
  kClose = 'c',
};

// Header of the bytes of a solution or error, of the problem or step of that number.
struct [[gnu::packed]] Head {
  int32_t code;
  uint32_t number;
  uint8_t warm_started;
  uint32_t length;
};

Error ErrorIn(int32_t code, const std::string& bytes) {
  const auto fields = nlohmann::json::parse(bytes);
  return {.code = client::FromCode(code),
          .message = fields["message"],
          .field = fields["field"],
          .reason = fields["reason"],
          .request_id = fields["request_id"],
          .server = fields["server"],
          .lost_attempts = fields["lost_attempts"]};
}

Outcome OutcomeIn(int32_t code, const std::string& bytes) {
  if (code != 0) return tl::unexpected(ErrorIn(code, bytes));
  v1::ContactSolution message;
  if (!message.ParseFromString(bytes)) return tl::unexpected(Error{.message = "no solution"});
  return client::FromMessage(message);
}

class PythonConnection {
 public:
  using Sink = std::function<void(client::StepOutcome outcome)>;

  explicit PythonConnection(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~PythonConnection() { close(fd_); }
  PythonConnection(const PythonConnection&) = delete;
  PythonConnection& operator=(const PythonConnection&) = delete;

  // Passes on each outcome; returns the error of the call itself. The `step_id` of an outcome is
  // the index of its problem, or the number of its step.
  tl::expected<void, Error> Call(Operation operation, std::span<const Problem> problems,
                                 const Sink& sink) {
    std::string request{static_cast<char>(operation)};
    Append(static_cast<uint32_t>(problems.size()), &request);
    for (const Problem& problem : problems) {
      v1::ContactProblem message;
      client::ToMessage(problem, &message);
      const std::string bytes = message.SerializeAsString();
      Append(static_cast<uint32_t>(bytes.size()), &request);
      request += bytes;
    }
    const bool sent = connected_ && send(fd_, request.data(), request.size(), MSG_NOSIGNAL) ==
                                        static_cast<ssize_t>(request.size());
    Head head{};
    std::string bytes;
    while (sent && Read(&head, sizeof head)) {
      bytes.resize(head.length);
      if (!Read(bytes.data(), bytes.size())) break;
      if (head.number == kEndOfCall) {
        if (head.code == 0) return {};
        return tl::unexpected(ErrorIn(head.code, bytes));
      }
      sink({head.number, head.warm_started != 0, OutcomeIn(head.code, bytes)});
    }
    return tl::unexpected(Error{.message = "the process of the Python client has ended"});
  }

  // A call with one outcome.
  tl::expected<client::StepOutcome, Error> CallForOne(Operation operation,
                                                      std::span<const Problem> problems) {
    std::optional<client::StepOutcome> result;
    const auto ended = Call(operation, problems,
                            [&](client::StepOutcome outcome) { result = std::move(outcome); });
    if (!ended) return tl::unexpected(ended.error());
    if (!result) return tl::unexpected(Error{.message = "the call has no outcome"});
    return std::move(*result);
  }

 private:
  static void Append(uint32_t number, std::string* bytes) {
    bytes->append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  bool Read(void* data, size_t size) const {
    return size == 0 || recv(fd_, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
  }

  const int fd_;
  bool connected_;
};

class PythonSession final : public TestedSession {
 public:
  explicit PythonSession(std::unique_ptr<PythonConnection> connection)
      : connection_(std::move(connection)) {}

  Outcome Step(const Problem& problem) override {
    auto outcome = connection_->CallForOne(Operation::kStep, {&problem, 1});
    if (!outcome) return tl::unexpected(outcome.error());
    return std::move(outcome->solution);
  }
  tl::expected<void, Error> Send(const Problem& problem) override {
    return connection_->Call(Operation::kSend, {&problem, 1}, {});
  }
  tl::expected<client::StepOutcome, Error> Receive() override {
    return connection_->CallForOne(Operation::kReceive, {});
  }
  tl::expected<void, Error> Close() override {
    return connection_->Call(Operation::kClose, {}, {});
  }

 private:
  std::unique_ptr<PythonConnection> connection_;
};

class PythonClient final : public TestedClient {
 public:
  PythonClient(const std::string& face, const Settings& settings)
      : process_(
            {std::getenv("SAP_PYTHON"), "-B", SAP_PYTHON_CLIENT, face, Path(), settings.dump()}) {}

  // Whether it takes calls.
  bool Start() const { return !process_.WaitForLine("listening on ", kStart).empty(); }

  Outcome Solve(const Problem& problem) override {
    auto connection = Acquire();
    auto outcome = connection->CallForOne(Operation::kSolve, {&problem, 1});
    Release(std::move(connection));
    if (!outcome) return tl::unexpected(outcome.error());
    return std::move(outcome->solution);
  }
  std::vector<Outcome> SolveBatch(std::span<const Problem> problems) override {
    const Error missing{.message = "the problem has no outcome"};
    std::vector<Outcome> outcomes(problems.size(), tl::unexpected(missing));
    const auto ended = Batch(Operation::kSolveBatch, problems, [&](int index, Outcome outcome) {
      outcomes[index] = std::move(outcome);
    });
    if (!ended) outcomes.assign(problems.size(), tl::unexpected(ended.error()));
    return outcomes;
  }
  tl::expected<void, Error> StreamBatch(std::span<const Problem> problems,
                                        const client::Client::BatchSink& sink) override {
    return Batch(Operation::kStreamBatch, problems, sink);
  }
  tl::expected<std::unique_ptr<TestedSession>, Error> OpenSession() override {
    auto connection = std::make_unique<PythonConnection>(Path());
    const auto opened = connection->Call(Operation::kOpen, {}, {});
    if (!opened) return tl::unexpected(opened.error());
    return std::make_unique<PythonSession>(std::move(connection));
  }

 private:
  std::string Path() const { return directory_ / "socket"; }

  tl::expected<void, Error> Batch(Operation operation, std::span<const Problem> problems,
                                  const client::Client::BatchSink& sink) {
    auto connection = Acquire();
    auto ended = connection->Call(operation, problems, [&](client::StepOutcome outcome) {
      sink(static_cast<int>(outcome.step_id), std::move(outcome.solution));
    });
    Release(std::move(connection));
    return ended;
  }

  std::unique_ptr<PythonConnection> Acquire() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<PythonConnection>(Path());
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }
  void Release(std::unique_ptr<PythonConnection> connection) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
  }

  TemporaryDirectory directory_;
  ChildProcess process_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PythonConnection>> idle_;
};

}  // namespace

Connected ConnectPython(const std::string& face, const std::string& address,
                        const client::ConnectOptions& options,
                        std::optional<std::chrono::nanoseconds> deadline) {
  const client::Credentials& given = options.credentials;
  std::string token = given.token;
  if (!given.token_file.empty()) std::ifstream(given.token_file) >> token;
  const auto seconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  };
  Settings settings{{"address", address},
                    {"tls", given.tls},
                    {"reconnect_within", seconds(options.reconnect_within)}};
  if (!given.server_ca.empty()) settings["root_certificates"] = given.server_ca;
  if (!given.server_name.empty()) settings["server_name"] = given.server_name;
  if (!token.empty()) settings["token"] = token;
  if (deadline) settings["timeout"] = seconds(*deadline);
  auto client = std::make_unique<PythonClient>(face, settings);
  if (!client->Start()) return tl::unexpected(Error{.message = "no Python client was started"});
  return client;
}

}  // namespace sap::test
