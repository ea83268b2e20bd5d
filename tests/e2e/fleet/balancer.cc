#include "tests/e2e/fleet/balancer.h"

#include <fstream>
#include <iterator>
#include <map>

namespace sap::test {
namespace {

std::string AddressList(const Fleet& fleet) {
  std::string list = fleet.address(0);
  for (int i = 1; i < Fleet::kServers; ++i) list.append(",").append(fleet.address(i));
  return list;
}

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// As it ships: all that differs between installations is in its environment.
std::unique_ptr<ChildProcess> StartHaproxy(const Fleet& fleet, int port) {
  const std::string pem = fleet.directory() / "proxy.pem";
  WritePem(fleet.certificate(), pem);
  return std::make_unique<ChildProcess>(std::vector<std::string>{
      "/usr/bin/env", "SAP_BIND=127.0.0.1:" + std::to_string(port), "SAP_CERT=" + pem,
      "SAP_READY_PORT=" + std::to_string(fleet.ready_port()), "SAP_SERVER_CA=" + fleet.authority(),
      "SAP_SERVER_NAME=" + fleet.name(), "SAP_SERVER=" + fleet.address(0),
      "SAP_SERVER_2=" + fleet.address(1), "SAP_SERVER_3=" + fleet.address(2), "/usr/sbin/haproxy",
      "-db", "-f", SAP_DEPLOY_DIRECTORY "/haproxy.cfg"});
}

void Replace(std::string* text, const std::string& from, const std::string& to) {
  size_t at = text->find(from);
  EXPECT_NE(at, std::string::npos) << from << " is not in envoy.yaml";
  for (; at != std::string::npos; at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
  }
}

std::string SocketAddress(const std::string& host, const std::string& port) {
  return "socket_address: {address: " + host + ", port_value: " + port + "}";
}

// The endpoints of a cluster, in place of a name's.
std::string Endpoints(const Fleet& fleet) {
  std::string list = "lb_endpoints:";
  for (int i = 0; i < Fleet::kServers; ++i) {
    const std::string address = fleet.address(i);
    const size_t colon = address.find(':');
    list += "\n              - endpoint: {address: {" +
            SocketAddress(address.substr(0, colon), address.substr(colon + 1)) + "}}";
  }
  return list + "\n";
}

// As it ships, with the addresses and paths of this test.
std::unique_ptr<ChildProcess> StartEnvoy(const Fleet& fleet, int port) {
  std::string text = Read(SAP_DEPLOY_DIRECTORY "/envoy.yaml");
  const auto own = [](const char* path) { return std::string("/etc/sap-server/") + path; };
  Replace(&text, own("server.crt}"), fleet.certificate().certificate + "}");
  Replace(&text, own("server.key}"), fleet.certificate().key + "}");
  Replace(&text, own("ca.crt}"), fleet.authority() + "}");
  Replace(&text, SocketAddress("0.0.0.0", "50443"),
          SocketAddress("127.0.0.1", std::to_string(port)));
  Replace(&text, SocketAddress("127.0.0.1", "9901"),
          SocketAddress("127.0.0.1", std::to_string(FreePort("127.0.0.1"))));
  Replace(&text, "type: STRICT_DNS", "type: STATIC");
  const size_t begin = text.find("lb_endpoints:\n");
  const std::string last = SocketAddress("sap-servers", "50051") + "\n";
  const size_t end = text.find(last);
  EXPECT_LT(begin, end);
  text.replace(begin, end + last.size() - begin, Endpoints(fleet));
  const std::string path = fleet.directory() / "envoy.yaml";
  std::ofstream(path) << text;
  // No shared memory of a base id, so that several can run on a machine.
  return std::make_unique<ChildProcess>(
      std::vector<std::string>{SAP_ENVOY_BINARY, "--config-path", path, "--disable-hot-restart",
                               "--concurrency", "1", "--log-level", "error"});
}

}  // namespace

std::string Name(Balancing balancing) {
  static const std::map<Balancing, std::string> kNames{{Balancing::kAddressList, "AddressList"},
                                                       {Balancing::kHaproxy, "Haproxy"},
                                                       {Balancing::kEnvoy, "Envoy"}};
  return kNames.at(balancing);
}

Balancer::Balancer(Balancing balancing, const Fleet& fleet) {
  if (balancing == Balancing::kAddressList) {
    address_ = AddressList(fleet);
    return;
  }
  const int port = FreePort("127.0.0.1");
  address_ = "127.0.0.1:" + std::to_string(port);
  process_ = balancing == Balancing::kHaproxy ? StartHaproxy(fleet, port) : StartEnvoy(fleet, port);
}

}  // namespace sap::test
