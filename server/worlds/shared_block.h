// Memory that the server shares with a worker.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "server/worlds/worker_block.h"

namespace sap {

// Closed by the destructor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void Close() {
    if (number_ >= 0) close(std::exchange(number_, -1));
  }

 private:
  int number_{-1};
};

// Grows with what is put into it. A worker cannot make it smaller.
class SharedBlock {
 public:
  SharedBlock() = default;
  ~SharedBlock();
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  // An error: the reason.
  std::string Open();

  int file() const { return file_.get(); }
  BlockHead* head() const { return head_; }
  int64_t bytes() const { return bytes_; }

  // Makes the block at least that large. False: there is no memory.
  bool Reserve(int64_t bytes);
  // Gives the memory of a large request back.
  void Release();

 private:
  FileDescriptor file_;
  BlockHead* head_{nullptr};
  int64_t bytes_{0};
};

// Places of arrays in a block, one behind the other.
class ArrayPlaces {
 public:
  // Room for `count` elements; 0: it is not wanted.
  template <typename Type>
  BlockOffset Add(int64_t count, bool is_wanted = true) {
    if (!is_wanted || count == 0) return 0;
    constexpr int64_t kAlignment = 64;
    const BlockOffset place = end_;
    end_ += (count * static_cast<int64_t>(sizeof(Type)) + kAlignment - 1) / kAlignment * kAlignment;
    return place;
  }
  int64_t end() const { return end_; }

 private:
  int64_t end_{kHeadBytes};
};

}  // namespace sap
