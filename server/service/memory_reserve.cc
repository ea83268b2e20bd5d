#include "server/service/memory_reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <new>

namespace sap {
namespace {

constexpr size_t kReserve_bytes = size_t{4} << 20;

// Pages of its own: freed memory of the heap may belong to the arena of another thread.
std::atomic<void*> reserve{nullptr};
std::atomic<bool> installed{false};

// A new_handler, after which the allocation is tried again; without a handler it fails.
void Spend() {
  std::set_new_handler(nullptr);
  void* const pages = reserve.exchange(nullptr);
  if (pages != nullptr) munmap(pages, kReserve_bytes);
}

}  // namespace

void MemoryReserve::Install() {
  installed = true;
  Refill();
}

bool MemoryReserve::IsSpent() { return installed && reserve.load() == nullptr; }

void MemoryReserve::Refill() {
  if (!IsSpent()) return;
  void* const pages =
      mmap(nullptr, kReserve_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return;
  reserve.store(pages);
  std::set_new_handler(&Spend);
}

}  // namespace sap
