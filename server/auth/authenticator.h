// Identifies the client of a call: by the name of its bearer token, else by its certificate, else
// by its address.
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/auth/bearer_tokens.h"
#include "server/scheduling/admission.h"
#include "server/service_error.h"

namespace sap {

// Thread-safe.
class Authenticator {
 public:
  // Without tokens (null) every connected client may call. Both must outlive this object.
  Authenticator(Admission* admission, BearerTokens* tokens)
      : admission_(admission), tokens_(tokens) {}

  // The account of the calling client. UNAUTHENTICATED if tokens are required and the call carries
  // no valid one.
  tl::expected<std::shared_ptr<ClientAccount>, ServiceError> Identify(
      const grpc::ServerContext& context) const;

  // Whether tokens are required and the call does not carry exactly one, which is valid.
  bool IsStranger(const grpc::ServerContext& context) const {
    return tokens_ != nullptr && !FindToken(context);
  }

  // Whether the token of an identified call that lasts is still accepted; also applies changed
  // entitlements to the account. `version` is that of the tokens at the previous check, at first 0:
  // while it is the current one, this is a comparison.
  bool IsStillValid(const grpc::ServerContext& context, ClientAccount* account,
                    uint64_t* version) const;

 private:
  std::optional<BearerTokens::Client> FindToken(const grpc::ServerContext& context) const;

  Admission* const admission_;
  BearerTokens* const tokens_;
};

}  // namespace sap
