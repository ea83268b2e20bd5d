#include "server/auth/bearer_tokens.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "server/auth/parse_entitlement.h"

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

tl::expected<std::unique_ptr<BearerTokens>, std::string> BearerTokens::Open(
    const std::string& path, Log log, const Entitlements& defaults) {
  std::unique_ptr<BearerTokens> self(new BearerTokens(path, std::move(log), defaults));
  if (const auto read = self->Read(); !read) return tl::unexpected(read.error());
  self->checked_ = Clock::now();
  return self;
}

void BearerTokens::Refresh() {
  const std::lock_guard lock(mutex_);
  RefreshLocked();
}

void BearerTokens::RefreshLocked() {
  if (Clock::now() - checked_ <= kBetweenChecks) return;
  checked_ = Clock::now();
  struct stat now {};
  if (stat(path_.c_str(), &now) == 0 && SameFile(now, read_)) return;
  const auto read = Read();
  std::string error = read ? "" : read.error();
  if (!read && error != last_error_) log_(error + "; the tokens stay as they were");
  last_error_ = std::move(error);
}

std::optional<BearerTokens::Client> BearerTokens::Find(std::string_view header) {
  const std::lock_guard lock(mutex_);
  RefreshLocked();
  if (!header.starts_with(kScheme)) return std::nullopt;
  const std::string_view token = header.substr(kScheme.size());
  const Entry* match = nullptr;
  for (const Entry& entry : entries_) {
    if (EqualInConstantTime(entry.token, token)) match = &entry;
  }
  if (match == nullptr) return std::nullopt;
  return match->client;
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
  version_.fetch_add(1, std::memory_order_release);
  return {};
}

tl::expected<std::vector<BearerTokens::Entry>, std::string> BearerTokens::Parse(
    std::istream& file) const {
  std::vector<Entry> entries;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const auto fail = [&](const std::string& why) {
      return tl::unexpected<std::string>("line " + std::to_string(number) + " " + why);
    };
    std::istringstream words(line);
    if (std::string first; !(words >> first) || first.starts_with('#')) continue;
    words.seekg(0);
    auto entry = ParseLine(words);
    if (!entry) return fail(entry.error());
    if (const std::string conflict = Conflict(entries, *entry); !conflict.empty()) {
      return fail(conflict);
    }
    entries.push_back(std::move(*entry));
  }
  if (entries.empty()) return tl::unexpected<std::string>("the file contains no token");
  return entries;
}

tl::expected<BearerTokens::Entry, std::string> BearerTokens::ParseLine(std::istream& words) const {
  const auto fail = [](const char* why) { return tl::unexpected<std::string>(why); };
  Entry entry{{"", defaults_}, ""};
  if (!(words >> entry.client.name >> entry.token)) return fail("is not a name and a token");
  if (entry.client.name.size() > kLongestName) return fail("has a name of more than 64 characters");
  if (entry.token.size() < kShortestToken || entry.token.size() > kLongestToken) {
    return fail("has a token of less than 16 or more than 1024 characters");
  }
  for (std::string word; words >> word;) {
    const auto parsed = ParseEntitlement(word, &entry.client.entitlements);
    if (!parsed) return tl::unexpected(parsed.error());
  }
  return entry;
}

// Why the entry cannot stand with the others, or an empty string.
std::string BearerTokens::Conflict(const std::vector<Entry>& entries, const Entry& entry) {
  for (const Entry& other : entries) {
    if (other.token == entry.token) return "has the token of another line";
    if (other.client.name == entry.client.name &&
        other.client.entitlements != entry.client.entitlements) {
      return "has other limits than an earlier line of the same name";
    }
  }
  return "";
}

}  // namespace sap
