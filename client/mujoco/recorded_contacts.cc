#include "client/mujoco/recorded_contacts.h"

#include <algorithm>

namespace sap::mujoco {

void RecordedContacts::Merge(const Fields& fields, std::span<const std::byte> recorded,
                             double touching) {
  const auto pair_of = [](const int32_t* geoms) {
    return Pair(std::min(geoms[0], geoms[1]), std::max(geoms[0], geoms[1]));
  };
  const auto size = static_cast<size_t>(fields.contact_bytes);
  merged_.assign(recorded.begin(), recorded.end());
  pairs_.clear();
  for (size_t at = 0; at < recorded.size(); at += size) {
    const std::byte* geoms = recorded.data() + at + fields.offset_of_contact_geom;
    pairs_.push_back(pair_of(reinterpret_cast<const int32_t*>(geoms)));
  }
  std::ranges::sort(pairs_);
  lost_.clear();
  for (int64_t i = 0; i < fields.ncon; ++i) {
    const double overlap = *fields.contact_includemargin(i) - *fields.contact_dist(i);
    const Pair pair = pair_of(fields.contact_geom(i));
    if (*fields.contact_exclude(i) != 0 || !(overlap > touching)) continue;
    if (std::ranges::binary_search(pairs_, pair)) continue;
    lost_.push_back(pair);
    const std::byte* begin = fields.contact + i * fields.contact_bytes;
    merged_.insert(merged_.end(), begin, begin + size);
  }
  std::ranges::sort(lost_);
  lost_.erase(std::unique(lost_.begin(), lost_.end()), lost_.end());
}

int64_t CountActingContacts(const Fields& fields) {
  int64_t count = 0;
  for (int64_t i = 0; i < fields.ncon; ++i) count += *fields.contact_exclude(i) == 0;
  return count;
}

}  // namespace sap::mujoco
