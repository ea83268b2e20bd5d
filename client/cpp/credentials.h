// TLS, client certificate and bearer token of a connection.
#pragma once

#include <string>

namespace sap::client {

struct Credentials {
  // Whether to encrypt the connection and verify the server's certificate. Implied by server_ca,
  // certificate or key.
  bool tls{false};
  // Each a path of a PEM file, or its text, which begins with "-----BEGIN".
  std::string server_ca{};    // CA of the server's certificate; empty: the CAs of the system
  std::string certificate{};  // of this client, where the server asks for one
  std::string key{};          // of that certificate
  std::string
      server_name{};  // expected in the server's certificate; empty: the host of the address
  // A bearer token, as text or in a file, which is read again when it has changed; both empty: none
  // is sent. Not both.
  std::string token{};
  std::string token_file{};
};

}  // namespace sap::client
