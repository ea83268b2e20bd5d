#include "server/rpc/unknown_methods.h"

#include "server/rpc/completion_tag.h"
#include "server/rpc/rpc_status.h"

namespace sap {

class UnknownMethods::Call {
 public:
  Call(UnknownMethods* owner, grpc::ServerCompletionQueue* queue)
      : owner_(owner), queue_(queue), stream_(&context_) {
    owner_->in_flight_calls_->BeginOnQueue();
    owner_->service_.RequestCall(&context_, &stream_, queue_, queue_, &accepted_tag_);
  }

 private:
  void Accepted(bool ok) {
    if (!ok) return Finished(false);  // shutting down
    new Call(owner_, queue_);
    const Absent& absent = owner_->absent_;
    const bool is_absent = absent.text != nullptr && context_.method().starts_with(absent.prefix);
    if (is_absent) MarkAsServed(&context_);
    stream_.Finish({grpc::StatusCode::UNIMPLEMENTED, is_absent ? absent.text : owner_->text_},
                   &finished_tag_);
  }

  void Finished(bool) {
    InFlightCalls* const in_flight_calls = owner_->in_flight_calls_;
    delete this;
    in_flight_calls->EndOnQueue();
  }

  UnknownMethods* const owner_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;

  MemberTag<Call> accepted_tag_{this, &Call::Accepted};
  MemberTag<Call> finished_tag_{this, &Call::Finished};
};

void UnknownMethods::Await(grpc::ServerCompletionQueue* queue, int count) {
  for (int i = 0; i < count; ++i) new Call(this, queue);
}

}  // namespace sap
