// A call whose message is announced and not sent in full, which a gRPC client cannot do: HTTP/2
// frames on a connection of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/support/raw_socket.h"

namespace sap::test {

class HalfSentCall {
 public:
  // Sends the headers of a call of that method ("/package.Service/Method") and the beginning of a
  // message of `announced` bytes: `sent` of them, at most the initial window. Before it comes a
  // whole message, if `first` is not empty.
  HalfSentCall(const std::string& address, const std::string& path, uint32_t announced,
               size_t sent = 100, const std::string& first = "");

  // Whether the server has ended the stream: by RST_STREAM, or by headers or data that end it.
  bool Ended();

  // Status with which the server has ended the call, as it is on the wire: literals of HPACK.
  const std::string& trailers() const { return trailers_; }

  // Whether the server allows more than the initial window of the stream to be sent.
  bool WindowOpened();

 private:
  void Receive();

  RawSocket socket_;
  std::string received_;
  std::string trailers_;
  bool ended_{false};
  bool window_opened_{false};
};

}  // namespace sap::test
