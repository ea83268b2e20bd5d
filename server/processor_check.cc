// Ends a process on a processor without the instructions that it is built for, with a sentence in
// place of an illegal instruction. This file is compiled for any processor, and the check runs
// before the constructors of all other files.
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace {

[[gnu::constructor(101)]] void CheckProcessor() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
      __builtin_cpu_supports("fma")) {
    return;
  }
  constexpr std::string_view kWhy =
      "sap-server: this build needs a processor with AVX2 (x86-64-v3); "
      "build with -DSAP_PORTABLE=ON for others\n";
  const ssize_t written = write(STDERR_FILENO, kWhy.data(), kWhy.size());
  _exit(written < 0 ? 2 : EXIT_FAILURE);
}

}  // namespace
