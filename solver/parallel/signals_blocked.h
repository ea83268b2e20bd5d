// Keeps signals away from the threads of a library.
#pragma once

#include <pthread.h>

#include <csignal>

namespace sap {

// Blocks all signals of the calling thread while it exists. A thread that is started meanwhile,
// here or by a library, inherits that, so that signals reach the threads of the program.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace sap
