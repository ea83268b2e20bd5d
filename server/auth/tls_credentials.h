// Server credentials: plain text, or TLS with the server's certificate, and mutual TLS if a client
// CA is configured.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "server/auth/watched_files.h"
#include "server/server_config.h"

namespace sap {

// Certificate, key and client CA of a server, checked together and replaced together within seconds
// of a change of their files; existing connections continue. A set that OpenSSL would not serve
// leaves the former one in use.
//
// gRPC 1.51 can be given new certificates only in files that it watches. It checks none of them: it
// aborts on an empty certificate, and with another invalid file it rejects all connections. So it
// watches files in memory that hold nothing but checked sets. Thread-safe.
class ServerCertificates {
 public:
  // Fails with an error message if the files are not usable now. Logs invalid changes, and
  // certificates that are not valid at the present time.
  static tl::expected<std::unique_ptr<ServerCertificates>, std::string> Open(const TlsConfig& tls,
                                                                             WatchedFiles::Log log);

  // For servers that end before this object.
  std::shared_ptr<grpc::ServerCredentials> Credentials() const;

  // Expiry time of the certificate in use.
  std::chrono::system_clock::time_point expiry() const { return expiry_.load(); }

  // Whether the present files are absent or invalid, so that an older set is in use.
  bool reload_failed() const { return files_->failed(); }

 private:
  // A file in memory under a path that stays the same; its contents are replaced in one step.
  class MemoryFile {
   public:
    ~MemoryFile();
    std::string path() const;  // once it has contents
    // Writes the next contents, which gRPC does not see before Replace.
    tl::expected<void, std::string> Prepare(const std::string& contents);
    void Replace();

   private:
    int current_{-1};
    int next_{-1};
    // gRPC reads the file for the key and for the certificate, and reads both again if the time of
    // the last modification, in seconds, is another one afterwards.
    time_t modified_s_{0};
  };

  ServerCertificates(const TlsConfig& tls, WatchedFiles::Log log)
      : tls_(tls), log_(std::move(log)) {}

  tl::expected<void, std::string> Use(const WatchedFiles::Contents& contents);

  const TlsConfig tls_;
  const WatchedFiles::Log log_;
  std::atomic<std::chrono::system_clock::time_point> expiry_{};
  MemoryFile identity_;  // key and certificates
  MemoryFile client_ca_;
  std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> provider_;
  std::unique_ptr<WatchedFiles> files_;
};

// Credentials with the certificates, or plain text if there are none (null).
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const ServerCertificates* certificates);

}  // namespace sap
