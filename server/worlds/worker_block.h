// The memory that server and worker share.
//
//   head | files of a model, or arrays of a slice
//
// The server writes requests and decides where everything is; it takes from the block only what its
// own numbers bound.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "server/worlds/world_slice.h"

namespace sap {

// Descriptors of the worker.
inline constexpr int kWorkerSocket = 3;    // a byte from each side: a request, an answer
inline constexpr int kWorkerBlock = 4;     // the block
inline constexpr int kWorkerLifeline = 5;  // a pipe whose other end is closed when the server ends

enum class WorkerRequest : int32_t { kNone = 0, kLoad = 1, kAdvance = 2 };

enum class WorkerVerdict : int32_t {
  kDone = 0,
  kUnknownModel = 1,  // kAdvance: the model is not loaded any more
  kRefused = 2,       // the model, or the law for it
  kMemory = 3,        // the model takes too much
  kStopped = 4,
  kFailed = 5,  // the start
};

// Where an array is, in bytes from the beginning of the block; 0: there is none.
using BlockOffset = int64_t;

struct BlockFile {
  BlockOffset name;
  int64_t name_bytes;
  BlockOffset content;
  int64_t content_bytes;
};

// Arrays as those of WorldSlice, without gaps between worlds. Answered rows of a world have room
// for one row more.
struct BlockSlice {
  WorldSettings settings;
  ModelSizes sizes;
  double max_s;
  int64_t worlds, first_step, steps, all_steps;
  BlockOffset states, controls, answered_states, answered_sensors, certificates, checkpoints;
  BlockOffset progress;
};

// Rows of answered steps of a world in a slice.
inline int64_t RowsOf(const BlockSlice& slice) {
  const auto until = [&](int64_t steps) {
    return AnsweredSteps(steps, slice.settings.every, slice.all_steps);
  };
  return until(slice.first_step + slice.steps) - until(slice.first_step);
}

// Numbers of a control.
inline int64_t ControlSize(const BlockSlice& slice) {
  int64_t size = 0;
  for (size_t i = 1; i < slice.sizes.control.size(); ++i) {
    if ((slice.settings.control_components >> i & 1) != 0) size += slice.sizes.control[i];
  }
  return size;
}

struct WorkerAnswer {
  WorkerVerdict verdict;
  bool is_last;            // the process answers nothing more
  int32_t mujoco_version;  // of a greeting, as the next two
  bool is_jailed;
  int64_t address_space;  // before there are models [bytes]
  ModelSizes sizes;       // of kLoad
  std::array<char, 1024> message;
};

struct BlockHead {
  // Written by the server.
  int64_t bytes;  // of the block
  WorkerRequest request;
  bool is_binary;
  std::array<uint8_t, 32> model;
  int64_t files;
  BlockOffset file;  // BlockFile [files]
  BlockSlice slice;
  volatile int32_t stop;  // not 0: the answer is not needed

  // Written by the worker.
  std::atomic<int64_t> position;  // steps * world + step, of the step that it takes
  WorkerAnswer answer;
};
static_assert(std::is_standard_layout_v<BlockHead> && std::atomic<int64_t>::is_always_lock_free);

inline constexpr int64_t kHeadBytes = 8192;
static_assert(sizeof(BlockHead) <= kHeadBytes);

template <typename Type>
Type* At(BlockHead* head, BlockOffset offset) {
  if (offset == 0) return nullptr;
  return reinterpret_cast<Type*>(reinterpret_cast<std::byte*>(head) + offset);
}

}  // namespace sap
