// Times functions inside Drake's shared library while its own plant steps, and counts the
// iterations of its solver: the contact solve alone, without geometry and set-up.
//
// Drake's Python package has no interface to its contact solver. The functions are exported symbols
// of its library, so each gets a jump to a wrapper at its entry: the instructions that the jump
// overwrites, pushes, moves and the like, run from a copy.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

// Arguments in registers are all that these functions take; passing on more than they have is
// harmless.
using Function = long (*)(void*, void*, void*, void*);

struct Hook {
  const char* symbol;
  Function original{nullptr};  // by way of the trampoline
  double seconds{0};
  long calls{0};
};

enum HookIndex { kSolve, kFactor, kSolveAutoDiff, kNumHooks };

std::array<Hook, kNumHooks> hooks = {{
    {"_ZN5drake9multibody15contact_solvers8internal9SapSolverIdE14SolveWithGuessERKNS2_"
     "17SapContactProblemIdEERKN5Eigen6MatrixIdLin1ELi1ELi0ELin1ELi1EEEPNS2_"
     "16SapSolverResultsIdEE"},
    {"_ZN5drake9multibody15contact_solvers8internal25BlockSparseCholeskySolverIN5Eigen6MatrixIdLin"
     "1ELin1ELi0ELin1ELin1EEEE6FactorEv"},
    {"_ZN5drake9multibody15contact_solvers8internal9SapSolverIN5Eigen14AutoDiffScalarINS4_6MatrixI"
     "dLin1ELi1ELi0ELin1ELi1EEEEEE14SolveWithGuessERKNS2_17SapContactProblemIS8_EERKNS6_IS8_Lin1E"
     "Li1ELi0ELin1ELi1EEEPNS2_16SapSolverResultsIS8_EE"},
}};

// SapSolver<double>::get_statistics(); the struct it refers to begins with the iterations.
using Statistics = const int* (*)(void*);
constexpr const char* kStatistics =
    "_ZNK5drake9multibody15contact_solvers8internal9SapSolverIdE14get_statisticsEv";
Statistics get_statistics = nullptr;
long iterations = 0;

template <HookIndex index>
long Timed(void* a, void* b, void* c, void* d) {
  Hook& hook = hooks[index];
  const auto start = std::chrono::steady_clock::now();
  const long result = hook.original(a, b, c, d);
  hook.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++hook.calls;
  if constexpr (index == kSolve) iterations += get_statistics(a)[0];
  return result;
}

constexpr int kJumpBytes = 14;  // jmp [rip]; then the address

void WriteJump(uint8_t* from, const void* to) {
  constexpr std::array<uint8_t, 6> kJumpThroughNextWord = {0xff, 0x25, 0, 0, 0, 0};
  std::memcpy(from, kJumpThroughNextWord.data(), kJumpThroughNextWord.size());
  std::memcpy(from + kJumpThroughNextWord.size(), &to, sizeof(to));
}

// Length of one instruction of a function's entry that may be moved elsewhere; 0 for any other.
int MovableLength(const uint8_t* code) {
  if (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa)
    return 4;                                                           // endbr64
  if (code[0] >= 0x50 && code[0] <= 0x57) return 1;                     // push r
  if (code[0] == 0x41 && code[1] >= 0x50 && code[1] <= 0x57) return 2;  // push r8..r15
  // cmpl [r + disp32], imm8, without a scaled index
  if (code[0] == 0x83 && (code[1] & 0xc0) == 0x80 && (code[1] & 7) != 4) return 7;
  const bool wide = (code[0] & 0xf8) == 0x48;
  if (wide && (code[1] == 0x89 || code[1] == 0x8b) && code[2] >= 0xc0) return 3;  // mov r, r
  if (wide && code[1] == 0x83 && code[2] >= 0xc0) return 4;  // and, add, sub r, imm8
  if (wide && code[1] == 0x81 && code[2] >= 0xc0) return 7;  // the same, imm32
  return 0;
}

// Null, or why the function could not be wrapped.
const char* Install(Hook* hook, void* library, const void* wrapper) {
  auto* target = static_cast<uint8_t*>(dlsym(library, hook->symbol));
  if (target == nullptr) return "Drake's library has no such function";
  int moved = 0;
  while (moved < kJumpBytes) {
    const int length = MovableLength(target + moved);
    if (length == 0) return "the function begins with an instruction that cannot be moved";
    moved += length;
  }
  const long page = sysconf(_SC_PAGESIZE);
  auto* copy = static_cast<uint8_t*>(
      mmap(nullptr, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (copy == MAP_FAILED) return "no memory for the trampoline";
  std::memcpy(copy, target, moved);
  WriteJump(copy + moved, target + moved);
  hook->original = reinterpret_cast<Function>(copy);
  auto* first_page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(target) & ~(page - 1));
  if (mprotect(first_page, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
    return "its page could not be written";
  }
  WriteJump(target, wrapper);
  return nullptr;
}

}  // namespace

extern "C" {

// 0, or 1 with the reason on standard error. The library must be loaded already.
int DrakeTimerInstall(const char* library_path) {
  void* library = dlopen(library_path, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    std::fprintf(stderr, "drake_timer: %s is not loaded\n", library_path);
    return 1;
  }
  get_statistics = reinterpret_cast<Statistics>(dlsym(library, kStatistics));
  const std::array<const void*, kNumHooks> wrappers = {
      reinterpret_cast<const void*>(&Timed<kSolve>), reinterpret_cast<const void*>(&Timed<kFactor>),
      reinterpret_cast<const void*>(&Timed<kSolveAutoDiff>)};
  for (int i = 0; i < kNumHooks; ++i) {
    const char* fault = get_statistics == nullptr ? "the solver's statistics are not exported"
                                                  : Install(&hooks[i], library, wrappers[i]);
    if (fault != nullptr) {
      std::fprintf(stderr, "drake_timer: %s: %s\n", hooks[i].symbol, fault);
      return 1;
    }
  }
  return 0;
}

void DrakeTimerReset() {
  iterations = 0;
  for (Hook& hook : hooks) hook.seconds = hook.calls = 0;
}
double DrakeTimerSolveSeconds() { return hooks[kSolve].seconds; }
double DrakeTimerSolveAutoDiffSeconds() { return hooks[kSolveAutoDiff].seconds; }
double DrakeTimerFactorSeconds() { return hooks[kFactor].seconds; }
long DrakeTimerSolves() { return hooks[kSolve].calls; }
long DrakeTimerFactorizations() { return hooks[kFactor].calls; }
long DrakeTimerIterations() { return iterations; }

}  // extern "C"
