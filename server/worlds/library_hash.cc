#include "server/worlds/library_hash.h"

#include <openssl/evp.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace sap {
namespace {

using Hash = std::array<uint8_t, 32>;
// Device, number, size, and times of the last changes of content and of attributes.
using Identity = std::tuple<uint64_t, uint64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;

std::string Error(const std::string& path) {
  return path + " cannot be read: " + std::strerror(errno);
}

tl::expected<Hash, std::string> Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return tl::unexpected(Error(path));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  std::vector<char> part(size_t{1} << 20);
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
    EVP_DigestUpdate(context.get(), part.data(), static_cast<size_t>(file.gcount()));
  }
  Hash hash;
  EVP_DigestFinal_ex(context.get(), hash.data(), nullptr);
  return hash;
}

}  // namespace

tl::expected<Hash, std::string> HashOfLibrary(const std::string& path) {
  struct stat found;
  if (stat(path.c_str(), &found) != 0) return tl::unexpected(Error(path));
  const Identity identity = {found.st_dev,         found.st_ino,          found.st_size,
                             found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_ctim.tv_sec,
                             found.st_ctim.tv_nsec};
  static std::mutex mutex;
  static std::map<Identity, Hash> known;
  const std::scoped_lock lock(mutex);
  if (const auto entry = known.find(identity); entry != known.end()) return entry->second;
  auto hash = Read(path);
  if (hash) known[identity] = *hash;
  return hash;
}

}  // namespace sap
