#include <string>
#include <utility>

#include "client/cpp/backend/backend.h"
#include "client/cpp/split/dividing_backend.h"
#include "client/cpp/transport/remote_backend.h"

namespace sap::client {
namespace {

constexpr int kMostSceneConnections = 64;

}  // namespace

tl::expected<std::unique_ptr<Backend>, Error> Connect(const std::string& address,
                                                      const ConnectOptions& options) {
  if (options.scene_connections < 1 || options.scene_connections > kMostSceneConnections) {
    return tl::unexpected(
        Error{ErrorCode::kInvalidArgument,
              "scene_connections is " + std::to_string(options.scene_connections) +
                  "; it must be in [1, " + std::to_string(kMostSceneConnections) + "]",
              "scene_connections"});
  }
  if (address == "embedded:") return EmbeddedBackend(options);
  auto servers = RemoteBackend(address, options);
  if (!servers) return servers;
  return std::make_unique<DividingBackend>(std::move(*servers), address, options);
}

}  // namespace sap::client
