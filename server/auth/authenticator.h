// Who calls, and whether they may: a client is the name of its bearer token, else that of its
// certificate, else the address it calls from.
#pragma once

#include <grpcpp/server_context.h>

#include <memory>
#include <string>

#include "server/auth/bearer_tokens.h"
#include "server/scheduling/admission.h"
#include "server/service_error.h"

namespace sap {

// Thread-safe.
class Authenticator {
 public:
  // Without tokens (null), everyone may call that got a connection. Both must outlive this.
  Authenticator(Admission* admission, BearerTokens* tokens)
      : admission_(admission), tokens_(tokens) {}

  // The account of whoever made the call; UNAUTHENTICATED if the call brings no token that is known
  // where one is needed.
  tl::expected<std::shared_ptr<ClientAccount>, ServiceError> Identify(
      const grpc::ServerContext& context) const;

 private:
  tl::expected<std::string, ServiceError> NameOf(const grpc::ServerContext& context) const;

  Admission* const admission_;
  BearerTokens* const tokens_;
};

}  // namespace sap
