// Threads for the calls in the background.
#pragma once

#include <functional>

namespace sap::c {

// Runs the task on a thread of the library. Throws if there is no memory or no thread for it. Of
// more than 64 tasks the later ones wait, so a task must not wait for another one.
void RunInBackground(std::function<void()> task);

}  // namespace sap::c
