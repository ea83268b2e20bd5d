// Tells ThreadSanitizer what gRPC orders. Debian's gRPC is not instrumented: ThreadSanitizer does
// not see its locks and atomics, and would report whatever a call hands from one step to the next.
//
// The API promises two things: starting an operation happens before its tag comes out of the
// queue, and shutting a queue down happens before its threads are told so. Only these edges are
// stated here, each for one tag or queue. Steps that nothing else orders remain a race
// (tests/server/rpc/race_probe.cc).
//
// The functions below are defined in the test program, and libgrpc and libgrpc++ call them through
// the procedure linkage table, so these are called first. Every operation, alarms included, begins
// in grpc_cq_begin_op.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

namespace {

template <typename Function>
Function* Next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

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
