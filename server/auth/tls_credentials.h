// Server credentials: plain text, or TLS with the server's certificate, and mutual TLS if a client
// CA is configured.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <chrono>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "server/server_config.h"

namespace sap {

// gRPC reloads the files within seconds of a change, so certificates can be rotated without a
// restart; existing connections continue. Replace certificate and key together, by renaming a
// directory or a symbolic link: between two separate replacements they do not match and new
// connections fail. Fails with an error message if the files are not usable now.
tl::expected<std::shared_ptr<grpc::ServerCredentials>, std::string> MakeServerCredentials(
    const TlsConfig& tls);

// Expiry time of the certificate in a file, or an error message.
tl::expected<std::chrono::system_clock::time_point, std::string> CertificateExpiry(
    const std::string& path);

}  // namespace sap
