#include "server/rpc/long_messages.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace sap {

LongMessages::LongMessages(int nice)
    : thread_([this, nice](const std::stop_token& stop) { Run(stop, nice); }) {}

void LongMessages::Push(const ClientAccount* account, Task task) {
  {
    const std::lock_guard lock(mutex_);
    auto turn = std::ranges::find(turns_, account, &Turn::account);
    if (turn == turns_.end()) turn = turns_.insert(turn, {account, {}});
    turn->tasks.push_back(task);
  }
  wake_.notify_one();
}

void LongMessages::Run(const std::stop_token& stop, int nice) {
  // The nice value of this thread (Linux); best effort.
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !turns_.empty(); })) {
    Turn& turn = turns_.front();
    const Task task = turn.tasks.front();
    turn.tasks.pop_front();
    if (turn.tasks.empty()) {
      turns_.pop_front();
    } else {
      turns_.splice(turns_.end(), turns_, turns_.begin());
    }
    lock.unlock();
    task.run(task.context);
    lock.lock();
  }
}

}  // namespace sap
