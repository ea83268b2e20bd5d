#include "client/cpp/transport/world_servers.h"

#include <utility>

namespace sap::client {
namespace {

// Names are looked up again after this time.
constexpr std::chrono::seconds kNamesHold{1};
// Models whose speed is kept.
constexpr size_t kMostSpeeds = 1000;
// Weight of the last measurement in the mean.
constexpr double kWeight = 0.5;

}  // namespace

tl::expected<WorldServers::List, Error> WorldServers::Find() {
  const std::lock_guard lock(mutex_);
  const bool holds = address_.kind != Address::Kind::kDns || Clock::now() < found_at_ + kNamesHold;
  if (!found_.empty() && holds) return found_;
  const auto addresses = ServersOf(address_);
  if (!addresses) return tl::unexpected(addresses.error());
  List found;
  for (const Address& address : *addresses) {
    auto server = ServerOf(address);
    if (!server) return tl::unexpected(server.error());
    found.push_back(std::move(*server));
  }
  found_ = found;
  found_at_ = Clock::now();
  return found;
}

tl::expected<std::shared_ptr<WorldServers::Server>, Error> WorldServers::ServerOf(
    const Address& address) {
  std::shared_ptr<Server>& server = servers_[address.text];
  if (server != nullptr) return server;
  if (address.text == address_.text) {
    server = std::make_shared<Server>(shared_);
    return server;
  }
  auto channel = MakeChannel(address, credentials_, ServerChoice::kAny);
  if (!channel) return tl::unexpected(channel.error());
  server = std::make_shared<Server>(std::move(*channel));
  return server;
}

int WorldServers::Outstanding(const Server& server) const {
  const std::lock_guard lock(mutex_);
  return server.outstanding_;
}

void WorldServers::Begin(Server* server) {
  const std::lock_guard lock(mutex_);
  ++server->outstanding_;
}

void WorldServers::End(Server* server) {
  const std::lock_guard lock(mutex_);
  --server->outstanding_;
}

void WorldServers::Answered(Server* server) {
  const std::lock_guard lock(mutex_);
  server->pauses_.Restart();
  server->paused_until_ = {};
}

void WorldServers::Lost(Server* server) {
  const std::lock_guard lock(mutex_);
  server->paused_until_ = Clock::now() + server->pauses_.Next();
}

Clock::time_point WorldServers::PausedUntil(const Server& server) const {
  const std::lock_guard lock(mutex_);
  return server.paused_until_;
}

WorldServers::Speed WorldServers::SpeedOf(const std::string& model) const {
  const std::lock_guard lock(mutex_);
  const auto found = speeds_.find(model);
  return found == speeds_.end() ? Speed() : found->second;
}

void WorldServers::Measure(const std::string& model, double step_s, int threads) {
  const std::lock_guard lock(mutex_);
  if (speeds_.size() >= kMostSpeeds) speeds_.clear();
  Speed& speed = speeds_[model];
  speed.threads = threads;
  speed.step_s = speed.step_s > 0 ? speed.step_s + kWeight * (step_s - speed.step_s) : step_s;
}

}  // namespace sap::client
