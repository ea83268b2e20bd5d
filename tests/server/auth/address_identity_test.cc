#include "server/auth/address_identity.h"

#include <gtest/gtest.h>

namespace sap::test::address_identity {
namespace {

TEST(AddressIdentityTest, ThePortDoesNotMatter) {
  EXPECT_EQ(AddressIdentity("ipv4:10.0.0.7:41234"), "ipv4:10.0.0.7");
  EXPECT_EQ(AddressIdentity("ipv4:10.0.0.7:5"), "ipv4:10.0.0.7");
  EXPECT_NE(AddressIdentity("ipv4:10.0.0.8:5"), "ipv4:10.0.0.7");
}

// Else a host with such a network would be 2^64 clients, each with limits of its own.
TEST(AddressIdentityTest, AllAddressesOfA64AreOneClient) {
  const std::string identity = "ipv6:2001:db8:0:5::/64";
  EXPECT_EQ(AddressIdentity("ipv6:%5B2001:db8:0:5::17%5D:41234"), identity);
  EXPECT_EQ(AddressIdentity("ipv6:[2001:db8:0:5:ffff:ffff:ffff:ffff]:1"), identity);
  EXPECT_EQ(AddressIdentity("ipv6:%5B2001:db8:0:6::17%5D:41234"), "ipv6:2001:db8:0:6::/64");
  EXPECT_EQ(AddressIdentity("ipv6:%5B::1%5D:9"), "ipv6:::/64");
  EXPECT_EQ(AddressIdentity("ipv6:%5Bfe80::1%25eth0%5D:9"), "ipv6:fe80::/64");
}

// Else all of them would be one client to a socket that takes both versions.
TEST(AddressIdentityTest, AMappedIPv4AddressIsThatAddress) {
  EXPECT_EQ(AddressIdentity("ipv6:%5B::ffff:10.0.0.7%5D:41234"), "ipv4:10.0.0.7");
  EXPECT_EQ(AddressIdentity("ipv6:[::ffff:10.0.0.8]:41234"), "ipv4:10.0.0.8");
}

TEST(AddressIdentityTest, EveryPeerOfAUnixSocketIsOneClient) {
  EXPECT_EQ(AddressIdentity("unix:/run/sap.sock"), "unix");
  EXPECT_EQ(AddressIdentity("unix:"), "unix");
}

TEST(AddressIdentityTest, WhatIsNoAddressKeepsItsName) {
  EXPECT_EQ(AddressIdentity("ipv6:%5Bnonsense%5D:9"), "ipv6:%5Bnonsense%5D");
}

}  // namespace
}  // namespace sap::test::address_identity
