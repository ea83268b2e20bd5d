// Who may hold Watch streams.
#include "server/rpc/watch_shares.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sap::test {
namespace {

struct Stream {};

std::string PeerOf(const std::string& host, int port) {
  return "ipv4:" + host + ":" + std::to_string(port);
}

TEST(WatchSharesTest, AConnectionHasNoMoreThanItsLimit) {
  WatchShares<Stream> shares(100, 2);
  std::vector<Stream> streams(4);
  EXPECT_EQ(shares.Add(&streams[0], PeerOf("10.0.0.1", 1000)), nullptr);
  EXPECT_EQ(shares.Add(&streams[1], PeerOf("10.0.0.1", 1000)), nullptr);
  EXPECT_EQ(shares.Add(&streams[2], PeerOf("10.0.0.1", 1000)), &streams[2]);
  EXPECT_EQ(shares.Add(&streams[3], PeerOf("10.0.0.1", 1001)), nullptr);
  shares.Remove(&streams[0]);
  EXPECT_EQ(shares.Add(&streams[2], PeerOf("10.0.0.1", 1000)), nullptr);
  EXPECT_EQ(shares.size(), 3);
}

// Whoever holds most makes room, its oldest stream first, whatever was there before.
TEST(WatchSharesTest, TheAddressWithMostMakesRoom) {
  constexpr int kAll = 16;
  WatchShares<Stream> shares(kAll, 4);
  std::vector<Stream> floods(kAll);
  for (int i = 0; i < kAll; ++i) {
    EXPECT_EQ(shares.Add(&floods[i], PeerOf("10.0.0.1", 1000 + i)), nullptr);
  }
  std::vector<Stream> others(kAll / 2);
  for (int i = 0; i < kAll / 2; ++i) {
    EXPECT_EQ(shares.Add(&others[i], PeerOf("10.0.0.2", 1000 + i)), &floods[i]);
  }
  Stream last;
  EXPECT_EQ(shares.Add(&last, PeerOf("10.0.0.1", 2000)), &floods[kAll / 2]);
  EXPECT_EQ(shares.size(), kAll);
}

// Where all have the same, newcomers do not throw out others.
TEST(WatchSharesTest, ANewcomerWaitsWhereAllHaveOne) {
  WatchShares<Stream> shares(2, 4);
  std::vector<Stream> streams(3);
  EXPECT_EQ(shares.Add(&streams[0], PeerOf("10.0.0.1", 1000)), nullptr);
  EXPECT_EQ(shares.Add(&streams[1], PeerOf("10.0.0.2", 1000)), nullptr);
  EXPECT_EQ(shares.Add(&streams[2], PeerOf("10.0.0.3", 1000)), &streams[2]);
}

// A host may use any address of its /64; all clients of a proxy come over its socket.
TEST(WatchSharesTest, AddressesAreThoseOfClients) {
  WatchShares<Stream> shares(3, 1);
  std::vector<Stream> streams(5);
  EXPECT_EQ(shares.Add(&streams[0], "ipv6:%5B2001:db8::1%5D:1000"), nullptr);
  EXPECT_EQ(shares.Add(&streams[1], "ipv6:%5B2001:db8::2%5D:1000"), nullptr);
  EXPECT_EQ(shares.Add(&streams[2], "unix:"), nullptr);
  EXPECT_EQ(shares.Add(&streams[3], "unix:"), &streams[2]);
  EXPECT_EQ(shares.Add(&streams[4], PeerOf("10.0.0.1", 1000)), &streams[0]);
}

TEST(WatchSharesTest, AStreamThatIsOutCanBeRemovedAgain) {
  WatchShares<Stream> shares(1, 1);
  std::vector<Stream> streams(2);
  shares.Add(&streams[0], "unix:");
  EXPECT_EQ(shares.Add(&streams[1], "unix:"), &streams[0]);
  shares.Remove(&streams[0]);
  EXPECT_EQ(shares.size(), 1);
}

}  // namespace
}  // namespace sap::test
