// Debian's HAProxy with the configuration that ships, in front of a server on a Unix socket.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/support/certificates.h"
#include "tests/support/child_process.h"

namespace sap::test {

// A socket on a free port of the loopback, which a child process inherits.
class InheritedListener {
 public:
  InheritedListener() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof name;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&name), length), 0);
    EXPECT_EQ(listen(fd_, SOMAXCONN), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &length), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
  ~InheritedListener() { close(fd_); }
  InheritedListener(const InheritedListener&) = delete;
  InheritedListener& operator=(const InheritedListener&) = delete;

  int fd() const { return fd_; }
  const std::string& address() const { return address_; }

 private:
  int fd_;
  std::string address_;
};

class ProxyProcess {
 public:
  // Its certificate is written to the directory. The socket is the path of the server's.
  ProxyProcess(const std::filesystem::path& directory, const CertificateAuthority& authority,
               const std::filesystem::path& socket)
      : ProxyProcess(InheritedListener(), Certificate(directory, authority), socket) {}

  const std::string& address() const { return address_; }

 private:
  ProxyProcess(const InheritedListener& listener, const std::string& certificate,
               const std::filesystem::path& socket)
      : address_(listener.address()),
        process_({"/usr/bin/env", "SAP_BIND=fd@" + std::to_string(listener.fd()),
                  "SAP_CERT=" + certificate, "SAP_SERVER=unix@" + socket.string(),
                  "/usr/sbin/haproxy", "-db", "-f", SAP_PROXY_CONFIGURATION}) {}

  static std::string Certificate(const std::filesystem::path& directory,
                                 const CertificateAuthority& authority) {
    const std::filesystem::path path = directory / "proxy.pem";
    WritePem(authority.Issue("proxy"), path);
    return path.string();
  }

  std::string address_;
  ChildProcess process_;
};

}  // namespace sap::test
