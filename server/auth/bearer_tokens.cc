#include "server/auth/bearer_tokens.h"

#include <openssl/sha.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>

#include "server/auth/parse_entitlement.h"

namespace sap {
namespace {

constexpr std::string_view kScheme = "Bearer ";
constexpr size_t kLongestName = 64;
constexpr size_t kShortestToken = 16;
constexpr size_t kLongestToken = 1024;
constexpr std::chrono::seconds kBetweenChecks{1};

std::string Sha256(std::string_view text) {
  std::string hash(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
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
  self->refresher_ = std::jthread([tokens = self.get()](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    const auto stopped = [&stop] { return stop.stop_requested(); };
    while (!wake.wait_for(lock, stop, kBetweenChecks, stopped)) tokens->Refresh();
  });
  return self;
}

void BearerTokens::Refresh() {
  struct stat now {};
  if (stat(path_.c_str(), &now) == 0 && SameFile(now, read_)) return;
  const auto read = Read();
  std::string error = read ? "" : read.error();
  if (!read && error != last_error_) log_(error + "; the tokens stay as they were");
  last_error_ = std::move(error);
}

std::optional<BearerTokens::Client> BearerTokens::Find(std::string_view header) const {
  if (!header.starts_with(kScheme)) return std::nullopt;
  const std::shared_ptr<const Table> clients = this->clients();
  const auto client = clients->find(Sha256(header.substr(kScheme.size())));
  if (client == clients->end()) return std::nullopt;
  return client->second;
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
  auto clients = Parse(file);
  if (file.bad()) return fail(std::string(std::strerror(errno)));
  if (!clients) return fail(clients.error());
  {
    const std::lock_guard lock(mutex_);
    clients_ = std::make_shared<const Table>(std::move(*clients));
  }
  read_ = now;
  version_.fetch_add(1, std::memory_order_release);
  return {};
}

tl::expected<BearerTokens::Table, std::string> BearerTokens::Parse(std::istream& file) const {
  Table clients;
  std::unordered_map<std::string, Entitlements> entitlements;  // by name
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
    const Client& client = entry->second;
    const auto named = entitlements.emplace(client.name, client.entitlements).first;
    if (named->second != client.entitlements) {
      return fail("has other limits than an earlier line of the same name");
    }
    if (!clients.insert(std::move(*entry)).second) return fail("has the token of another line");
  }
  if (clients.empty()) return tl::unexpected<std::string>("the file contains no token");
  return clients;
}

tl::expected<BearerTokens::Table::value_type, std::string> BearerTokens::ParseLine(
    std::istream& words) const {
  const auto fail = [](const char* why) { return tl::unexpected<std::string>(why); };
  Client client{"", defaults_};
  std::string token;
  if (!(words >> client.name >> token)) return fail("is not a name and a token");
  if (client.name.size() > kLongestName) return fail("has a name of more than 64 characters");
  if (token.size() < kShortestToken || token.size() > kLongestToken) {
    return fail("has a token of less than 16 or more than 1024 characters");
  }
  for (std::string word; words >> word;) {
    const auto parsed = ParseEntitlement(word, &client.entitlements);
    if (!parsed) return tl::unexpected(parsed.error());
  }
  return Table::value_type(Sha256(token), std::move(client));
}

}  // namespace sap
