#include "solver/split/shared_islands.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>

#include "solver/parallel/storage_bytes.h"

namespace sap {
namespace {

template <typename Value>
void Append(const Value* values, size_t count, std::string* bytes) {
  static_assert(std::is_arithmetic_v<Value> || std::is_enum_v<Value>);
  if (count > 0) bytes->append(reinterpret_cast<const char*>(values), count * sizeof(Value));
}

// Both halves of the product.
uint64_t Mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// 16 bytes per multiplication: std::hash takes three times as many instructions.
uint64_t HashOf(std::string_view bytes) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15, kOther = 0xD6E8FEB86659FD93;
  uint64_t hash = bytes.size() ^ kOther;
  while (!bytes.empty()) {
    std::array<uint64_t, 2> words{};
    const size_t count = std::min(bytes.size(), sizeof(words));
    std::memcpy(words.data(), bytes.data(), count);
    hash = Mix(words[0] ^ hash, words[1] ^ kOdd);
    bytes.remove_prefix(count);
  }
  return Mix(hash, kOdd);
}

bool IsName(std::string_view field) { return field == "tree_id" || field == "body_id"; }

}  // namespace

void SharedIslands::MakeKey(const OwnedContactProblem& island, Key* key) {
  std::string* const bytes = &key->bytes;
  bytes->clear();
  Append(&island.time_step, 1, bytes);
  const Regularization& regularization = island.regularization;
  Append(&regularization.rule, 1, bytes);
  Regularization::ForEach(
      [bytes](std::string_view, bool, const double& number) { Append(&number, 1, bytes); },
      regularization);
  ForEachArray(
      [bytes](std::string_view, const auto& field, const auto& array) {
        if (IsName(field.name)) return;
        // An array that is absent is not one of zeros.
        const size_t size = array.size();
        Append(&size, 1, bytes);
        Append(array.data(), size, bytes);
      },
      island);
  key->hash = HashOf(*bytes);
}

const ContactSolution* SharedIslands::Find(const Key& key) const {
  const std::shared_lock lock(mutex_);
  const auto found = answers_.find(key);
  return found != answers_.end() ? &found->second : nullptr;
}

bool SharedIslands::HasRoom(size_t key_bytes) const {
  const std::shared_lock lock(mutex_);
  return bytes_ + static_cast<int64_t>(key_bytes) <= max_bytes_;
}

void SharedIslands::Add(Key key, ContactSolution answer) {
  const auto bytes =
      static_cast<int64_t>(key.bytes.capacity() + sizeof(ContactSolution) + answer.storage_bytes());
  const std::lock_guard lock(mutex_);
  if (bytes_ + bytes > max_bytes_) return;
  if (answers_.try_emplace(std::move(key), std::move(answer)).second) bytes_ += bytes;
}

void SharedIslands::ProblemEnded(bool found_any) {
  if (found_any) {
    vain_looks_.store(0, std::memory_order_relaxed);
  } else {
    vain_looks_.fetch_add(1, std::memory_order_relaxed);
  }
}

int64_t SharedIslands::bytes() const {
  const std::shared_lock lock(mutex_);
  return bytes_;
}

}  // namespace sap
