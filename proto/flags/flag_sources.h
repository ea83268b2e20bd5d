// Flags from the environment and from a file, for which CLI11 has another order and other messages.
//
// The command line counts first, then the environment, then the file.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "proto/flags/usage_error.h"

namespace sap {

// The variable of a flag: SAP_MAX_TREES of --max-trees.
inline std::string VariableOf(const std::string& flag) {
  std::string name = "SAP_" + flag;
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

// The flags that have a variable and a line in the file: all but those about the program itself.
inline std::vector<std::string> FlagsWithValues(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_single_name();
    if (name != "help" && name != "version" && name != "config") names.push_back(name);
  }
  return names;
}

// The arguments of a program, followed by the flags that its environment has and they have not. An
// empty variable counts as none. The texts that are added live in *storage.
inline std::vector<const char*> WithEnvironment(const CLI::App& app, int argc,
                                                const char* const* argv,
                                                const char* const* environment,
                                                std::vector<std::string>* storage) {
  std::vector<const char*> arguments(argv, argv + argc);
  const auto is_given = [&](const std::string& flag) {
    return std::ranges::any_of(arguments, [&](std::string_view argument) {
      return argument == flag || argument.starts_with(flag + "=");
    });
  };
  for (const std::string& name : FlagsWithValues(app)) {
    const std::string variable = VariableOf(name) + "=";
    for (const char* const* entry = environment; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      if (!text.starts_with(variable) || text.size() == variable.size()) continue;
      if (is_given("--" + name)) continue;
      storage->push_back("--" + name + "=" + std::string(text.substr(variable.size())));
    }
  }
  for (const std::string& argument : *storage) arguments.push_back(argument.c_str());
  return arguments;
}

// The format of the file: TOML without tables, a flag in each line, as in `max-trees = 100`.
class FlagFile : public CLI::ConfigTOML {
 public:
  // `app` must outlive this object.
  explicit FlagFile(const CLI::App* app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> items = CLI::ConfigTOML::from_config(input);
    const std::vector<std::string> flags = FlagsWithValues(*app_);
    for (const CLI::ConfigItem& item : items) {
      if (!item.parents.empty()) {
        throw CLI::ConfigError("--config: [" + item.parents.front() +
                               "] begins a table; a flag in each line is needed");
      }
      const std::string& name = item.name;
      if (std::ranges::find(flags, name) == flags.end()) {
        throw CLI::ConfigError("--config: '" + name + "' is not a flag" + DidYouMean(name, flags));
      }
      if (item.inputs.size() != 1) {
        throw CLI::ConfigError("--config: '" + name + "' needs one value, in quotes if it has " +
                               "spaces or commas");
      }
    }
    return items;
  }

 private:
  const CLI::App* app_;
};

}  // namespace sap
