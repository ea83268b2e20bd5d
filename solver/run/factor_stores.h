// Memory of the factorizations of a solve: one store per thread at most, whatever the number of
// islands.
//
// Islands are taken up in the order of tasks, each by one of T threads. Store k has room for every
// island of the tasks k, k + 1, ..., so the first stores are the largest. An island of task t takes
// the last free store among the first min(t + 1, T). Then, for every j < T, the stores in use among
// the first j and the islands of the first j tasks that wait for a store are at most j together (by
// induction over takes and returns). So one that is large enough is always free, whichever thread
// is delayed, and a solve with known plans allocates nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "solver/newton/newton_step.h"

namespace sap {

// Bytes that the factorizations of an island, or of several one after the other, work in.
struct FactorPairBytes {
  size_t single{0};    // of the factor in single precision
  size_t exact{0};     // of the factor in double precision
  size_t fallback{0};  // of the same where it is allocated only once single precision has failed

  static FactorPairBytes Of(const EliminationPlan& plan, bool preconditioned,
                            const TaskArena* arena);
  void RaiseTo(const FactorPairBytes& other);
  size_t most() const { return single + std::max(exact, fallback); }
};

// Thread-safe where it says so.
class FactorStores {
 public:
  // Plans the stores for islands of at most needed[t] in task t, taken up by so many threads.
  // Returns how many bytes they may come to take. Allocates no store.
  size_t Plan(std::span<const FactorPairBytes> needed, int threads);

  // Makes the stores that were planned. Drops what was held before where both together would take
  // more than max_bytes.
  void Reserve(size_t max_bytes);

  // A store, while one island of a task is solved. Thread-safe.
  class Lease {
   public:
    Lease(FactorStores* stores, int task) : stores_(stores), number_(stores->Acquire(task)) {
      factors()->Forget();
    }
    ~Lease() { stores_->Release(number_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    FactorPair* factors() const { return &stores_->stores_[number_]->factors; }

   private:
    FactorStores* stores_;
    int number_;
  };

  // Bytes held for factors.
  size_t storage_bytes() const;

 private:
  struct Store {
    FactorPair factors;
    bool in_use{false};
  };

  int Acquire(int task);
  void Release(int number);

  std::vector<FactorPairBytes> planned_;
  std::vector<std::unique_ptr<Store>> stores_;  // not fewer than planned
  std::mutex mutex_;                            // of in_use
};

}  // namespace sap
