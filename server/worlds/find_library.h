// The library of MuJoCo of a machine, where the flag says `auto`.
#pragma once

#include <filesystem>
#include <string>

namespace sap {

// Path of the first libmujoco.so in the folders of `library_path`, which are separated by colons,
// in those that ld.so.conf names, and in the usual ones; empty: there is none. This process does
// not load it, so it does not ask the loader.
std::string FindMujoco(const std::string& library_path, const std::filesystem::path& root = "/");

}  // namespace sap
