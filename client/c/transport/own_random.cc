// Random numbers of gRPC and c-ares. Both draw from rand() of the process, gRPC on a thread of its
// own at every change of a connection to several servers: the host's sequence after srand() would
// depend on connections. The library is linked with --wrap=rand, so that they draw here.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>

static_assert(RAND_MAX == 0x7fffffff, "31 bits");

// By the name that the linker asks for.
extern "C" int OwnRandomNumber() __asm__("__wrap_rand");

// SplitMix64 [Steele et al. 2014]: a counter, mixed. It starts anywhere, so that clients that start
// together do not all begin at the same server.
int OwnRandomNumber() {
  static std::atomic<uint64_t> counter(
      static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()));
  uint64_t bits = counter.fetch_add(0x9e3779b97f4a7c15, std::memory_order_relaxed);
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return static_cast<int>((bits ^ bits >> 31) >> 33);
}
