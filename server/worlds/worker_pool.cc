#include "server/worlds/worker_pool.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace sap {
namespace {

// Resident memory that is the process's own, from /proc; 0: it is gone.
int64_t OwnBytesOf(int pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/statm";
  std::FILE* const file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return 0;
  long long size = 0;
  long long resident = 0;
  long long shared = 0;
  const int read = std::fscanf(file, "%lld %lld %lld", &size, &resident, &shared);
  std::fclose(file);
  return read == 3 ? (resident - shared) * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

const char* Name(WorkerEnd end) {
  constexpr const char* kNames[] = {"other_client", "idle", "lost"};
  return kNames[static_cast<int>(end)];
}

tl::expected<ModelSizes, ServiceError> WorkerPool::Lease::Load(
    const ModelSource& model, const Worker::IsStopped& is_stopped) {
  auto sizes = idle_.worker->Load(model, is_stopped);
  if (sizes) idle_.models.insert(model.id);
  return sizes;
}

ServiceStatus WorkerPool::Lease::Prepare(const ModelSource& model,
                                         const Worker::IsStopped& is_stopped) {
  if (idle_.models.contains(model.id)) return {};
  const auto sizes = Load(model, is_stopped);
  if (!sizes) return tl::unexpected(sizes.error());
  return {};
}

tl::expected<WorkerPool::Lease, ServiceError> WorkerPool::Take(std::string_view client,
                                                               const ModelId& model) {
  std::optional<Idle> taken = TakeIdle(client, model);
  if (!taken) {
    auto started = start_();
    if (!started) {
      ServiceError error{ServiceCode::kUnavailable,
                         "no process can be started to step worlds: " + started.error(), ""};
      error.reason = "WORKERS";
      error.retry_after_s = 1;
      return tl::unexpected(error);
    }
    taken = Idle{std::move(*started), "", {}, {}};
  }
  taken->client = client;
  in_use_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  pids_.push_back(taken->worker->pid());
  return Lease(this, std::move(*taken));
}

// Makes room for one that is started, where there is none for it once it is idle.
std::optional<WorkerPool::Idle> WorkerPool::TakeIdle(std::string_view client,
                                                     const ModelId& model) {
  std::unique_ptr<Worker> ended;  // outside of the lock
  const std::lock_guard lock(mutex_);
  auto best = idle_.end();
  int best_score = 0;
  for (auto entry = idle_.begin(); entry != idle_.end(); ++entry) {
    const bool own = entry->client == client;
    const int score = own ? (entry->models.contains(model) ? 3 : 2) : entry->client.empty() ? 1 : 0;
    if (score > best_score) {
      best = entry;
      best_score = score;
    }
  }
  if (best != idle_.end()) {
    Idle taken = std::move(*best);
    idle_.erase(best);
    return taken;
  }
  if (std::ssize(idle_) >= max_idle_) {
    ended = std::move(idle_.back().worker);
    idle_.pop_back();
    CountEnd(WorkerEnd::kOtherClient);
  }
  return std::nullopt;
}

void WorkerPool::Return(int pid, Idle idle) {
  in_use_.fetch_sub(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    pids_.erase(std::ranges::find(pids_, pid));
  }
  if (idle.worker == nullptr || !idle.worker->is_alive()) return CountEnd(WorkerEnd::kLost);
  idle.since = Clock::now();
  Keep(std::move(idle));
}

void WorkerPool::Keep(Idle idle) {
  std::unique_ptr<Worker> ended;
  const std::lock_guard lock(mutex_);
  idle_.push_front(std::move(idle));
  if (std::ssize(idle_) <= max_idle_) return;
  ended = std::move(idle_.back().worker);
  idle_.pop_back();
  CountEnd(WorkerEnd::kOtherClient);
}

void WorkerPool::EndIdle(Clock::duration unused, Clock::time_point now) {
  std::list<Idle> ended;
  const std::lock_guard lock(mutex_);
  for (auto entry = idle_.begin(); entry != idle_.end();) {
    const auto next = std::next(entry);
    if (now - entry->since >= unused) {
      CountEnd(WorkerEnd::kIdle);
      ended.splice(ended.end(), idle_, entry);
    }
    entry = next;
  }
}

int WorkerPool::idle() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(idle_.size());
}

int64_t WorkerPool::resident_bytes() const {
  std::vector<int> pids;
  {
    const std::lock_guard lock(mutex_);
    pids.assign(pids_.begin(), pids_.end());
    for (const Idle& idle : idle_) pids.push_back(idle.worker->pid());
  }
  int64_t bytes = 0;
  for (const int pid : pids) {
    if (pid > 0) bytes += OwnBytesOf(pid);
  }
  return bytes;
}

}  // namespace sap
