// A process at its limit of threads.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace sap::test {

// While it exists, threads of the process cannot be started: their stacks would be larger than the
// address space. A limit as of setrlimit does not hold for root.
class NoNewThreads {
 public:
  NoNewThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t too_large;
    pthread_getattr_default_np(&too_large);
    pthread_attr_setstacksize(&too_large, size_t{1} << 48);
    pthread_setattr_default_np(&too_large);
    pthread_attr_destroy(&too_large);
  }
  ~NoNewThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace sap::test
