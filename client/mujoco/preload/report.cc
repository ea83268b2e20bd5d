#include "client/mujoco/preload/report.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/mujoco/preload/replacement.h"

namespace sap::mujoco {
namespace {

constexpr const char* kTexts[] = {
#define SAP_OUTCOME(name, is_said, text) text,
#include "client/mujoco/preload/outcomes.inc"
};

constexpr bool kIsSaid[] = {
#define SAP_OUTCOME(name, is_said, text) is_said,
#include "client/mujoco/preload/outcomes.inc"
};

constinit Report own_report{};
constinit std::atomic<Report*> report{&own_report};

}  // namespace

void Count(Outcome outcome, int64_t islands) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  Report& to = *report.load(std::memory_order_acquire);
  to.steps[outcome].fetch_add(1, kRelaxed);
  if (islands > 0) to.islands.fetch_add(islands, kRelaxed);
  if (!kIsSaid[outcome] || to.said[outcome].load(kRelaxed) > 0) return;
  if (to.said[outcome].fetch_add(1, kRelaxed) > 0) return;
  dprintf(STDERR_FILENO, "sap-islands: steps are left to MuJoCo's solver: %s\n", kTexts[outcome]);
}

void CountVersion(int version) {
  report.load(std::memory_order_acquire)->mujoco_version.store(version, std::memory_order_relaxed);
}

void ShareReport(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* mapped = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const bool is_whole = lseek(file, 0, SEEK_END) == static_cast<off_t>(sizeof(Report));
  close(file);
  if (mapped == MAP_FAILED) return;
  if (is_whole) {
    report.store(static_cast<Report*>(mapped), std::memory_order_release);
  } else {
    munmap(mapped, sizeof(Report));
  }
}

}  // namespace sap::mujoco

const char* sap_replacement_outcomes() {
  return
#define SAP_OUTCOME(name, is_said, text) text "\n"
#include "client/mujoco/preload/outcomes.inc"
      ;
}
