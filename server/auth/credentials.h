// What the server shows to clients and asks of them when a connection is made: nothing, or TLS with
// its certificate, and theirs if there is an authority to check them by.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <chrono>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "server/server_config.h"

namespace sap {

// The files are read again within seconds of a change, so that certificates are rotated without a
// restart; connections that are there go on. Replace certificate and key by renaming a directory or
// a symbolic link, since in between the two do not fit and new connections are refused. Fails with
// a sentence for the operator if they cannot be used now.
tl::expected<std::shared_ptr<grpc::ServerCredentials>, std::string> MakeServerCredentials(
    const TlsConfig& tls);

// When the certificate in a file expires, or why that cannot be told.
tl::expected<std::chrono::system_clock::time_point, std::string> CertificateExpiry(
    const std::string& path);

}  // namespace sap
