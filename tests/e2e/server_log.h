// Reads the log file of a server.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/await.h"

namespace sap::test {

// Its lines, each an object of JSON.
inline std::vector<nlohmann::json> ReadLog(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

// Waits for a line whose message contains the text.
inline bool AwaitMessage(const std::filesystem::path& log, const std::string& text) {
  return Await([&] {
    for (const nlohmann::json& line : ReadLog(log)) {
      if (line.value("message", "").find(text) != std::string::npos) return true;
    }
    return false;
  });
}

// Waits for a message with "NAME on ADDRESS" and returns the address.
inline std::string AddressIn(const std::filesystem::path& log, const std::string& name) {
  std::string address;
  Await([&] {
    for (const nlohmann::json& line : ReadLog(log)) {
      const std::string message = line.value("message", "");
      if (message.starts_with(name + " on ")) address = message.substr(name.size() + 4);
    }
    return !address.empty();
  });
  return address;
}

}  // namespace sap::test
