// Texts of gRPC 1.51 about connections that were not made, and what is said in their place.
#include "client/cpp/transport/advice.h"

#include <gtest/gtest.h>

namespace sap::test {
namespace {

using client::Advice;

std::string NotMade(const std::string& why) {
  return "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:50051: " +
         why;
}

TEST(AdviceTest, SaysWhichSideDoesNotSpeakTls) {
  EXPECT_EQ(Advice(NotMade("Ssl handshake failed: SSL_ERROR_SSL: error:0A00010B:SSL "
                           "routines::wrong version number"),
                   true),
            "the server does not speak TLS: connect without it");
  EXPECT_EQ(Advice(NotMade("Socket closed"), false),
            "the server closes connections without TLS: it may want it");
}

TEST(AdviceTest, NamesWhatIsWrongWithACertificate) {
  EXPECT_EQ(Advice(NotMade("Peer name no.example is not in peer certificate"), true),
            "the server's certificate is not for no.example: give a name that is in it as server "
            "name");
}

TEST(AdviceTest, KnowsServersOfAnotherProtocol) {
  EXPECT_EQ(Advice(NotMade("Failed parsing HTTP/2"), false),
            "what listens there is no gRPC server");
}

TEST(AdviceTest, NamesAHostWithoutAddress) {
  EXPECT_EQ(Advice("DNS resolution failed for nohost.invalid:50051: C-ares status is not "
                   "ARES_SUCCESS qtype=AAAA name=nohost.invalid is_balancer=0: Domain name not "
                   "found",
                   false),
            "the host nohost.invalid has no address: Domain name not found");
}

TEST(AdviceTest, KeepsWhatTheSystemSays) {
  EXPECT_EQ(Advice(NotMade("Failed to connect to remote host: Connection refused"), true),
            "nothing listens there: Connection refused");
  EXPECT_EQ(Advice(NotMade("Failed to connect to remote host: No route to host"), false),
            "No route to host");
}

// A server that was killed while it solved is no mistake of the client.
TEST(AdviceTest, SaysNothingOfConnectionsThatWereMade) {
  for (const bool encrypted : {false, true}) {
    for (const char* said : {"Socket closed", "Connection reset by peer", "Broken pipe", ""}) {
      EXPECT_EQ(Advice(said, encrypted), "") << said;
    }
  }
}

}  // namespace
}  // namespace sap::test
