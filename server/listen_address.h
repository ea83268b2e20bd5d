// Addresses to listen on, in words: HOST:PORT or unix:PATH.
#pragma once

#include <string>

namespace sap {

// What is wrong with an address, for the operator; empty if nothing is.
std::string CheckAddress(const std::string& address);

// Whether only processes of this machine can connect to it: a Unix socket or the loopback.
bool IsLocal(const std::string& address);

// The address with the port that was found where 0 was asked for.
std::string WithPort(const std::string& address, int port);

inline bool IsUnixSocket(const std::string& address) { return address.starts_with("unix:"); }

}  // namespace sap
