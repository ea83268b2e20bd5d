#include "server/auth/authenticator.h"

#include <grpcpp/security/auth_context.h>

#include <string_view>

#include "server/auth/address_identity.h"

namespace sap {
namespace {

constexpr const char* kHeader = "authorization";

std::string_view View(const grpc::string_ref& text) { return {text.data(), text.size()}; }

}  // namespace

tl::expected<std::shared_ptr<ClientAccount>, ServiceError> Authenticator::Identify(
    const grpc::ServerContext& context) const {
  const auto name = NameOf(context);
  if (!name) return tl::unexpected(name.error());
  return admission_->AccountOf(*name);
}

tl::expected<std::string, ServiceError> Authenticator::NameOf(
    const grpc::ServerContext& context) const {
  if (tokens_ != nullptr) {
    const auto headers = context.client_metadata().equal_range(kHeader);
    for (auto header = headers.first; header != headers.second; ++header) {
      if (const auto name = tokens_->NameOf(View(header->second))) return "token:" + *name;
    }
    return tl::unexpected(
        ServiceError{ServiceCode::kUnauthenticated, "a valid bearer token is required", ""});
  }
  const auto security = context.auth_context();
  if (security != nullptr && security->IsPeerAuthenticated()) {
    for (const grpc::string_ref& name : security->GetPeerIdentity()) {
      return "certificate:" + std::string(View(name));
    }
  }
  return "address:" + AddressIdentity(context.peer());
}

}  // namespace sap
