// Valid addresses, and the target that gRPC gets for each.
#include "client/cpp/transport/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sap::client::address {
namespace {

using testing::HasSubstr;
using Kind = Address::Kind;

Address Parsed(const std::string& text) {
  const auto address = ParseAddress(text);
  EXPECT_TRUE(address.has_value()) << text << ": " << address.error().message;
  return address.value_or(Address());
}

std::string TargetOf(const std::string& text) {
  const auto target = ResolveTarget(Parsed(text));
  return target ? *target : target.error().message;
}

TEST(AddressTest, ASingleServerIsHandedToGrpcAsItIs) {
  for (const char* text : {"127.0.0.1:50051", "solver-1.example:443", "[::1]:50051", "host_a:1",
                           "[fe80::1%eth0]:65535", "unix:/run/sap.sock", "unix:relative,name"}) {
    EXPECT_EQ(Parsed(text).kind, Kind::kOne) << text;
    EXPECT_FALSE(Parsed(text).is_balanced()) << text;
    EXPECT_EQ(TargetOf(text), text);
  }
}

TEST(AddressTest, AListHasTheServersInTheirOrder) {
  const Address list = Parsed("127.0.0.1:50051,[::1]:2,solver-b:50052");
  EXPECT_EQ(list.kind, Kind::kList);
  EXPECT_TRUE(list.is_balanced());
  EXPECT_THAT(list.servers, testing::ElementsAre("127.0.0.1:50051", "[::1]:2", "solver-b:50052"));
}

// One scheme of gRPC has addresses of one family.
TEST(AddressTest, AListBecomesLiteralAddressesOfOneFamily) {
  EXPECT_EQ(TargetOf("127.0.0.1:1,10.0.0.2:2"), "ipv4:127.0.0.1:1,10.0.0.2:2");
  EXPECT_EQ(TargetOf("[::1]:1,[2001:db8::5]:2"), "ipv6:%5B::1%5D:1,%5B2001:db8::5%5D:2");
  EXPECT_EQ(TargetOf("[::1]:1,10.0.0.2:2"), "ipv6:%5B::1%5D:1,%5B::ffff:10.0.0.2%5D:2");
}

TEST(AddressTest, NamesOfAListAreResolved) {
  const std::string target = TargetOf("localhost:7,127.0.0.1:8");
  EXPECT_THAT(target, HasSubstr("127.0.0.1"));
  EXPECT_THAT(target, testing::Not(HasSubstr("localhost")));
}

TEST(AddressTest, ANameOfAListWithoutAddressIsNamed) {
  const auto target = ResolveTarget(Parsed("127.0.0.1:8,nobody.invalid:1"));
  ASSERT_FALSE(target.has_value());
  EXPECT_EQ(target.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(target.error().message, HasSubstr("the host of nobody.invalid:1 has no address: "));
}

TEST(AddressTest, NamesForDnsAndControlPlaneStayNames) {
  for (const char* text : {"dns:///solvers:50051", "dns://10.0.0.53/solvers.example:50051",
                           "dns://10.0.0.53:5353/solvers.example:50051"}) {
    EXPECT_EQ(Parsed(text).kind, Kind::kDns) << text;
    EXPECT_TRUE(Parsed(text).is_balanced()) << text;
    EXPECT_EQ(TargetOf(text), text);
  }
  for (const char* text : {"xds:///solvers", "xds://authority.example/solvers"}) {
    EXPECT_EQ(Parsed(text).kind, Kind::kXds) << text;
    EXPECT_FALSE(Parsed(text).is_balanced()) << text;
    EXPECT_EQ(TargetOf(text), text);
  }
}

// Where a token may be sent in clear text.
TEST(AddressTest, IsLocalIfEveryServerCanOnlyBeOnThisMachine) {
  for (const char* text :
       {"127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/socket", "127.0.0.1:1,127.8.0.1:2",
        "localhost:1,[::1]:2,127.0.0.1:3", "dns:///localhost:1"}) {
    EXPECT_TRUE(Parsed(text).is_local) << text;
  }
  for (const char* text :
       {"10.0.0.1:1", "127.example:1", "localhost.example:1", "127.0.0.1.example:1", "[::2]:1",
        "127.0.0.1:1,10.0.0.1:2", "10.0.0.1:1,localhost:2", "dns:///solvers:1",
        "dns:///127.0.0.1:1", "dns://10.0.0.53/localhost:1", "xds:///localhost"}) {
    EXPECT_FALSE(Parsed(text).is_local) << text;
  }
}

// The name in the certificates of a list.
std::vector<std::string> ServersIn(const std::string& text) {
  std::vector<std::string> found;
  const auto servers = ServersOf(Parsed(text));
  EXPECT_TRUE(servers.has_value()) << servers.error().message;
  for (const Address& server : *servers) {
    EXPECT_EQ(server.is_local, Parsed(text).is_local) << text;
    EXPECT_EQ(ResolveTarget(server).value_or(""), server.text);
    found.push_back(server.text);
  }
  return found;
}

TEST(AddressTest, TheServersOfAListAndOfANameAreToldApart) {
  using testing::ElementsAre;
  EXPECT_THAT(ServersIn("127.0.0.1:1,127.0.0.1:2"), ElementsAre("127.0.0.1:1", "127.0.0.1:2"));
  EXPECT_THAT(ServersIn("dns:///localhost:7"), ElementsAre("ipv4:127.0.0.1:7"));
  EXPECT_EQ(ServersOf(Parsed("dns:///localhost:7"))->front().host, "localhost");
  for (const char* text : {"unix:/run/sap.sock", "solver-1.example:443", "xds:///solver",
                           "dns://127.0.0.1/solver:50051"}) {
    EXPECT_THAT(ServersIn(text), ElementsAre(text));
  }
  EXPECT_EQ(ServersOf(Parsed("dns:///nobody.invalid:1")).error().code, ErrorCode::kUnavailable);
}

TEST(AddressTest, AListHasTheHostOfItsServersIfItIsOne) {
  EXPECT_EQ(Parsed("solvers:1,solvers:2,solvers:3").host, "solvers");
  EXPECT_EQ(Parsed("[::1]:1,[::1]:2").host, "::1");
  EXPECT_EQ(Parsed("solver-a:1,solver-b:1").host, "");
  EXPECT_EQ(Parsed("solver-a:1,solver-b:1,solver-a:2").host, "");
}

TEST(AddressTest, AnythingElseIsRefusedWithTheFormsOfAddresses) {
  for (const char* text : {"",
                           "localhost",
                           "localhost:",
                           ":50051",
                           "localhost:0",
                           "localhost:65536",
                           "localhost:http",
                           "localhost:+1",
                           "localhost:000001",
                           "::1:50051",
                           "[::1]",
                           "[::1:50051",
                           "[localhost]:50051",
                           "[]:1",
                           "a b:1",
                           "user@host:1",
                           "http://solvers:1",
                           "ipv4:127.0.0.1:1",
                           "unix:",
                           "embedded",
                           "embedded:process",
                           "dns:solvers:1",
                           "dns://solvers:1",
                           "dns:///",
                           "dns:///solvers",
                           "dns:///a:1,b:2",
                           "dns:///a/b:1",
                           "xds://",
                           "xds:///",
                           "xds://authority"}) {
    const auto address = ParseAddress(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_EQ(address.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(address.error().field, "address");
    EXPECT_EQ(address.error().message,
              "address is '" + std::string(text) +
                  "'; it must be embedded:, HOST:PORT, HOST:PORT,HOST:PORT,..., unix:PATH, "
                  "dns:///NAME:PORT, dns://SERVER/NAME:PORT or xds:///NAME");
  }
}

TEST(AddressTest, ARefusedListNamesItsServerAtFault) {
  const std::pair<const char*, const char*> cases[] = {{"a:1,b", "'b'"},
                                                       {"a:1,", "''"},
                                                       {",a:1", "''"},
                                                       {"a:1,,b:2", "''"},
                                                       {"a:1, b:2", "' b:2'"},
                                                       {"a:1,unix:/socket", "'unix:/socket'"},
                                                       {"a:1,embedded:", "'embedded:'"},
                                                       {"a:1,dns:///b:2", "'dns:///b:2'"}};
  for (const auto& [text, at_fault] : cases) {
    const auto address = ParseAddress(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_EQ(address.error().message, "address is '" + std::string(text) + "'; " + at_fault +
                                           " in it must be HOST:PORT, with a port from 1 to 65535");
  }
}

}  // namespace
}  // namespace sap::client::address
