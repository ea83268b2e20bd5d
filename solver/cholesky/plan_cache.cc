#include "solver/cholesky/plan_cache.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace sap {

namespace {

// FNV-1a over words.
template <typename Value>
uint64_t Hash(uint64_t hash, std::span<const Value> values) {
  constexpr uint64_t kPrime = 1099511628211u;
  hash = (hash ^ values.size()) * kPrime;
  for (const Value value : values) hash = (hash ^ static_cast<uint32_t>(value)) * kPrime;
  return hash;
}

uint64_t Hash(const BlockPattern& pattern) {
  uint64_t hash = 14695981039346656037u;
  hash = Hash(hash, pattern.block_size);
  hash = Hash(hash, pattern.edge_a);
  hash = Hash(hash, pattern.edge_b);
  return Hash(hash, pattern.varies);
}

}  // namespace

bool PlanCache::Entry::Matches(const BlockPattern& other) const {
  return std::ranges::equal(block_size, other.block_size) &&
         std::ranges::equal(edge_a, other.edge_a) && std::ranges::equal(edge_b, other.edge_b) &&
         std::ranges::equal(varies, other.varies);
}

size_t PlanCache::Entry::size_bytes() const {
  return sizeof(Entry) + (block_size.size() + edge_a.size() + edge_b.size()) * sizeof(int) +
         varies.size() + (plan ? plan->size_bytes() : 0);
}

void PlanCache::BeginProblem() {
  ++problem_;
  problem_bytes_ = 0;
  missing_.clear();
}

const PlanCache::Plan* PlanCache::Request(const BlockPattern& pattern) {
  const uint64_t hash = Hash(pattern);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto found = begin; found != end; ++found) {
    const Entries::iterator entry = found->second;
    ++patterns_compared_;
    if (!entry->Matches(pattern)) continue;
    if (entry->last_used < problem_) Use(entry);
    return &entry->plan;
  }
  entries_.push_back({hash,
                      {pattern.block_size.begin(), pattern.block_size.end()},
                      {pattern.edge_a.begin(), pattern.edge_a.end()},
                      {pattern.edge_b.begin(), pattern.edge_b.end()},
                      {pattern.varies.begin(), pattern.varies.end()},
                      problem_ - 1,
                      Duration{0},
                      std::nullopt});
  const Entries::iterator entry = std::prev(entries_.end());
  storage_bytes_ += entry->size_bytes();
  by_hash_.emplace(hash, entry);
  Use(entry);
  return &entry->plan;
}

// For the first time in this problem.
void PlanCache::Use(Entries::iterator entry) {
  entries_.splice(entries_.end(), entries_, entry);
  entry->last_used = problem_;
  problem_bytes_ += entry->size_bytes();
  if (!entry->plan) missing_.push_back(&*entry);
}

PlanCache::Duration PlanCache::longest_attempt() const {
  Duration longest{0};
  for (const Entry* entry : missing_) longest = std::max(longest, entry->longest_attempt);
  return longest;
}

void PlanCache::MakePlans(const StopToken& stop, TaskArena* arena) {
  const StopToken::Clock::time_point start = StopToken::Clock::now();
  MakeMissing(stop, arena);
  const Duration attempt = StopToken::Clock::now() - start;
  for (Entry* entry : missing_) {
    if (!entry->plan) entry->longest_attempt = std::max(entry->longest_attempt, attempt);
  }
  DropUnusedAbove(std::max<size_t>(max_bytes_, kProblems * problem_bytes_));
}

void PlanCache::MakeMissing(const StopToken& stop, TaskArena* arena) {
  if (missing_.empty()) return;
  // A block takes about half a microsecond, and a thread needs some ten to wake up.
  constexpr size_t kWorthSharing = 100;
  size_t num_blocks = 0;
  for (const Entry* entry : missing_) num_blocks += entry->block_size.size();
  const auto make = [&](int i) {
    Entry& entry = *missing_[i];
    if (entry.plan || stop.Requested()) return;
    entry.plan = EliminationPlan::Make(entry.pattern(), Ordering::kAuto, stop, arena);
    if (!entry.plan) return;
    storage_bytes_ += entry.plan->size_bytes();
    problem_bytes_ += entry.plan->size_bytes();
    ++plans_made_;
  };
  std::ranges::stable_sort(missing_, std::ranges::greater(),
                           [](const Entry* entry) { return entry->block_size.size(); });
  const int count = static_cast<int>(missing_.size());
  if (arena != nullptr && num_blocks >= kWorthSharing) {
    arena->ParallelFor(count, make);
  } else {
    for (int i = 0; i < count; ++i) make(i);
  }
}

void PlanCache::DropUnusedAbove(size_t bytes) {
  while (storage_bytes_ > bytes && entries_.front().last_used < problem_) {
    const Entries::iterator oldest = entries_.begin();
    const auto [begin, end] = by_hash_.equal_range(oldest->hash);
    const auto found = std::find_if(begin, end, [&](const auto& e) { return e.second == oldest; });
    if (found != end) by_hash_.erase(found);  // else memory ran out when it was requested
    storage_bytes_ -= oldest->size_bytes();
    entries_.pop_front();
  }
  // As few buckets as the rest needs, where a large problem has made many.
  if (by_hash_.bucket_count() > 1000 + 4 * by_hash_.size()) by_hash_.rehash(0);
}

}  // namespace sap
