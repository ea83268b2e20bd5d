// Calls by gRPC's own client: some that are held open, and loads that never pause.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/hostile/target.h"

namespace sap::test::hostile {

grpc::ByteBuffer ToBuffer(const std::string& bytes);

// A message with one string of `bytes` bytes, all of which share a megabyte here.
grpc::ByteBuffer HugeString(int field, size_t bytes);

// A call with one message, whose answer is not read, until it is destroyed.
class HeldCall {
 public:
  // Returns when the message is sent or the call has ended, after some seconds at most.
  HeldCall(const Target& target, const std::shared_ptr<grpc::Channel>& channel,
           const std::string& method, const grpc::ByteBuffer& message);
  ~HeldCall();
  HeldCall(const HeldCall&) = delete;
  HeldCall& operator=(const HeldCall&) = delete;

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

struct LoadOptions {
  int outstanding{1};
  bool high_priority{false};
};

// Unary calls on a connection of their own: each that ends is followed by the next.
class Load {
 public:
  Load(const Target& target, const std::string& method, const std::string& message,
       const LoadOptions& options);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Waits until so many calls have ended, with whatever status; some seconds at most.
  void Await(int64_t calls) const;

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    grpc::Status status;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  };

  void Start(size_t index);
  void Run();

  const Target target_;
  const std::string method_;
  const grpc::ByteBuffer message_;
  const LoadOptions options_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::atomic<int64_t> ended_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace sap::test::hostile
