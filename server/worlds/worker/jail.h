// Takes from this process all that stepping worlds does not need.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace sap {

// From now on the process reads and writes the descriptors that it has, maps memory without code,
// and ends. No files, sockets, processes or signals; what a library tries of these fails, and
// anything else ends the process. No core dump, and no debugger. Threads of the process can be
// started, since MuJoCo compiles meshes on one; libraries that ask are told of two processors. An
// error: the kernel does not have it, with the reason.
tl::expected<void, std::string> EnterJail();

}  // namespace sap
