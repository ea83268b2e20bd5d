#include "solver/engine/boot_id.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace sap {
namespace {

// Without random bytes, as early in the start of a machine, time and process id tell processes
// apart.
uint64_t Random64() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number) return number;
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return static_cast<uint64_t>(now) ^ static_cast<uint64_t>(getpid()) << 48;
}

std::string MakeBootId() {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(Random64()));
  return digits;
}

}  // namespace

const std::string& BootId() {
  static const std::string id = MakeBootId();
  return id;
}

}  // namespace sap
