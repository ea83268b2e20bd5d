#include "client/cpp/split/merge.h"

#include <algorithm>

#include "solver/split/place.h"

namespace sap::client {
namespace {

// Puts the answers to shards to their places in the whole.
class Scatter {
 public:
  void ToRanges(std::span<const double> values, std::span<const int> places,
                std::span<const int> starts, std::vector<double>* whole) {
    int64_t size = 0;
    for (const int place : places) size += starts[place + 1] - starts[place];
    if (Fits(values.size(), size)) PlaceRanges(values, places, starts, whole);
  }

  template <typename Value>
  void ToBlocks(std::span<const Value> values, std::span<const int> places, int per_place,
                std::vector<Value>* whole) {
    if (!Fits(values.size(), static_cast<int64_t>(places.size()) * per_place)) return;
    PlaceBlocks(values, places, per_place, whole);
  }

  // Whether the solution of every shard had the shape of its problem.
  bool fits() const { return fits_; }

 private:
  bool Fits(size_t values, int64_t size) {
    const bool fits = static_cast<int64_t>(values) == size;
    fits_ = fits_ && fits;
    return fits;
  }

  bool fits_{true};
};

// The whole before any shard is in it.
Solution EmptySolution(const Shards& shards, size_t num_islands,
                       const std::vector<std::string>& mask) {
  const ProblemLayout& layout = shards.layout();
  Solution whole;
  const size_t contact_values = 3 * static_cast<size_t>(layout.num_contacts());
  if (Wants(mask, "velocity")) whole.velocity.resize(layout.velocity_start.back());
  if (Wants(mask, "impulse")) whole.impulse.resize(contact_values);
  if (Wants(mask, "contact_velocity")) whole.contact_velocity.resize(contact_values);
  if (Wants(mask, "delassus_estimate")) whole.delassus_estimate.resize(layout.num_contacts());
  if (Wants(mask, "row_impulse")) whole.row_impulse.resize(layout.num_rows());
  if (Wants(mask, "row_velocity")) whole.row_velocity.resize(layout.num_rows());
  if (Wants(mask, "angular_impulse")) {
    whole.angular_impulse.resize(3 * static_cast<size_t>(layout.num_angular));
  }
  if (Wants(mask, "island_of_tree")) {
    whole.island_of_tree.assign(shards.island_of_tree().begin(), shards.island_of_tree().end());
  }
  whole.islands.resize(num_islands);
  return whole;
}

void RaiseTo(const PhaseTimings& timings, PhaseTimings* whole) {
  whole->decode_s = std::max(whole->decode_s, timings.decode_s);
  whole->queue_s = std::max(whole->queue_s, timings.queue_s);
  whole->islands_s = std::max(whole->islands_s, timings.islands_s);
  whole->solve_s = std::max(whole->solve_s, timings.solve_s);
  whole->encode_s = std::max(whole->encode_s, timings.encode_s);
}

}  // namespace

std::vector<std::string> MaskOfShards(const std::vector<std::string>& response_mask) {
  std::vector<std::string> mask = response_mask;
  if (!mask.empty() && Wants(mask, "cost") && !Wants(mask, "islands")) mask.push_back("islands");
  return mask;
}

tl::expected<Solution, Error> Merge(const Shards& shards, std::span<const Solution> solutions,
                                    const std::vector<std::string>& mask) {
  const std::vector<int>& velocity_start = shards.layout().velocity_start;
  const bool wants_reports = Wants(mask, "islands") || Wants(mask, "cost");
  size_t num_islands = 0;
  for (int i = 0; i < shards.count(); ++i) num_islands += shards.shard(i).islands.size();
  Solution whole = EmptySolution(shards, wants_reports ? num_islands : 0, mask);
  Scatter scatter;
  for (int i = 0; i < shards.count(); ++i) {
    const Shard shard = shards.shard(i);
    const Solution& solution = solutions[i];
    const auto blocks = [&](const char* field, std::vector<double> Solution::*array,
                            std::span<const int> places, int per_place) {
      if (!Wants(mask, field)) return;
      scatter.ToBlocks<double>(solution.*array, places, per_place, &(whole.*array));
    };
    if (Wants(mask, "velocity")) {
      scatter.ToRanges(solution.velocity, shard.trees, velocity_start, &whole.velocity);
    }
    blocks("impulse", &Solution::impulse, shard.contacts, 3);
    blocks("contact_velocity", &Solution::contact_velocity, shard.contacts, 3);
    blocks("delassus_estimate", &Solution::delassus_estimate, shard.contacts, 1);
    blocks("row_impulse", &Solution::row_impulse, shard.rows, 1);
    blocks("row_velocity", &Solution::row_velocity, shard.rows, 1);
    blocks("angular_impulse", &Solution::angular_impulse, shard.angular, 3);
    if (wants_reports) {
      scatter.ToBlocks<Island>(solution.islands, shard.islands, 1, &whole.islands);
    }
    RaiseTo(solution.timings, &whole.timings);
  }
  if (!scatter.fits()) {
    return tl::unexpected(
        Error{ErrorCode::kInternal, "the answer to a shard of the scene does not fit it", ""});
  }
  // In the order of the solver, which decides the bits of the sum.
  if (Wants(mask, "cost")) {
    for (const Island& island : whole.islands) whole.cost += island.cost;
  }
  if (!Wants(mask, "islands")) whole.islands.clear();
  return whole;
}

}  // namespace sap::client
