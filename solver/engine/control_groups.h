// The control groups (containers, systemd units) that this process is in, as folders of the files
// in which the kernel tells their limits.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sap {

// Folders of the groups with this controller, as "cpu": the process's own and those above it, each
// of which limits it as well. Of both versions, from /proc/self/cgroup and /sys/fs/cgroup below the
// root; some of them need not exist.
std::vector<std::filesystem::path> GroupFolders(const std::filesystem::path& root,
                                                const std::string& controller);

// The text of a file; empty: there is none.
std::string ReadText(const std::filesystem::path& file);

}  // namespace sap
