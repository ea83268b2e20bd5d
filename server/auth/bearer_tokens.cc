#include "server/auth/bearer_tokens.h"

#include <openssl/sha.h>

#include <algorithm>
#include <istream>
#include <sstream>

#include "server/auth/parse_entitlement.h"

namespace sap {
namespace {

constexpr std::string_view kScheme = "Bearer ";
constexpr size_t kLongestName = 64;
constexpr size_t kShortestToken = 16;
constexpr size_t kLongestToken = 1024;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string Sha256(std::string_view text) {
  std::string hash(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

bool IsControl(char c) { return (c >= 0 && c < ' ' && c != '\t' && c != '\r') || c == '\x7f'; }

// Why a file is not the whole of a text; empty: nothing is known against it.
std::string WhyNoText(const std::string& text) {
  if (text.starts_with(kByteOrderMark)) return "the file begins with a byte order mark";
  // The rest of the last line may be missing, and what is left of a token would be one.
  if (!text.empty() && !text.ends_with('\n')) {
    return "the last line does not end with a newline, so the file may be cut off";
  }
  return "";
}

}  // namespace

tl::expected<std::unique_ptr<BearerTokens>, std::string> BearerTokens::Open(
    const std::string& path, Log log, const Entitlements& defaults) {
  std::unique_ptr<BearerTokens> self(new BearerTokens(path, defaults));
  auto file = WatchedFiles::Open(
      {path}, "the tokens stay as they were",
      [tokens = self.get()](const WatchedFiles::Contents& files) { return tokens->Use(files[0]); },
      std::move(log));
  if (!file) return tl::unexpected(file.error());
  self->file_ = std::move(*file);
  return self;
}

std::optional<BearerTokens::Client> BearerTokens::Find(std::string_view header) const {
  if (!header.starts_with(kScheme)) return std::nullopt;
  const std::shared_ptr<const Table> clients = this->clients();
  const auto client = clients->find(Sha256(header.substr(kScheme.size())));
  if (client == clients->end()) return std::nullopt;
  return client->second;
}

tl::expected<void, std::string> BearerTokens::Use(const std::string& text) {
  auto clients = Parse(text);
  if (!clients) {
    return tl::unexpected("cannot use the tokens in " + path_ + ": " + clients.error());
  }
  {
    const std::lock_guard lock(mutex_);
    clients_ = std::make_shared<const Table>(std::move(*clients));
  }
  version_.fetch_add(1, std::memory_order_release);
  return {};
}

tl::expected<BearerTokens::Table, std::string> BearerTokens::Parse(const std::string& text) const {
  if (const std::string why = WhyNoText(text); !why.empty()) return tl::unexpected(why);
  Table clients;
  std::unordered_map<std::string, Entitlements> entitlements;  // by name
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto fail = [&](const std::string& why) {
      return tl::unexpected<std::string>("line " + std::to_string(number) + " " + why);
    };
    std::istringstream words(line);
    if (std::string first; !(words >> first) || first.starts_with('#')) continue;
    if (std::ranges::any_of(line, IsControl)) return fail("has a control character");
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
