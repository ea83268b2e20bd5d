#include "server/auth/authenticator.h"

#include <grpcpp/security/auth_context.h>

#include <string_view>

#include "server/auth/address_identity.h"

namespace sap {
namespace {

constexpr const char* kHeader = "authorization";

std::string_view View(const grpc::string_ref& text) { return {text.data(), text.size()}; }

std::string AccountName(const BearerTokens::Client& client) { return "token:" + client.name; }

std::string NameOfPeer(const grpc::ServerContext& context) {
  const auto security = context.auth_context();
  if (security != nullptr && security->IsPeerAuthenticated()) {
    for (const grpc::string_ref& name : security->GetPeerIdentity()) {
      return "certificate:" + std::string(View(name));
    }
  }
  return "address:" + AddressIdentity(context.peer());
}

}  // namespace

tl::expected<std::shared_ptr<ClientAccount>, ServiceError> Authenticator::Identify(
    const grpc::ServerContext& context) const {
  if (tokens_ == nullptr) return admission_->AccountOf(NameOfPeer(context));
  const auto client = FindToken(context);
  if (!client) {
    return tl::unexpected(
        ServiceError{ServiceCode::kUnauthenticated, "a valid bearer token is required", ""});
  }
  auto account = admission_->AccountOf(AccountName(*client));
  account->SetEntitlements(client->entitlements);
  return account;
}

bool Authenticator::IsStillValid(const grpc::ServerContext& context, ClientAccount* account,
                                 uint64_t* version) const {
  if (tokens_ == nullptr) return true;
  const uint64_t current = tokens_->version();
  if (*version == current) return true;
  *version = current;
  const auto client = FindToken(context);
  if (!client || AccountName(*client) != account->name()) return false;
  account->SetEntitlements(client->entitlements);
  return true;
}

std::optional<BearerTokens::Client> Authenticator::FindToken(
    const grpc::ServerContext& context) const {
  // Several, which HPACK makes cheap to send, would be as many look-ups.
  const auto& headers = context.client_metadata();
  if (headers.count(kHeader) != 1) return std::nullopt;
  return tokens_->Find(View(headers.find(kHeader)->second));
}

}  // namespace sap
