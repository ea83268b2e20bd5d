// The ways by which clients reach a fleet: the addresses of its servers, or one address of HAProxy
// or Envoy with the files of deploy/.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "tests/e2e/fleet/fleet.h"
#include "tests/support/child_process.h"

namespace sap::test {

enum class Balancing { kAddressList, kHaproxy, kEnvoy };

std::string Name(Balancing balancing);
inline void PrintTo(Balancing balancing, std::ostream* out) { *out << Name(balancing); }

class Balancer {
 public:
  Balancer(Balancing balancing, const Fleet& fleet);

  // The address that clients connect to.
  const std::string& address() const { return address_; }

 private:
  std::string address_;
  std::unique_ptr<ChildProcess> process_;  // none for a list of addresses
};

}  // namespace sap::test
