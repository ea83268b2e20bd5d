#include "server/auth/tls_credentials.h"

#include <fcntl.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

namespace sap {
namespace {

constexpr int kRefresh_s = 1;

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<&BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<&X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<&EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<&SSL_CTX_free>>;
using TimePoint = std::chrono::system_clock::time_point;

Bio BioOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Whether the last line is no part of the line that begins or ends a block of PEM.
bool EndsWithABlock(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  const std::string_view last = text.substr(text.find_last_of('\n') + 1);
  return !last.starts_with('-') || (last.starts_with("-----END ") && last.ends_with("-----"));
}

// All certificates of a text, of which there is at least one.
tl::expected<std::vector<Certificate>, std::string> ReadCertificates(const std::string& path,
                                                                     const std::string& text) {
  std::vector<Certificate> all;
  const Bio bytes = BioOf(text);
  ERR_clear_error();
  while (X509* const next = PEM_read_bio_X509_AUX(bytes.get(), nullptr, nullptr, nullptr)) {
    all.emplace_back(next);
  }
  const bool read_all = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (all.empty()) return tl::unexpected(path + " contains no certificate (PEM)");
  if (!read_all || !EndsWithABlock(text)) {
    return tl::unexpected(path + " contains a certificate that is cut off or damaged");
  }
  return all;
}

// Makes OpenSSL fail on an encrypted key instead of prompting for a pass phrase.
int NoPassPhrase(char*, int, int, void*) { return 0; }

tl::expected<Key, std::string> ReadKey(const std::string& path, const std::string& text) {
  const Bio bytes = BioOf(text);
  Key key(PEM_read_bio_PrivateKey(bytes.get(), nullptr, &NoPassPhrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) return tl::unexpected(path + " contains no unencrypted private key (PEM)");
  return key;
}

std::string OpenSslError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unknown error" : reason;
}

// Whether a server can use both, in the steps in which gRPC will.
tl::expected<void, std::string> CheckIdentity(const TlsConfig& tls, X509* certificate,
                                              EVP_PKEY* key) {
  if (X509_check_private_key(certificate, key) != 1) {
    ERR_clear_error();
    return tl::unexpected("the key in " + tls.key + " does not belong to the certificate in " +
                          tls.certificate);
  }
  const Context context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr || SSL_CTX_use_certificate(context.get(), certificate) != 1) {
    return tl::unexpected("cannot use the certificate in " + tls.certificate + ": " +
                          OpenSslError());
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key) != 1) {
    return tl::unexpected("cannot use the key in " + tls.key + ": " + OpenSslError());
  }
  return {};
}

tl::expected<TimePoint, std::string> TimeOf(const ASN1_TIME* time, const std::string& path) {
  std::tm utc{};
  if (ASN1_TIME_to_tm(time, &utc) != 1) {
    return tl::unexpected(path + " has no valid period of validity");
  }
  return std::chrono::system_clock::from_time_t(timegm(&utc));
}

std::string PathOf(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace

ServerCertificates::MemoryFile::~MemoryFile() {
  for (const int fd : {current_, next_}) {
    if (fd >= 0) close(fd);
  }
}

std::string ServerCertificates::MemoryFile::path() const { return PathOf(current_); }

tl::expected<void, std::string> ServerCertificates::MemoryFile::Prepare(
    const std::string& contents) {
  if (next_ >= 0) close(next_);
  next_ = memfd_create("sap-server certificates", MFD_CLOEXEC);
  const timespec time{.tv_sec = ++modified_s_, .tv_nsec = 0};
  const timespec times[] = {time, time};
  const auto size = static_cast<ssize_t>(contents.size());
  if (next_ >= 0 && write(next_, contents.data(), contents.size()) == size &&
      futimens(next_, times) == 0 && access(PathOf(next_).c_str(), R_OK) == 0) {
    return {};
  }
  return tl::unexpected("cannot keep certificates in memory: " + std::string(std::strerror(errno)));
}

void ServerCertificates::MemoryFile::Replace() {
  if (current_ < 0) {
    current_ = std::exchange(next_, -1);
    return;
  }
  // The number, and with it the path, is another file's from one moment to the next.
  dup3(next_, current_, O_CLOEXEC);
  close(std::exchange(next_, -1));
}

tl::expected<std::unique_ptr<ServerCertificates>, std::string> ServerCertificates::Open(
    const TlsConfig& tls, WatchedFiles::Log log) {
  std::unique_ptr<ServerCertificates> self(new ServerCertificates(tls, log));
  std::vector<std::string> paths{tls.certificate, tls.key};
  if (!tls.client_ca.empty()) paths.push_back(tls.client_ca);
  auto files = WatchedFiles::Open(
      std::move(paths), "the certificates stay as they were",
      [certificates = self.get()](const auto& contents) { return certificates->Use(contents); },
      std::move(log));
  if (!files) return tl::unexpected(files.error());
  self->files_ = std::move(*files);
  const std::string identity = self->identity_.path();
  self->provider_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      identity, identity, tls.client_ca.empty() ? "" : self->client_ca_.path(), kRefresh_s);
  return self;
}

tl::expected<void, std::string> ServerCertificates::Use(const WatchedFiles::Contents& contents) {
  const auto certificates = ReadCertificates(tls_.certificate, contents[0]);
  if (!certificates) return tl::unexpected(certificates.error());
  X509* const certificate = certificates->front().get();
  const auto key = ReadKey(tls_.key, contents[1]);
  if (!key) return tl::unexpected(key.error());
  if (auto checked = CheckIdentity(tls_, certificate, key->get()); !checked) return checked;
  const auto begin = TimeOf(X509_get0_notBefore(certificate), tls_.certificate);
  const auto end = TimeOf(X509_get0_notAfter(certificate), tls_.certificate);
  if (!begin) return tl::unexpected(begin.error());
  if (!end) return tl::unexpected(end.error());
  if (!tls_.client_ca.empty()) {
    const auto authorities = ReadCertificates(tls_.client_ca, contents[2]);
    if (!authorities) return tl::unexpected(authorities.error());
    if (auto prepared = client_ca_.Prepare(contents[2]); !prepared) return prepared;
  }
  // One file, of which gRPC reads the key as well as the certificates.
  if (auto prepared = identity_.Prepare(contents[1] + "\n" + contents[0]); !prepared) {
    return prepared;
  }
  if (!tls_.client_ca.empty()) client_ca_.Replace();
  identity_.Replace();
  expiry_.store(*end);
  const auto now = std::chrono::system_clock::now();
  if (now > *end) log_("the certificate in " + tls_.certificate + " has expired");
  if (now < *begin) log_("the certificate in " + tls_.certificate + " is not valid yet");
  return {};
}

std::shared_ptr<grpc::ServerCredentials> ServerCertificates::Credentials() const {
  using namespace grpc::experimental;
  TlsServerCredentialsOptions options(provider_);
  options.watch_identity_key_cert_pairs();
  if (!tls_.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return TlsServerCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const ServerCertificates* certificates) {
  return certificates == nullptr ? grpc::InsecureServerCredentials() : certificates->Credentials();
}

}  // namespace sap
