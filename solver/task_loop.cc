#include "solver/task_loop.h"

namespace sap {
namespace {

std::atomic<unsigned> handed_over{0};

}  // namespace

void HandOver() { handed_over.fetch_add(1, std::memory_order_release); }

void TakeOver() { handed_over.load(std::memory_order_acquire); }

TaskLoop::TaskLoop(int count, void (*body)(void* context, int index), void* context)
    : count_(count), body_(body), context_(context) {
  HandOver();
}

void TaskLoop::Work() {
  TakeOver();
  for (int i = next_.fetch_add(1, std::memory_order_relaxed); i < count_;
       i = next_.fetch_add(1, std::memory_order_relaxed)) {
    body_(context_, i);
  }
  workers_done_.fetch_add(1, std::memory_order_release);
}

void TaskLoop::Finish() { workers_done_.load(std::memory_order_acquire); }

}  // namespace sap
