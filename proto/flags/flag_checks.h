// Checks of the command-line flags of sap-server and sap-client, in place of those of CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace sap {

// Accepts the names and replaces them by their values. CLI11's own CheckedTransformer prints values
// of enums as control characters, in help texts and errors.
template <typename Value>
CLI::Validator OneOf(const std::map<std::string, Value>& values) {
  std::string names;
  for (const auto& [name, value] : values) names += (names.empty() ? "" : ", ") + name;
  const auto replace = [values, names](std::string& text) {
    const auto found = values.find(text);
    if (found == values.end()) return "'" + text + "' is not one of " + names;
    text = std::to_string(static_cast<int>(found->second));
    return std::string();
  };
  return CLI::Validator(replace, "{" + names + "}");
}

// Numbers from `low` to `high`. CLI11's own ranges take NaN.
inline CLI::Validator Between(double low, double high) {
  const std::string range = CLI::Range(low, high).get_description();
  const auto check = [low, high, range](const std::string& text) {
    double value = 0;
    const bool within = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
    return within ? std::string() : "'" + text + "' is not " + range;
  };
  return CLI::Validator(check, range);
}

// Accepts what a server can listen on, by its syntax: HOST:PORT.
inline CLI::Validator ListenHostPort() {
  const auto check = [](const std::string& address) {
    const size_t colon = address.rfind(':');
    const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
    const bool numeric = !port.empty() && port.size() <= 5 &&
                         port.find_first_not_of("0123456789") == std::string::npos;
    const bool valid =
        numeric && std::stoi(port) <= 65535 && colon > 0 && !address.starts_with("unix:");
    return valid ? std::string() : "'" + address + "' is not an address; expected HOST:PORT";
  };
  return CLI::Validator(check, "HOST:PORT");
}

// The same, or unix:PATH.
inline CLI::Validator ListenAddress() {
  const auto check = [](std::string& address) {
    if (address.starts_with("unix:") && address.size() > 5) return std::string();
    const std::string error = ListenHostPort()(address);
    return error.empty() ? error : error + " or unix:PATH";
  };
  return CLI::Validator(check, "ADDR");
}

}  // namespace sap
