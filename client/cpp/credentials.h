// What a client shows to servers, and asks of them: TLS, a certificate of its own, a bearer token.
#pragma once

#include <string>

namespace sap::client {

// Files in PEM.
struct Credentials {
  // Whether to encrypt, and to check the server's certificate. Implied by the files of this kind.
  bool tls{false};
  std::string server_ca;    // authority of the server's certificate; empty: those of the system
  std::string certificate;  // of this client, and its key: where the server asks for one
  std::string key;
  std::string server_name;  // that the server's certificate has to name; empty: the host connected
  std::string token_file;   // a bearer token and nothing else; empty: none is sent
};

}  // namespace sap::client
