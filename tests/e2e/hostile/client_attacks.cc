#include "client/cpp/transport/message_conversion.h"
#include "tests/e2e/hostile/attacks.h"
#include "tests/e2e/hostile/held_calls.h"
#include "tests/e2e/hostile/http2_connection.h"
#include "tests/e2e/hostile/requests.h"
#include "tests/support/scenes.h"

namespace sap::test::hostile {
namespace {

constexpr int kMostStreams = 1000;  // on one connection

// The bytes that one client may hold at these servers, and a message well below.
const std::vector<std::string> kFewBytes{"--max-client-bytes", "64000000"};
constexpr size_t kLargeBytes = 8 * kMB;
// Every problem is queued for the arena.
const std::vector<std::string> kAllQueued{"--inline-below-us", "0"};

// Calls without a pause, in position when some have ended.
void KeepLoad(const Target& target, Siege* siege, const std::string& method,
              const std::string& message, const LoadOptions& options, int64_t in_position) {
  siege->Hold(std::make_shared<Load>(target, method, message, options))->Await(in_position);
}

void EverythingHigh(const Target& target, Siege* siege) {
  v1::SolveOptions options;
  options.set_priority(v1::PRIORITY_HIGH);
  KeepLoad(target, siege, kSolve, SolveRequest(SphereBlock(5), options),
           {.outstanding = 64, .high_priority = true}, 64);
}

void EndlessSolves(const Target& target, Siege* siege) {
  const grpc::ByteBuffer message = ToBuffer(EndlessRequest());
  const auto channel = OpenChannel(target);
  for (int i = 0; i < 4; ++i) {
    siege->Hold(std::make_shared<HeldCall>(target, channel, kSolve, message));
  }
}

// Calls of whose answers not a byte is taken, each on a message of its own.
void LeaveUnread(const Target& target, Siege* siege, const std::string& method,
                 const std::vector<std::string>& messages, int calls) {
  std::shared_ptr<Http2Connection> connection;
  for (int i = 0; i < calls; ++i) {
    if (i % 8 == 0) {
      connection = siege->Hold(std::make_shared<Http2Connection>(target, /*receive_window=*/0));
    }
    const int call = connection->Begin(method);
    for (const std::string& message : messages) {
      if (!connection->Send(call, MessagePrefix(message.size()) + message)) break;
    }
  }
}

void UnreadAnswers(const Target& target, Siege* siege) {
  LeaveUnread(target, siege, kSolve, {SolveRequest(LargeProblem(kLargeBytes))}, 64);
}

void UnreadBatches(const Target& target, Siege* siege) {
  LeaveUnread(target, siege, kStreamBatch, {BatchRequest(LargeProblem(kLargeBytes / 8), 8)}, 64);
}

// A request of 46 kB, an answer of some 10 MB.
std::string ManyGradients() { return DifferentiateRequest(SphereBlock(5), 128); }

void UnreadGradients(const Target& target, Siege* siege) {
  LeaveUnread(target, siege, kDifferentiate, {ManyGradients()}, 64);
}

void UnreadSessions(const Target& target, Siege* siege) {
  std::vector<std::string> messages{OpenRequest()};
  for (uint64_t step = 1; step <= 8; ++step) {
    messages.push_back(StepRequest(step, LargeProblem(kLargeBytes)));
  }
  LeaveUnread(target, siege, kSolveSession, messages, 8);
}

// The first step has no end, the others wait behind it.
void LargeStepsAhead(const Target& target, Siege* siege) {
  std::vector<std::string> messages{OpenRequest(),
                                    StepRequest(1, SphereBlock(kEndlessBlock), ManyIterations())};
  for (uint64_t step = 2; step <= 9; ++step) {
    messages.push_back(StepRequest(step, LargeProblem(40 * kMB)));
  }
  LeaveUnread(target, siege, kSolveSession, messages, 1);
}

void SolvesNeverFinished(const Target& target, Siege* siege) {
  const std::string part(50 * kMB, 'a');
  for (int i = 0; i < 8; ++i) {
    const auto connection = siege->Hold(std::make_shared<Http2Connection>(target));
    const int call = connection->Begin(kSolve);
    if (connection->Send(call, MessagePrefix(60 * kMB))) connection->Send(call, part);
  }
}

// Calls of which only the announced length of the message arrives, or what a proxy waits for.
void BeginUnfinished(const Target& target, Siege* siege, const std::string& method, int calls,
                     size_t bytes) {
  const std::string message = MessagePrefix(kMB).append(bytes, 'a');
  const auto connection = siege->Hold(std::make_shared<Http2Connection>(target));
  for (int i = 0; i < calls; ++i) connection->Send(connection->Begin(method), message);
  siege->Count(calls);
}

// More of each client than it may have read at the same time.
constexpr int kManyCalls = 60;

void UnfinishedCallsOfTwoClients(const Target& target, Siege* siege) {
  for (const Target& client : {target, AsAccomplice(target)}) {
    for (const char* method : {kSolve, kSolveBatch, kStreamBatch}) {
      BeginUnfinished(client, siege, method, kManyCalls / 3, 0);
    }
  }
}

void UnfinishedCallsAtTheProxy(const Target& target, Siege* siege) {
  constexpr size_t kAwaitedByTheProxy = 40'000;
  for (const Target& client : {target, AsAccomplice(target)}) {
    BeginUnfinished(client, siege, kSolve, kManyCalls, kAwaitedByTheProxy);
  }
}

// As many calls as the server receives at the same time.
void UnfinishedCallsUntilRefused(const Target& target, Siege* siege) {
  for (const Target& client : {target, AsAccomplice(target)}) {
    BeginUnfinished(client, siege, kSolve, 512, 0);
  }
}

void UnfinishedCallsOfManyAddresses(const Target& target, Siege* siege) {
  Target client = target;
  for (int i = 0; i < 40; ++i) {
    ++client.source;
    BeginUnfinished(client, siege, kSolve, 8, 0);
  }
}

// Again and again, as fast as they are given up.
void UnfinishedCallsRenewed(const Target& target, Siege* siege) {
  for (const Target& client : {target, AsAccomplice(target)}) {
    const auto connection = siege->Hold(std::make_shared<Http2Connection>(client));
    siege->Repeat([connection] {
      while (connection->open() && connection->calls() < kManyCalls) {
        connection->Send(connection->Begin(kSolve), MessagePrefix(kMB));
      }
      connection->Receive(20);
    });
  }
}

// More than the server has.
void SessionsUntilRefused(const Target& target, Siege* siege) {
  const std::string open = OpenRequest();
  const std::string message = MessagePrefix(open.size()) + open;
  for (int i = 0; i < 2; ++i) {
    const auto connection = siege->Hold(std::make_shared<Http2Connection>(target));
    for (int call = 0; call < 600; ++call) {
      connection->Send(connection->Begin(kSolveSession), message);
      siege->Count();
    }
    connection->Receive(100);
  }
}

void RejectedCallsOutstanding(const Target& target, Siege* siege) {
  EndlessSolves(target, siege);
  const std::string message = SolveRequest(SmallProblem());
  // Each call takes 25 kB of the attacker, too.
  const int connections = IsFullProof() ? 40 : 20;
  for (int i = 0; i < connections; ++i) {
    siege->Hold(
        std::make_shared<Load>(target, kSolve, message, LoadOptions{.outstanding = kMostStreams}));
  }
}

// They take a hundred times as long as predicted. Then it is quiet.
void BadlyPredictedProblems(const Target& target, Siege* siege) {
  constexpr int kProblems = 200;
  v1::SolveOptions options = ManyIterations();
  options.set_max_iterations(500);
  Load(target, kSolve, SolveRequest(SphereBlock(2), options), {.outstanding = 4}).Await(kProblems);
  siege->Count(kProblems);
}

void ManySmallCalls(const Target& target, Siege* siege) {
  KeepLoad(target, siege, kSolve, SolveRequest(SmallProblem()), {.outstanding = 512}, 1000);
}

void LargestBatches(const Target& target, Siege* siege) {
  KeepLoad(target, siege, kSolveBatch, BatchRequest(SmallProblem(), 4096), {.outstanding = 4}, 2);
}

void GradientsWithoutEnd(const Target& target, Siege* siege) {
  KeepLoad(target, siege, kDifferentiate, ManyGradients(), {.outstanding = 4}, 2);
}

// Messages of which each byte would take up to a hundred in memory, were they parsed. The bodies of
// several are sent at once, and the server has parsed, or refused, some when it is in position.
void KeepSending(const Target& target, Siege* siege, const std::string& method,
                 const std::string& message) {
  KeepLoad(target, siege, method, message, {.outstanding = 3}, 2);
}

constexpr size_t kManyBytes = 16 * kMB;
// A field of DifferentiateRequest with no content, and an element of a batch with an empty problem.
const std::string kEmptyProblem("\x0a\x00", 2);

void EmptyProblems(const Target& target, Siege* siege) {
  KeepSending(target, siege, kSolveBatch, RepeatedField(1, "", kManyBytes));
}
void EmptyStreamedProblems(const Target& target, Siege* siege) {
  KeepSending(target, siege, kStreamBatch, RepeatedField(1, "", kManyBytes));
}
void EmptyDifferentiations(const Target& target, Siege* siege) {
  KeepSending(target, siege, kDifferentiateBatch, RepeatedField(1, kEmptyProblem, kManyBytes));
}
void EmptyCotangents(const Target& target, Siege* siege) {
  KeepSending(target, siege, kDifferentiate, RepeatedField(4, "", kManyBytes));
}
void EmptyTangents(const Target& target, Siege* siege) {
  KeepSending(target, siege, kDifferentiateBatch, RepeatedField(5, "", kManyBytes, {1}));
}
void EmptyPaths(const Target& target, Siege* siege) {
  KeepSending(target, siege, kSolve, RepeatedField(1, "", kManyBytes, {2, 7}));
}
void EmptyWantedInputs(const Target& target, Siege* siege) {
  KeepSending(target, siege, kDifferentiate, RepeatedField(1, "", kManyBytes, {6}));
}
// A byte each on the wire and eight in memory, were they parsed.
void ManyLaws(const Target& target, Siege* siege) {
  constexpr size_t kLaws = 32 * kMB;
  KeepSending(target, siege, kSolve, RepeatedField(19, std::string(kLaws, '\1'), kLaws, {1, 4}));
}
void UnknownFields(const Target& target, Siege* siege) {
  KeepSending(target, siege, kSolve, RepeatedField(31, "", kManyBytes));
}

// As much as a batch may have: requests and derivatives of them. Of each of the four at once the
// server holds 6 MB received, 16 MB parsed, 50 MB of answer as objects, and 18 MB of it to send.
void LargestBatchesOfGradients(const Target& target, Siege* siege) {
  v1::DifferentiateBatchRequest batch;
  v1::DifferentiateRequest request;
  client::ToMessage(SmallProblem(), request.mutable_problem());
  for (int i = 0; i < 4; ++i) request.add_cotangents()->set_cost(1);
  for (int i = 0; i < 4096; ++i) *batch.add_requests() = request;
  KeepLoad(target, siege, kDifferentiateBatch, batch.SerializeAsString(), {.outstanding = 4}, 2);
}

void DifferentiationsNeverFinished(const Target& target, Siege* siege) {
  const std::string part(50 * kMB, 'a');
  for (int i = 0; i < 8; ++i) {
    const auto connection = siege->Hold(std::make_shared<Http2Connection>(target));
    const int call = connection->Begin(kDifferentiate);
    if (connection->Send(call, MessagePrefix(60 * kMB))) connection->Send(call, part);
  }
}

// Two clients have all threads of the solver, and the one beyond; small problems need none of them.
void EndlessBatchesOfTwoClients(const Target& target, Siege* siege) {
  const grpc::ByteBuffer message = ToBuffer(BatchRequest(SphereBlock(5), 100, ManyIterations()));
  for (const Target& client : {target, AsAccomplice(target)}) {
    siege->Hold(std::make_shared<HeldCall>(client, OpenChannel(client), kSolveBatch, message));
  }
}

void SmallProblemsWithManyIterations(const Target& target, Siege* siege) {
  KeepLoad(target, siege, kSolve, SolveRequest(SmallProblem(), ManyIterations()),
           {.outstanding = 64}, 8);
}

}  // namespace

std::vector<Attack> AttacksByClients() {
  return {
      {"EverythingHigh", EverythingHigh, 150, &Neighbour::SolveQueued, kAllQueued},
      {"EndlessSolvesBesideSmallOnes", EndlessSolves, 150},
      {"EndlessSolvesBesideQueuedOnes", EndlessSolves, 150, &Neighbour::SolveQueued, kAllQueued},
      {"UnreadAnswers", UnreadAnswers, 300, &Neighbour::SolveSmall, kFewBytes},
      {"UnreadBatches", UnreadBatches, 300, &Neighbour::SolveSmall, kFewBytes},
      {"UnreadGradients", UnreadGradients, 300, &Neighbour::SolveSmall, kFewBytes},
      {"UnreadSessions", UnreadSessions, 300, &Neighbour::SolveSmall, kFewBytes},
      {"LargeStepsAhead", LargeStepsAhead, 200, &Neighbour::SolveSmall, kFewBytes},
      {"SolvesNeverFinished", SolvesNeverFinished, 200, &Neighbour::SolveSmall, kFewBytes},
      {"UnfinishedCallsOfTwoClients", UnfinishedCallsOfTwoClients, 100},
      {"UnfinishedCallsUntilRefused", UnfinishedCallsUntilRefused, 150},
      {"UnfinishedCallsRenewed", UnfinishedCallsRenewed, 100},
      {.name = "UnfinishedCallsOfManyAddresses",
       .begin = UnfinishedCallsOfManyAddresses,
       .memory_MB = 100,
       .by_address = true},
      {"SessionsUntilRefused", SessionsUntilRefused, 150, &Neighbour::StepNewSession},
      {"RejectedCallsOutstanding",
       RejectedCallsOutstanding,
       900,
       &Neighbour::BeRejected,
       {"--max-client-calls", "1"}},
      {"BadlyPredictedProblems", BadlyPredictedProblems, 100, &Neighbour::SolveManyAtOnce,
       kAllQueued},
      {"ManySmallCalls", ManySmallCalls, 100},
      {"LargestBatches", LargestBatches, 200},
      {"GradientsWithoutEnd", GradientsWithoutEnd, 300},
      {"LargestBatchesOfGradients", LargestBatchesOfGradients, 4 * 95},
      {"EmptyProblems", EmptyProblems, 150},
      {"EmptyStreamedProblems", EmptyStreamedProblems, 150},
      {"EmptyDifferentiations", EmptyDifferentiations, 150},
      {"EmptyCotangents", EmptyCotangents, 150},
      {"EmptyTangents", EmptyTangents, 150},
      {"EmptyPaths", EmptyPaths, 150},
      {"EmptyWantedInputs", EmptyWantedInputs, 150},
      {"UnknownFields", UnknownFields, 150},
      {"ManyLaws", ManyLaws, 200},
      {"EndlessBatchesOfTwoClients", EndlessBatchesOfTwoClients, 150},
      {"DifferentiationsNeverFinished", DifferentiationsNeverFinished, 200, &Neighbour::SolveSmall,
       kFewBytes},
      {"SmallProblemsWithManyIterations", SmallProblemsWithManyIterations, 100},
  };
}

std::vector<Attack> AttacksByClientsThroughTheProxy() {
  return {{"UnfinishedCallsAtTheProxy", UnfinishedCallsAtTheProxy, 100}};
}

}  // namespace sap::test::hostile
