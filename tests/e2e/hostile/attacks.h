// The attacks of the suite: what each one does, at which server, and what it must not cost.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/e2e/hostile/neighbour.h"
#include "tests/e2e/hostile/siege.h"
#include "tests/e2e/hostile/target.h"
#include "tests/e2e/server_process.h"

namespace sap::test::hostile {

inline constexpr size_t kMB = 1'000'000;

struct Attack {
  const char* name;
  // Gets into position within some seconds.
  void (*begin)(const Target& target, Siege* siege);
  // Most resident memory that the server may take beyond what it had before [MB].
  double memory_MB;
  Neighbour::Visit visit{&Neighbour::SolveSmall};
  std::vector<std::string> flags{};
  // Most bytes that the server may log during it [kB].
  double log_kB{256};
  // Longest median of the visits [s].
  double median_s{kHangLimit.count()};
  // The server has no token file: a client is an address.
  bool by_address{false};
};

// Counts are multiplied by this: more where the proofs run at length.
inline int Scale() { return IsFullProof() ? 5 : 1; }

// Without a token, at the server itself.
std::vector<Attack> AttacksByStrangers();

// The same at the proxy, without those on addresses and services that it does not forward, and with
// one that only the proxy withstands.
std::vector<Attack> AttacksThroughTheProxy();

// With a token, some with those of two clients.
std::vector<Attack> AttacksByClients();
std::vector<Attack> AttacksByClientsThroughTheProxy();

}  // namespace sap::test::hostile
