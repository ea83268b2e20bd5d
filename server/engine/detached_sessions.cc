#include "server/engine/detached_sessions.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sap {
namespace {

constexpr size_t kTokenBytes = 16;

}  // namespace

DetachedSessions::~DetachedSessions() = default;

std::string DetachedSessions::NewToken() {
  std::array<char, kTokenBytes> bytes;
  // A read of up to 256 bytes is never short and does not fail once the system has booted.
  const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
  return {bytes.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
}

void DetachedSessions::Hold(const std::string& token, SessionHolder* holder) {
  const std::lock_guard lock(mutex_);
  entries_[token].holder = holder;
}

void DetachedSessions::Keep(const std::string& token, std::unique_ptr<DetachedSession> detached) {
  std::unique_lock lock(mutex_);
  Entry& entry = entries_[token];
  entry.holder = nullptr;
  SessionClaimant* const claimant = std::exchange(entry.claimant, nullptr);
  if (claimant == nullptr) {
    entry.detached = std::move(detached);
    entry.since = Clock::now();
    return;
  }
  if (entry.claiming_client != detached->client) detached = nullptr;
  entries_.erase(token);
  lock.unlock();
  claimant->Resume(std::move(detached));
}

void DetachedSessions::Forget(const std::string& token) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(token);
  if (found == entries_.end()) return;
  SessionClaimant* const claimant = found->second.claimant;
  entries_.erase(found);
  lock.unlock();
  if (claimant != nullptr) claimant->Resume(nullptr);
}

void DetachedSessions::Claim(const std::string& token, const std::string& client,
                             SessionClaimant* claimant) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(token);
  std::unique_ptr<DetachedSession> detached;
  if (found != entries_.end()) {
    Entry& entry = found->second;
    if (entry.holder != nullptr && entry.claimant == nullptr) {
      entry.claimant = claimant;
      entry.claiming_client = client;
      return entry.holder->GiveUp();
    }
    if (entry.detached != nullptr && entry.detached->client == client) {
      detached = std::move(entry.detached);
      entries_.erase(found);
    }
  }
  lock.unlock();
  claimant->Resume(std::move(detached));
}

int DetachedSessions::Sweep() {
  const auto before = Clock::now() - std::chrono::duration_cast<Clock::duration>(
                                         std::chrono::duration<double>(keep_s_));
  std::vector<std::unique_ptr<DetachedSession>> dropped;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->second.detached == nullptr || entry->second.since > before) {
      ++entry;
      continue;
    }
    dropped.push_back(std::move(entry->second.detached));
    entry = entries_.erase(entry);
  }
  return static_cast<int>(dropped.size());
}

bool DetachedSessions::DropOldest() {
  std::unique_ptr<DetachedSession> dropped;
  const std::lock_guard lock(mutex_);
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->second.detached == nullptr) continue;
    if (oldest == entries_.end() || entry->second.since < oldest->second.since) oldest = entry;
  }
  if (oldest == entries_.end()) return false;
  dropped = std::move(oldest->second.detached);
  entries_.erase(oldest);
  return true;
}

void DetachedSessions::DropAll() {
  while (DropOldest()) {
  }
}

size_t DetachedSessions::size() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(entries_,
                               [](const auto& e) { return e.second.detached != nullptr; });
}

}  // namespace sap
