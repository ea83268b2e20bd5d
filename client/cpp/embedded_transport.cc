#include "client/cpp/messages.h"
#include "client/cpp/transport.h"
#include "server/engine.h"

namespace sap::client {
namespace {

ServerConfig MakeConfig(int threads) {
  ServerConfig config;
  if (threads > 0) config.threads = threads;
  return config;
}

class EmbeddedTransport final : public Transport {
 public:
  explicit EmbeddedTransport(int threads) : engine_(MakeConfig(threads)) {}

  Status Solve(const v1::SolveRequest& request, Timeout deadline,
               v1::SolveResponse* response) override {
    CallLimits limits;
    if (deadline) limits.deadline = limits.arrival + *deadline;
    if (const ServiceStatus status = engine_.Solve(request, limits, response); !status) {
      const ServiceError& error = status.error();
      return tl::unexpected(
          Error{FromCode(static_cast<int>(error.code)), error.message, error.field});
    }
    return {};
  }

  Status Info(v1::GetServerInfoResponse* response) override {
    *response = engine_.Info();
    return {};
  }

  tl::expected<bool, Error> Health() override { return true; }

 private:
  Engine engine_;
};

}  // namespace

std::unique_ptr<Transport> Embed(int threads) {
  return std::make_unique<EmbeddedTransport>(threads);
}

}  // namespace sap::client
