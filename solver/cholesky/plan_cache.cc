#include "solver/cholesky/plan_cache.h"

#include <algorithm>
#include <span>

namespace sap {

namespace {

// Plans kept beside those of the current problem. A pile that comes to rest alternates between a
// few patterns.
constexpr size_t kMostPlans = 64;

// FNV-1a over words.
uint64_t Hash(uint64_t hash, std::span<const int> values) {
  constexpr uint64_t kPrime = 1099511628211u;
  hash = (hash ^ values.size()) * kPrime;
  for (int value : values) hash = (hash ^ static_cast<uint32_t>(value)) * kPrime;
  return hash;
}

}  // namespace

const PlanCache::Plan* PlanCache::Request(const BlockPattern& pattern) {
  uint64_t hash = 14695981039346656037u;
  hash = Hash(hash, pattern.block_size);
  hash = Hash(hash, pattern.edge_a);
  hash = Hash(hash, pattern.edge_b);
  for (const std::unique_ptr<Entry>& entry : entries_) {
    if (entry->hash == hash && std::ranges::equal(entry->block_size, pattern.block_size) &&
        std::ranges::equal(entry->edge_a, pattern.edge_a) &&
        std::ranges::equal(entry->edge_b, pattern.edge_b)) {
      entry->last_used = now_;
      return &entry->plan;
    }
  }
  if (entries_.size() >= kMostPlans) {
    const auto oldest = std::ranges::min_element(
        entries_, {}, [](const std::unique_ptr<Entry>& entry) { return entry->last_used; });
    if ((*oldest)->last_used < now_) entries_.erase(oldest);
  }
  entries_.push_back(
      std::make_unique<Entry>(Entry{hash,
                                    {pattern.block_size.begin(), pattern.block_size.end()},
                                    {pattern.edge_a.begin(), pattern.edge_a.end()},
                                    {pattern.edge_b.begin(), pattern.edge_b.end()},
                                    now_,
                                    std::nullopt}));
  return &entries_.back()->plan;
}

void PlanCache::MakePlans(const StopToken& stop, TaskArena* arena) {
  missing_.clear();
  size_t num_blocks = 0;
  for (const std::unique_ptr<Entry>& entry : entries_) {
    if (entry->plan || entry->last_used < now_) continue;
    missing_.push_back(entry.get());
    num_blocks += entry->block_size.size();
  }
  // A block takes about half a microsecond, and a thread needs some ten to wake up.
  constexpr size_t kWorthSharing = 100;
  const auto make = [&](int i) {
    Entry& entry = *missing_[i];
    if (stop.Requested()) return;
    entry.plan = EliminationPlan::Make(entry.pattern(), Ordering::kAuto, stop, arena);
  };
  std::ranges::stable_sort(missing_, std::ranges::greater(),
                           [](const Entry* entry) { return entry->block_size.size(); });
  const int count = static_cast<int>(missing_.size());
  if (arena != nullptr && num_blocks >= kWorthSharing) {
    arena->ParallelFor(count, make);
  } else {
    for (int i = 0; i < count; ++i) make(i);
  }
  for (const Entry* entry : missing_) plans_made_ += entry->plan.has_value();
}

}  // namespace sap
