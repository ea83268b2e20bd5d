// The models that clients have put, by client and hash, the least recently used one out first.
//
// A model belongs to the client that put it: another one that has the hash alone does not get it,
// and cannot find out whether somebody has put it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "server/service_error.h"
#include "server/worlds/world_slice.h"

namespace sap {

using ModelId = std::array<uint8_t, 32>;

// Time of a step of one world of a model, as measured: an exponential mean. Thread-safe.
class StepTime {
 public:
  bool is_measured() const { return mean_s_.load(std::memory_order_relaxed) > 0; }
  // A guess before the first step.
  double seconds() const {
    const double mean_s = mean_s_.load(std::memory_order_relaxed);
    return mean_s > 0 ? mean_s : kUnknown_s;
  }
  // So many steps took so long. Those of a slice with few of them tell little, since its transport
  // counts as well.
  void Add(int64_t steps, double took_s);

 private:
  static constexpr double kUnknown_s = 100e-6;

  std::atomic<double> mean_s_{0};
  std::atomic<int64_t> most_steps_{0};  // of a slice that was measured
};

struct HeldModel {
  std::shared_ptr<const ModelSource> source;
  ModelSizes sizes{};
  StepTime step_time;

  // Memory of a model with these files.
  static int64_t BytesOf(const ModelSource& source);
};

// Thread-safe.
class ModelCache {
 public:
  explicit ModelCache(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // The client's model, which counts as used now; null: it has none with this hash.
  std::shared_ptr<HeldModel> Find(std::string_view client, const ModelId& id);

  // RESOURCE_EXHAUSTED if a model of this size cannot be held for a client with this limit.
  ServiceStatus CheckSize(int64_t bytes, int64_t client_limit) const;

  // Holds a model whose size is checked, in place of the least recently used ones: of the client,
  // then of all.
  void Put(std::string_view client, int64_t client_limit, std::shared_ptr<HeldModel> model);

  // Drops a model of the client, or all of all.
  void Drop(std::string_view client, const ModelId& id);
  void Clear();

  int64_t bytes() const;
  int models() const;

 private:
  struct Entry {
    std::string client;
    std::shared_ptr<HeldModel> model;
    int64_t bytes;
  };
  using Entries = std::list<Entry>;
  using Key = std::pair<std::string, ModelId>;

  void Erase(Entries::iterator entry);

  const int64_t max_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;  // the most recently used one first
  std::map<Key, Entries::iterator> by_key_;
  std::map<std::string, int64_t, std::less<>> bytes_of_client_;
  int64_t bytes_{0};
};

}  // namespace sap
