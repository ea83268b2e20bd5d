#include "server/auth/tls_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

namespace sap {
namespace {

constexpr int kRefresh_s = 2;

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using File = std::unique_ptr<std::FILE, decltype(&std::fclose)>;

tl::expected<File, std::string> Open(const std::string& path) {
  errno = 0;
  File file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (file == nullptr) return tl::unexpected("cannot read " + path + ": " + std::strerror(errno));
  return file;
}

tl::expected<Certificate, std::string> ReadCertificate(const std::string& path) {
  const auto file = Open(path);
  if (!file) return tl::unexpected(file.error());
  Certificate certificate(PEM_read_X509(file->get(), nullptr, nullptr, nullptr), &X509_free);
  if (certificate == nullptr) return tl::unexpected(path + " contains no certificate (PEM)");
  return certificate;
}

// Makes OpenSSL fail on an encrypted key instead of prompting for a pass phrase.
int NoPassPhrase(char*, int, int, void*) { return 0; }

tl::expected<Key, std::string> ReadKey(const std::string& path) {
  const auto file = Open(path);
  if (!file) return tl::unexpected(file.error());
  Key key(PEM_read_PrivateKey(file->get(), nullptr, &NoPassPhrase, nullptr), &EVP_PKEY_free);
  if (key == nullptr) return tl::unexpected(path + " contains no unencrypted private key (PEM)");
  return key;
}

tl::expected<void, std::string> Check(const TlsConfig& tls) {
  const auto certificate = ReadCertificate(tls.certificate);
  if (!certificate) return tl::unexpected(certificate.error());
  const auto key = ReadKey(tls.key);
  if (!key) return tl::unexpected(key.error());
  if (X509_check_private_key(certificate->get(), key->get()) != 1) {
    return tl::unexpected("the key in " + tls.key + " does not belong to the certificate in " +
                          tls.certificate);
  }
  if (tls.client_ca.empty()) return {};
  const auto authority = ReadCertificate(tls.client_ca);
  if (!authority) return tl::unexpected(authority.error());
  return {};
}

}  // namespace

tl::expected<std::shared_ptr<grpc::ServerCredentials>, std::string> MakeServerCredentials(
    const TlsConfig& tls) {
  if (tls.certificate.empty()) return grpc::InsecureServerCredentials();
  if (const auto checked = Check(tls); !checked) return tl::unexpected(checked.error());
  using namespace grpc::experimental;
  const auto provider = std::make_shared<FileWatcherCertificateProvider>(tls.key, tls.certificate,
                                                                         tls.client_ca, kRefresh_s);
  TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  if (!tls.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return TlsServerCredentials(options);
}

tl::expected<std::chrono::system_clock::time_point, std::string> CertificateExpiry(
    const std::string& path) {
  const auto certificate = ReadCertificate(path);
  if (!certificate) return tl::unexpected(certificate.error());
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate->get()), &end) != 1) {
    return tl::unexpected(path + " has no valid expiry time");
  }
  return std::chrono::system_clock::from_time_t(timegm(&end));
}

}  // namespace sap
