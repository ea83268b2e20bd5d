// Answers to islands of the problems of one batch, by all that an answer depends on.
//
// The key of an island is the problem that it is on its own: time step, regularization and all its
// arrays (problem/problem_fields.inc), with indices counted within the island. Equal keys have the
// same answer to the last bit, whatever else is in their problems. A hash finds a key, a comparison
// of all of its bytes decides.
#pragma once

#include <atomic>
#include <cstdint>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "solver/problem/contact_solution.h"
#include "solver/problem/problem_fields.h"

namespace sap {

// Thread-safe. One per batch: all of its problems have the same options, which no key contains.
class SharedIslands {
 public:
  struct Key {
    std::string bytes;
    uint64_t hash{0};

    bool operator==(const Key& other) const { return hash == other.hash && bytes == other.bytes; }
  };

  // Islands of fewer contacts and rows take less time to be solved than to be looked up
  // (solver/MEASURED.md).
  static constexpr int kLeastConstraints = 16;
  // As much as a batch may hold unless its caller says less.
  static constexpr int64_t kMostBytes = int64_t{256} << 20;

  explicit SharedIslands(int64_t max_bytes = kMostBytes, int least_constraints = kLeastConstraints)
      : max_bytes_(max_bytes), least_constraints_(least_constraints) {}
  SharedIslands(const SharedIslands&) = delete;
  SharedIslands& operator=(const SharedIslands&) = delete;

  // Contacts and rows of an island from which on it is looked up.
  int least_constraints() const { return least_constraints_; }

  // Makes the key of a problem of one island. Names of trees and bodies are not in it.
  static void MakeKey(const OwnedContactProblem& island, Key* key);

  // The answer to the island of this key, which stays where it is; null: none yet.
  const ContactSolution* Find(const Key& key) const;

  // Whether there is room for one more island with a key of that size.
  bool HasRoom(size_t key_bytes) const;
  // Keeps an answer, unless there is no room for it or another thread was first.
  void Add(Key key, ContactSolution answer);

  // Whether the next problem should be looked at: not after kMostVainLooks problems in a row of
  // which no island was found, so that a large batch of unlike problems costs no more.
  static constexpr int kMostVainLooks = 64;
  bool IsOpen() const { return vain_looks_.load(std::memory_order_relaxed) < kMostVainLooks; }
  void ProblemEnded(bool found_any);

  int64_t bytes() const;

 private:
  struct HashOfKey {
    size_t operator()(const Key& key) const { return key.hash; }
  };

  const int64_t max_bytes_;
  const int least_constraints_;
  mutable std::shared_mutex mutex_;
  int64_t bytes_{0};  // of keys and answers
  std::unordered_map<Key, ContactSolution, HashOfKey> answers_;
  std::atomic<int> vain_looks_{0};
};

}  // namespace sap
