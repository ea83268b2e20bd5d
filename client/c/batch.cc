#include "client/c/batch.h"

#include <new>
#include <utility>

namespace sap::c {

RunningBatch::RunningBatch(std::shared_ptr<Connection> client,
                           std::span<const sap_problem* const> problems, const sap_options* options,
                           const CallSettings& call, std::span<sap_answer* const> answers)
    : client_(std::move(client)),
      problems_(problems),
      options_(options),
      answers_(answers),
      call_(call),
      complete_(problems.size()) {
  ended_.reserve(problems.size());
  call_.options.cancelled = &cancelled_;
}

void RunningBatch::Put(int index) {
  {
    const std::lock_guard lock(mutex_);
    if (complete_[index]) return;
    complete_[index] = true;
    ended_.push_back(index);
    changed_.notify_all();
  }
  if (call_.done != nullptr) call_.done(call_.context);
}

void RunningBatch::Run() {
  const auto fail_others = [this](const auto& set_error) {
    for (size_t i = 0; i < answers_.size(); ++i) {
      if (!complete_[i]) set_error(answers_[i]->content.get());
      Put(static_cast<int>(i));
    }
  };
  try {
    const auto put = [this](int index) { Put(index); };
    const Status status = client_->StreamBatch(problems_, options_, call_, answers_, put);
    if (!status) {
      fail_others([&](AnswerContent* content) { content->SetError(status.error()); });
    }
  } catch (const std::bad_alloc&) {
    fail_others([](AnswerContent* content) { content->SetOutOfMemory(); });
  }
  {
    const std::lock_guard lock(mutex_);
    complete_all_ = true;
    changed_.notify_all();
  }
  if (call_.done != nullptr) call_.done(call_.context);
  // Only now may the batch be freed, and with it the context.
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

int64_t RunningBatch::Next(const Wait& wait) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return returned_ < ended_.size() || complete_all_; };
  if (!wait) {
    changed_.wait(lock, ready);
  } else if (!changed_.wait_for(lock, *wait, ready)) {
    return SAP_BATCH_WAITS;
  }
  return returned_ < ended_.size() ? ended_[returned_++] : int64_t{SAP_BATCH_ENDED};
}

void RunningBatch::Cancel() {
  cancelled_ = true;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return finished_; });
}

}  // namespace sap::c
