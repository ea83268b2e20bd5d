#include "client/cpp/commands/interrupt.h"

#include <signal.h>

namespace sap::client {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

const std::atomic<bool>* Interrupted() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    return sigaction(SIGINT, &action, nullptr) == 0;
  }();
  static_cast<void>(installed);
  return &interrupted;
}

}  // namespace sap::client
