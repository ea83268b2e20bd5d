#include "solver/engine/control_groups.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace sap {
namespace {

using std::filesystem::path;

// Where the hierarchy of a line of /proc/self/cgroup may be mounted: version 2 has no controllers
// in its line, and is mounted next to version 1 on some systems.
std::vector<path> MountPoints(const path& hierarchies, const std::string& controllers,
                              const std::string& wanted) {
  if (controllers.empty()) return {hierarchies, hierarchies / "unified"};
  if (("," + controllers + ",").find("," + wanted + ",") == std::string::npos) return {};
  return {hierarchies / controllers, hierarchies / wanted};
}

}  // namespace

std::vector<path> GroupFolders(const path& root, const std::string& controller) {
  std::vector<path> folders;
  std::istringstream groups(ReadText(root / "proc/self/cgroup"));
  // Lines are "ID:CONTROLLERS:PATH".
  for (std::string line; std::getline(groups, line);) {
    std::istringstream fields(line);
    std::string id, controllers, own;
    if (!std::getline(fields, id, ':') || !std::getline(fields, controllers, ':')) continue;
    std::getline(fields, own);
    for (const path& mount_point : MountPoints(root / "sys/fs/cgroup", controllers, controller)) {
      // A container sees its own group as the mount point, and its path may be one outside of it.
      for (path group = path(own).relative_path();; group = group.parent_path()) {
        folders.push_back(mount_point / group);
        if (group.empty()) break;
      }
    }
  }
  return folders;
}

std::string ReadText(const path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace sap
