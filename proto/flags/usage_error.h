// How programs end after --help or an error of the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace sap {

// Characters to insert, delete or replace (Levenshtein).
inline int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);  // distances of the beginnings of b to that of a
  std::iota(row.begin(), row.end(), 0);
  for (const char of_a : a) {
    int diagonal = row[0]++;
    for (size_t j = 1; j < row.size(); ++j) {
      const int replaced = diagonal + (of_a != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, diagonal + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// "; did you mean 'NAME'?" with the name that is nearest to a word; empty: none is near.
inline std::string DidYouMean(std::string_view word, const std::vector<std::string>& names) {
  std::string nearest;
  int least = 3;  // more is another word
  for (const std::string& name : names) {
    const int distance = EditDistance(word, name);
    if (distance < least) least = distance, nearest = name;
  }
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

// Names the first argument that the program does not know, and the nearest command or flag; empty:
// it knows all. CLI11 names no word in place of a subcommand, and suggests nothing.
inline std::string UnknownArgument(const CLI::App& app) {
  std::vector<std::string> flags;
  const CLI::App* parsed = &app;  // what has the unknown argument, or the last subcommand
  while (true) {
    for (const CLI::Option* option : parsed->get_options()) {
      for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
    if (!parsed->remaining().empty() || parsed->get_subcommands().empty()) break;
    parsed = parsed->get_subcommands().front();
  }
  if (parsed->remaining().empty()) return "";
  std::string word = parsed->remaining().front();
  const bool is_flag = word.starts_with('-');
  if (is_flag) word = word.substr(0, word.find('='));
  std::vector<std::string> commands;
  for (const CLI::App* command : parsed->get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
  }
  if (!is_flag && commands.empty()) return "'" + word + "' is one argument too many";
  return "'" + word + "' is not a " + (is_flag ? "flag" : "command") +
         DidYouMean(word, is_flag ? flags : commands);
}

// Prints the help or the error with which parsing has ended. Returns the exit code: 0 after help,
// else `usage_error`, where CLI11 has numbers of its own.
inline int ExitAfter(const CLI::App& app, const CLI::ParseError& error, int usage_error) {
  if (error.get_exit_code() == 0) return app.exit(error);
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const bool may_be_unknown =
      kind == CLI::ExitCodes::ExtrasError || kind == CLI::ExitCodes::RequiredError;
  const std::string unknown = may_be_unknown ? UnknownArgument(app) : "";
  app.exit(unknown.empty() ? error : CLI::ParseError(unknown, error.get_exit_code()));
  return usage_error;
}

}  // namespace sap
