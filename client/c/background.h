// Threads for the calls in the background.
#pragma once

#include <csignal>
#include <functional>

namespace sap::c {

// Blocks all signals of the calling thread. A thread that it starts inherits that, so that signals
// reach the threads of the program.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Runs the task on a thread of the library. Throws if there is no memory or no thread for it. Of
// more than 64 tasks the later ones wait, so a task must not wait for another one.
void RunInBackground(std::function<void()> task);

}  // namespace sap::c
