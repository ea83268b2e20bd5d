// Tells ThreadSanitizer what gRPC orders. Debian's gRPC is not instrumented, so that its locks and
// atomics are not seen, and all that a call hands from one step to the next would look like a race.
//
// A step that has started an operation happens before the step that its tag brings, and a queue is
// shut down before its threads see that it is: these edges, which the API promises, are stated here,
// one per tag, and no others. Two steps that nothing orders but the threads that happen to take them
// remain a race.
//
// The functions below are defined in the test program, so that libgrpc and libgrpc++, which call
// them through the procedure linkage table, come here first. All operations begin and end in the
// first two, whichever function of the API or alarm they belong to.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

namespace {

template <typename Function>
Function* Next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// NOLINTBEGIN: the names and types are gRPC's.
bool grpc_cq_begin_op(grpc_completion_queue* queue, void* tag) {
  static auto* const next =
      Next(grpc_cq_begin_op, "_Z16grpc_cq_begin_opP21grpc_completion_queuePv");
  __tsan_release(tag);
  return next(queue, tag);
}

extern "C" {

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static auto* const next = Next(grpc_completion_queue_next, "grpc_completion_queue_next");
  const grpc_event event = next(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  if (event.type == GRPC_QUEUE_SHUTDOWN) __tsan_acquire(queue);
  return event;
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static auto* const next = Next(grpc_completion_queue_pluck, "grpc_completion_queue_pluck");
  const grpc_event event = next(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

void grpc_completion_queue_shutdown(grpc_completion_queue* queue) {
  static auto* const next = Next(grpc_completion_queue_shutdown, "grpc_completion_queue_shutdown");
  __tsan_release(queue);
  next(queue);
}

}  // extern "C"
// NOLINTEND
