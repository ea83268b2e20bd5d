#include "server/worlds/model_cache.h"

#include <algorithm>
#include <iterator>

namespace sap {
namespace {

// Memory of an entry, and of a file in it besides its content and its name.
constexpr int64_t kEntry_bytes = 1024;
constexpr int64_t kFile_bytes = 128;
// Weight of a new slice in the mean, once one of its size was measured.
constexpr double kWeight = 0.3;

}  // namespace

void StepTime::Add(int64_t steps, double took_s) {
  if (steps <= 0 || took_s <= 0) return;
  const double measured_s = took_s / static_cast<double>(steps);
  const int64_t most = most_steps_.load(std::memory_order_relaxed);
  // Races between slices lose a sample at most.
  if (steps > 4 * most) {
    most_steps_.store(steps, std::memory_order_relaxed);
    mean_s_.store(measured_s, std::memory_order_relaxed);
    return;
  }
  const double mean_s = mean_s_.load(std::memory_order_relaxed);
  const double weight = kWeight * std::min(1.0, static_cast<double>(steps) / (0.25 * most + 1));
  mean_s_.store(mean_s + weight * (measured_s - mean_s), std::memory_order_relaxed);
}

int64_t HeldModel::BytesOf(const ModelSource& source) {
  int64_t bytes = kEntry_bytes;
  for (const ModelSource::File& file : source.files) {
    bytes += kFile_bytes + std::ssize(file.name) + std::ssize(file.content);
  }
  return bytes;
}

std::shared_ptr<HeldModel> ModelCache::Find(std::string_view client, const ModelId& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find({std::string(client), id});
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->model;
}

ServiceStatus ModelCache::CheckSize(int64_t bytes, int64_t client_limit) const {
  const int64_t limit = std::min(client_limit, max_bytes_);
  if (bytes <= limit) return {};
  return tl::unexpected(ServiceError{ServiceCode::kResourceExhausted,
                                     "the model takes " + std::to_string(bytes) +
                                         " bytes; the models of this " + "client may take " +
                                         std::to_string(limit),
                                     "", "CLIENT_MODELS"});
}

void ModelCache::Put(std::string_view client, int64_t client_limit,
                     std::shared_ptr<HeldModel> model) {
  const int64_t bytes = HeldModel::BytesOf(*model->source);
  Key key{std::string(client), model->source->id};
  const std::lock_guard lock(mutex_);
  if (const auto found = by_key_.find(key); found != by_key_.end()) Erase(found->second);
  const auto make_room = [&](auto may_go, auto is_enough) {
    for (auto entry = entries_.end(); !is_enough() && entry != entries_.begin();) {
      --entry;
      if (may_go(*entry)) Erase(std::exchange(entry, std::next(entry)));
    }
  };
  make_room([&](const Entry& entry) { return entry.client == client; },
            [&] {
              const auto of_client = bytes_of_client_.find(client);
              return of_client == bytes_of_client_.end() ||
                     of_client->second + bytes <= client_limit;
            });
  make_room([](const Entry&) { return true; }, [&] { return bytes_ + bytes <= max_bytes_; });
  entries_.push_front({key.first, std::move(model), bytes});
  bytes_of_client_[key.first] += bytes;
  bytes_ += bytes;
  by_key_.emplace(std::move(key), entries_.begin());
}

void ModelCache::Drop(std::string_view client, const ModelId& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find({std::string(client), id});
  if (found != by_key_.end()) Erase(found->second);
}

void ModelCache::Clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  by_key_.clear();
  bytes_of_client_.clear();
  bytes_ = 0;
}

int64_t ModelCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

int ModelCache::models() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(entries_.size());
}

void ModelCache::Erase(Entries::iterator entry) {
  by_key_.erase({entry->client, entry->model->source->id});
  const auto of_client = bytes_of_client_.find(entry->client);
  of_client->second -= entry->bytes;
  if (of_client->second == 0) bytes_of_client_.erase(of_client);
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

}  // namespace sap
