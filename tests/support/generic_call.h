// A unary call by the name of its method with bytes of our choice, which no generated stub makes.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace sap::test {

grpc::Status CallByName(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                        const std::string& bytes);

}  // namespace sap::test
