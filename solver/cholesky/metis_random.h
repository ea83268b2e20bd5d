// Random numbers of METIS, one sequence per call.
//
// METIS draws from gk_randint32 and seeds by gk_randinit. It defines both, on top of rand() and
// srand() of the process: any other thread that draws there would change the separator and with it
// the bits of the solution, and the seed would change what others draw. METIS calls both through
// its table of imported functions, as ELF libraries do with what they export; here the entries of
// the two are replaced by functions that draw from the sequence of the calling thread. Threads
// without one, as other users of METIS, get what METIS itself would give them. Several libraries in
// one process may each have a copy of this.
#pragma once

#include <cstdint>

namespace sap {

// Random numbers for one call of METIS.
class RandomSequence {
 public:
  // A sequence of high period with any nonzero start [Marsaglia 2003, Xorshift RNGs].
  uint32_t Next() {
    ++num_draws_;
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint32_t>(state_ >> 33);  // METIS takes them for int, so below 2^31
  }

  int64_t num_draws() const { return num_draws_; }

 private:
  uint64_t state_{0x9e3779b97f4a7c15};
  int64_t num_draws_{0};
};

// While it exists, METIS draws from `random` on this thread.
class MetisRandomScope {
 public:
  explicit MetisRandomScope(RandomSequence* random);
  ~MetisRandomScope();
  MetisRandomScope(const MetisRandomScope&) = delete;
  MetisRandomScope& operator=(const MetisRandomScope&) = delete;
};

// Replaces the entries of the METIS that has this function. To be called once. Without
// effect where METIS has no such entries: linked statically, or with -Bsymbolic.
void ReplaceRandomNumbersOfMetis(const void* function_of_metis);

}  // namespace sap
