// A unary call by method name with arbitrary request bytes, which generated stubs cannot send.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace sap::test {

grpc::Status CallByName(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                        const std::string& bytes);

}  // namespace sap::test
