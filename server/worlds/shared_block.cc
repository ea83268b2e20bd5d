#include "server/worlds/shared_block.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sap {
namespace {

constexpr int64_t kLeastBytes = int64_t{1} << 20;
constexpr int64_t kKeptBytes = int64_t{8} << 20;

}  // namespace

SharedBlock::~SharedBlock() {
  if (head_ != nullptr) munmap(head_, static_cast<size_t>(bytes_));
}

std::string SharedBlock::Open() {
  file_ = FileDescriptor(memfd_create("sap-worlds", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file_.is_open() || !Reserve(kLeastBytes) ||
      fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    return std::string("no memory to share with a worker: ") + std::strerror(errno);
  }
  return "";
}

bool SharedBlock::Reserve(int64_t bytes) {
  if (bytes <= bytes_) return true;
  const int64_t larger = std::max({bytes, kLeastBytes, bytes_ + bytes_ / 2}) + kHeadBytes - 1;
  const int64_t size = larger / kHeadBytes * kHeadBytes;
  if (ftruncate(file_.get(), size) != 0) return false;
  void* const mapped =
      mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) return false;
  if (head_ != nullptr) munmap(head_, static_cast<size_t>(bytes_));
  head_ = static_cast<BlockHead*>(mapped);
  bytes_ = size;
  head_->bytes = size;
  return true;
}

void SharedBlock::Release() {
  if (bytes_ <= kKeptBytes) return;
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kHeadBytes,
            bytes_ - kHeadBytes);
}

}  // namespace sap
