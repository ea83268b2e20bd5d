// Ctrl-C in commands that print what they have so far.
#pragma once

#include <atomic>

namespace sap::client {

constexpr int kInterrupted = 130;  // exit code, as that of a shell

// Is set by the first SIGINT after the first call of this; a second one ends the process.
const std::atomic<bool>* Interrupted();

}  // namespace sap::client
