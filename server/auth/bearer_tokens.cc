#include "server/auth/bearer_tokens.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace sap {
namespace {

constexpr std::string_view kScheme = "Bearer ";
constexpr size_t kLongestName = 64;
constexpr size_t kShortestToken = 16;
constexpr size_t kLongestToken = 1024;
constexpr std::chrono::seconds kBetweenChecks{1};

// Constant-time comparison: the time does not depend on the position of a difference.
bool EqualInConstantTime(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

tl::expected<std::unique_ptr<BearerTokens>, std::string> BearerTokens::Open(const std::string& path,
                                                                            Log log) {
  std::unique_ptr<BearerTokens> self(new BearerTokens(path, std::move(log)));
  if (const auto read = self->Read(); !read) return tl::unexpected(read.error());
  self->checked_ = Clock::now();
  return self;
}

std::optional<std::string> BearerTokens::NameOf(std::string_view header) {
  const std::lock_guard lock(mutex_);
  if (Clock::now() - checked_ > kBetweenChecks) {
    checked_ = Clock::now();
    struct stat now {};
    if (stat(path_.c_str(), &now) != 0 || !SameFile(now, read_)) {
      if (const auto read = Read(); !read) log_(read.error() + "; the tokens stay as they were");
    }
  }
  if (!header.starts_with(kScheme)) return std::nullopt;
  const std::string_view token = header.substr(kScheme.size());
  const Entry* match = nullptr;
  for (const Entry& entry : entries_) {
    if (EqualInConstantTime(entry.token, token)) match = &entry;
  }
  if (match == nullptr) return std::nullopt;
  return match->name;
}

tl::expected<void, std::string> BearerTokens::Read() {
  const auto fail = [&](const std::string& why) {
    return tl::unexpected<std::string>("cannot use the tokens in " + path_ + ": " + why);
  };
  struct stat now {};
  errno = 0;
  if (stat(path_.c_str(), &now) != 0) return fail(std::string(std::strerror(errno)));
  std::ifstream file(path_);
  if (!file) return fail(std::string(std::strerror(errno)));
  auto entries = Parse(file);
  if (!entries) return fail(entries.error());
  entries_ = std::move(*entries);
  read_ = now;
  return {};
}

tl::expected<std::vector<BearerTokens::Entry>, std::string> BearerTokens::Parse(
    std::istream& file) {
  std::vector<Entry> entries;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const auto fail = [&](const std::string& why) {
      return tl::unexpected<std::string>("line " + std::to_string(number) + " " + why);
    };
    std::istringstream words(line);
    Entry entry;
    if (!(words >> entry.name) || entry.name.starts_with('#')) continue;
    std::string more;
    if (!(words >> entry.token) || words >> more) return fail("is not a name and a token");
    if (entry.name.size() > kLongestName) return fail("has a name of more than 64 characters");
    if (entry.token.size() < kShortestToken || entry.token.size() > kLongestToken) {
      return fail("has a token of less than 16 or more than 1024 characters");
    }
    if (std::ranges::any_of(entries, [&](const Entry& e) { return e.token == entry.token; })) {
      return fail("has the token of another line");
    }
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return tl::unexpected<std::string>("the file contains no token");
  return entries;
}

}  // namespace sap
