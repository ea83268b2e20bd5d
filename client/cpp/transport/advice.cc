#include "client/cpp/transport/advice.h"

#include <algorithm>
#include <span>

namespace sap::client {
namespace {

struct Sentence {
  std::string_view mark;    // a part of what gRPC, OpenSSL or the system says
  std::string_view advice;  // empty: the rest of the text, from the mark on
};

// To one address; to several, over which calls take turns.
constexpr std::string_view kNotMade[] = {"failed to connect to all addresses",
                                         "connections to all backends failing"};

constexpr Sentence kWithTls[] = {
    {"wrong version number", "the server does not speak TLS: connect without it"},
    {"certificate verify failed",
     "the server's certificate is expired or of an authority that is not trusted: give that of its "
     "authority as server CA"},
    {"Socket closed",
     "the server closes the connection: it may want a certificate of the client that it trusts"},
};

constexpr Sentence kPlain[] = {
    {"Failed parsing HTTP/2", "what listens there is no gRPC server"},
    {"Socket closed", "the server closes connections without TLS: it may want it"},
    {"Connection reset by peer", "the server closes connections without TLS: it may want it"},
};

constexpr Sentence kSystem[] = {
    {"Connection refused", "nothing listens there: Connection refused"},
    {"No such file or directory", "there is no such socket: No such file or directory"},
    {"Permission denied", ""},
    {"No route to host", ""},
    {"Network is unreachable", ""},
    {"Connection timed out", ""},
};

// The text between two others; empty: it has none of them.
std::string Between(std::string_view text, std::string_view before, std::string_view after) {
  const size_t start = text.find(before);
  if (start == std::string_view::npos) return "";
  text.remove_prefix(start + before.size());
  return std::string(text.substr(0, text.find(after)));
}

std::string In(std::span<const Sentence> sentences, std::string_view said) {
  for (const auto& [mark, advice] : sentences) {
    if (said.find(mark) != std::string_view::npos)
      return std::string(advice.empty() ? mark : advice);
  }
  return "";
}

}  // namespace

std::string Advice(std::string_view said, bool encrypted) {
  // "C-ares status is not ARES_SUCCESS qtype=A name=solver is_balancer=0: Domain name not found"
  if (const std::string host = Between(said, " name=", " is_balancer"); !host.empty()) {
    return "the host " + host + " has no address: " + Between(said, "is_balancer=0: ", " [");
  }
  if (const std::string name = Between(said, "Peer name ", " is not in peer"); !name.empty()) {
    return "the server's certificate is not for " + name +
           ": give a name that is in it as server name";
  }
  // The same words about a connection that was made and then lost mean nothing of this.
  if (std::ranges::none_of(kNotMade, [&](std::string_view mark) {
        return said.find(mark) != std::string_view::npos;
      })) {
    return "";
  }
  const std::string advice = encrypted ? In(kWithTls, said) : In(kPlain, said);
  return advice.empty() ? In(kSystem, said) : advice;
}

}  // namespace sap::client
