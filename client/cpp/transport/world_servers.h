// The servers of an address one by one, as calls that have to reach a certain one need them, and
// what is known of them and of the models. Internal.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>
#include <unordered_map>
#include <vector>

#include "client/cpp/credentials.h"
#include "client/cpp/transport/address.h"
#include "client/cpp/transport/channel.h"
#include "client/cpp/transport/event_loop.h"
#include "client/cpp/transport/retry.h"

namespace sap::client {

class WorldServers {
 public:
  // One server; or all behind a proxy or a control plane, which cannot be told apart.
  class Server {
   public:
    explicit Server(Channel channel) : channel_(std::move(channel)) {}

    const Channel& channel() const { return channel_; }

   private:
    friend class WorldServers;

    const Channel channel_;
    // Under the mutex of all.
    int outstanding_{0};                // calls of all threads
    RetryPauses pauses_{};              // since the last answer
    Clock::time_point paused_until_{};  // after a loss
  };
  using List = std::vector<std::shared_ptr<Server>>;

  // Time of a thread for a step of a world, and how many threads a server has.
  struct Speed {
    double step_s{0};  // 0: not known
    int threads{1};
  };

  // `shared`: the channel of the client to the whole address, for an address of one server.
  WorldServers(Address address, Credentials credentials, Channel shared)
      : address_(std::move(address)),
        credentials_(std::move(credentials)),
        shared_(std::move(shared)) {}

  // The servers that the address has now. An error if a connection to one cannot be made.
  tl::expected<List, Error> Find();

  int Outstanding(const Server& server) const;
  void Begin(Server* server);
  // A call has ended there, with an answer of the server, or lost.
  void End(Server* server);
  void Answered(Server* server);
  void Lost(Server* server);
  Clock::time_point PausedUntil(const Server& server) const;

  Speed SpeedOf(const std::string& model) const;
  void Measure(const std::string& model, double step_s, int threads);

 private:
  tl::expected<std::shared_ptr<Server>, Error> ServerOf(const Address& address);

  const Address address_;
  const Credentials credentials_;
  const Channel shared_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Server>> servers_;  // by address
  List found_;
  Clock::time_point found_at_{};
  std::unordered_map<std::string, Speed> speeds_;
};

}  // namespace sap::client
