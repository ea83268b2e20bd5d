// Listen addresses as text: HOST:PORT or unix:PATH.
#pragma once

#include <string>

namespace sap {

// Validates the syntax. Returns an error message for the operator, or an empty string.
std::string CheckAddress(const std::string& address);
// The same where only HOST:PORT is accepted.
std::string CheckTcpAddress(const std::string& address);

// Whether only processes on this machine can connect: a Unix socket or the loopback interface.
bool IsLocal(const std::string& address);

// Whether a process has the address: a Unix socket, even one that does not accept connections or
// lets this user connect, or a port of TCP. gRPC unlinks an existing socket file before it binds,
// and so takes over the address of a running server; about a port it logs lines of its own.
bool HasListener(const std::string& address);

// Replaces port 0 by the port that the kernel assigned.
std::string WithPort(const std::string& address, int port);

inline bool IsUnixSocket(const std::string& address) { return address.starts_with("unix:"); }

}  // namespace sap
