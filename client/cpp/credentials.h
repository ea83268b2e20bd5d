// TLS, client certificate and bearer token of a connection.
#pragma once

#include <string>

namespace sap::client {

// Paths of PEM files, and of a token file.
struct Credentials {
  // Whether to encrypt the connection and verify the server's certificate. Implied by server_ca,
  // certificate or key.
  bool tls{false};
  std::string server_ca;    // CA of the server's certificate; empty: the CAs of the system
  std::string certificate;  // of this client, where the server asks for one
  std::string key;          // of that certificate
  std::string server_name;  // expected in the server's certificate; empty: the host of the address
  std::string token_file;   // holds one bearer token; empty: none is sent
};

}  // namespace sap::client
