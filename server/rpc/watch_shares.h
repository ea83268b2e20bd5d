// Who may hold Watch streams. gRPC's own health check sends no token, so the streams of clients
// cannot be told from those of strangers; limits by connection and by address take its place.
//
//   beyond the limit per connection    the new stream ends
//   beyond the limit of all            the oldest stream ends of the address that has most
//
// A newcomer therefore gets in while any address holds more streams than its own.
#pragma once

#include <algorithm>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

#include "server/auth/address_identity.h"

namespace sap {

// Watch: a stream; it is neither owned nor used.
template <typename Watch>
class WatchShares {
 public:
  WatchShares(int max_all, int max_per_connection)
      : max_all_(max_all), max_per_connection_(max_per_connection) {}

  // Returns the stream that has to end, which is then out: null, the new one or an older one.
  // `peer` is gRPC's name of the connection. All connections of Unix sockets have the same, so the
  // limit per connection does not apply to them.
  Watch* Add(Watch* watch, const std::string& peer) {
    const std::string address = AddressIdentity(peer);
    std::list<Entry>& own = by_address_[address];
    const auto has_peer = [&](const Entry& entry) { return entry.peer == peer; };
    if (address != "unix" && std::ranges::count_if(own, has_peer) >= max_per_connection_) {
      return watch;
    }
    own.push_back({watch, peer});
    addresses_.emplace(watch, address);
    if (size() <= max_all_) return nullptr;
    const std::list<Entry>* heaviest = &own;
    for (const auto& [other, entries] : by_address_) {
      if (entries.size() > heaviest->size()) heaviest = &entries;
    }
    Watch* const oldest = heaviest->front().watch;
    Remove(oldest);
    return oldest;
  }

  // No effect for a stream that is out.
  void Remove(Watch* watch) {
    const auto found = addresses_.find(watch);
    if (found == addresses_.end()) return;
    const auto address = by_address_.find(found->second);
    address->second.remove_if([&](const Entry& entry) { return entry.watch == watch; });
    if (address->second.empty()) by_address_.erase(address);
    addresses_.erase(found);
  }

  template <typename Function>
  void ForEach(Function function) const {
    for (const auto& entry : addresses_) function(entry.first);
  }

  int size() const { return static_cast<int>(addresses_.size()); }

 private:
  struct Entry {
    Watch* watch;
    std::string peer;
  };

  const int max_all_;
  const int max_per_connection_;
  std::unordered_map<std::string, std::list<Entry>> by_address_;  // oldest first; none is empty
  std::unordered_map<Watch*, std::string> addresses_;
};

}  // namespace sap
