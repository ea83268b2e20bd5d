// Takes from this process all that stepping worlds does not need.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace sap {

// From now on the process reads and writes the descriptors that it has, maps memory without code,
// and ends. No files, sockets, processes, threads or signals; what a library tries of these fails,
// and anything else ends the process. No core dump, and no debugger. An error: the kernel does not
// have it, with the reason.
tl::expected<void, std::string> EnterJail();

}  // namespace sap
