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

}  // namespace sap
