#include "server/worlds/find_library.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

namespace sap {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libmujoco.so";

void AddLibraryPath(const std::string& library_path, std::vector<fs::path>* folders) {
  std::istringstream text(library_path);
  for (std::string folder; std::getline(text, folder, ':');) {
    if (!folder.empty()) folders->emplace_back(folder);
  }
}

// The folders of ld.so.conf.d, whose files the one of ld.so.conf includes.
void AddConfigured(const fs::path& root, std::vector<fs::path>* folders) {
  std::vector<fs::path> files{root / "etc/ld.so.conf"};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "etc/ld.so.conf.d", error)) {
    if (entry.path().extension() == ".conf") files.push_back(entry.path());
  }
  std::sort(files.begin() + 1, files.end());
  for (const fs::path& file : files) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('/')) folders->push_back(root / line.substr(1));
    }
  }
}

}  // namespace

std::string FindMujoco(const std::string& library_path, const fs::path& root) {
  std::vector<fs::path> folders;
  AddLibraryPath(library_path, &folders);
  AddConfigured(root, &folders);
  for (const char* const usual : {"usr/local/lib", "lib64", "usr/lib64", "lib", "usr/lib"}) {
    folders.push_back(root / usual);
  }
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path file = folder / kName;
    if (fs::is_regular_file(file, error)) return fs::absolute(file, error).string();
  }
  return "";
}

}  // namespace sap
