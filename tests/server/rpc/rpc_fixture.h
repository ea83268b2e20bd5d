// A server that a test configures and starts, with its metrics and a stub.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/grpc_server.h"

namespace sap::test {

class RpcFixture : public testing::Test {
 protected:
  RpcFixture() {
    config_.listen = "127.0.0.1:0";
    channel_arguments_.SetMaxReceiveMessageSize(-1);
  }

  // In place of the server before, if any.
  void Start() {
    server_.reset();
    handler_ = std::make_unique<RequestHandler>(config_, nullptr, &metrics_);
    auto server =
        GrpcServer::Start(config_, handler_.get(), nullptr, CallObserver(&metrics_, nullptr));
    ASSERT_TRUE(server.has_value()) << server.error();
    server_ = std::move(*server);
    channel_ = grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(),
                                         channel_arguments_);
    stub_ = v1::SolverService::NewStub(channel_);
  }

  ServerConfig config_;
  grpc::ChannelArguments channel_arguments_;
  Metrics metrics_;
  std::unique_ptr<RequestHandler> handler_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::SolverService::Stub> stub_;
};

}  // namespace sap::test
