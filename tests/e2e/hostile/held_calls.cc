#include "tests/e2e/hostile/held_calls.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <chrono>

namespace sap::test::hostile {
namespace {

using SystemClock = std::chrono::system_clock;

constexpr size_t kSlice = 1 << 20;
constexpr std::chrono::seconds kPositioning{1};
constexpr std::chrono::milliseconds kGlance{10};

// Takes what completes until the queue, which is shut down, is empty.
void Empty(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
}

}  // namespace

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

grpc::ByteBuffer HugeString(int field, size_t bytes) {
  using google::protobuf::internal::WireFormatLite;
  std::string head;
  {
    google::protobuf::io::StringOutputStream stream(&head);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.WriteTag(WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
    out.WriteVarint32(static_cast<uint32_t>(bytes));
  }
  const grpc::Slice letters(std::string(kSlice, 'a'));
  std::vector<grpc::Slice> slices{grpc::Slice(head)};
  for (size_t rest = bytes; rest > 0; rest -= std::min(rest, kSlice)) {
    slices.push_back(rest >= kSlice ? letters : grpc::Slice(std::string(rest, 'a')));
  }
  return {slices.data(), slices.size()};
}

HeldCall::HeldCall(const Target& target, const std::shared_ptr<grpc::Channel>& channel,
                   const std::string& method, const grpc::ByteBuffer& message)
    : stub_(channel) {
  Authorize(target, &context_);
  call_ = stub_.PrepareCall(&context_, method, &queue_);
  call_->StartCall(nullptr);
  const auto until = SystemClock::now() + kPositioning;
  void* tag = nullptr;
  bool ok = false;
  if (queue_.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT || !ok) return;
  call_->WriteLast(message, {}, nullptr);
  queue_.AsyncNext(&tag, &ok, until);
}

HeldCall::~HeldCall() {
  context_.TryCancel();
  queue_.Shutdown();
  Empty(&queue_);
}

Load::Load(const Target& target, const std::string& method, const std::string& message,
           const LoadOptions& options)
    : target_(target),
      method_(method),
      message_(ToBuffer(message)),
      options_(options),
      stub_(OpenChannel(target)),
      calls_(static_cast<size_t>(options.outstanding)) {
  for (size_t i = 0; i < calls_.size(); ++i) Start(i);
  thread_ = std::thread([this] { Run(); });
}

Load::~Load() {
  over_ = true;
  thread_.join();
}

void Load::Await(int64_t calls) const {
  const auto until = SystemClock::now() + kPositioning;
  while (ended_ < calls && SystemClock::now() < until) std::this_thread::sleep_for(kGlance);
}

void Load::Start(size_t index) {
  calls_[index] = std::make_unique<Call>();
  Call& call = *calls_[index];
  Authorize(target_, &call.context);
  if (options_.high_priority) call.context.AddMetadata("sap-priority", "high");
  call.reader = stub_.PrepareUnaryCall(&call.context, method_, message_, &queue_);
  call.reader->StartCall();
  // A tag is never null, so it counts from 1.
  call.reader->Finish(&call.response, &call.status, reinterpret_cast<void*>(index + 1));
}

void Load::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (!over_) {
    if (queue_.AsyncNext(&tag, &ok, SystemClock::now() + kGlance) !=
        grpc::CompletionQueue::GOT_EVENT) {
      continue;
    }
    ++ended_;
    Start(reinterpret_cast<size_t>(tag) - 1);
  }
  for (const auto& call : calls_) call->context.TryCancel();
  queue_.Shutdown();
  Empty(&queue_);
}

}  // namespace sap::test::hostile
