// The identity of a server, "VERSION INSTRUCTION_SET BOOT_ID", which it sends with what it has
// decided itself: in the trailing metadata of each call and in SessionOpened. What gRPC or a proxy
// decides has none.
//
// Bits of answers may change with version and instruction set. Independent calls take any server,
// so that a client outlives an upgrade. Answers that belong together (of a session, a batch stream,
// a divided scene, a replay) share a BuildPin: those of another build are refused with
// FAILED_PRECONDITION, reason OTHER_BUILD.
// Internal.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "client/cpp/backend/call_types.h"

namespace sap::client {

struct ServerIdentity {
  std::string_view build;    // "VERSION INSTRUCTION_SET"; servers with equal ones give equal bits
  std::string_view boot_id;  // of the process
};

// Views of the text; empty if that is no identity.
ServerIdentity ParseServerIdentity(std::string_view text);

std::string BuildName(const std::string& version, const std::string& instruction_set);

bool IsOtherBuild(const Error& error);

// The build of answers that belong together. Thread-safe.
class BuildPin {
 public:
  // Empty: that of the first answer.
  explicit BuildPin(std::string build = "") : build_(std::move(build)) {}

  // Whether an answer of this server may follow those before. A server of which nothing is known
  // may answer.
  Status Check(ServerIdentity server) const;
  // Checks the server of an answer, which sets the build if it is the first one.
  Status Take(ServerIdentity server);
  // Takes an answer of any server.
  void TakeAny(ServerIdentity server);
  // The next answer is the first one.
  void Forget();
  // Empty: there was no answer.
  std::string build() const;

 private:
  Status CheckLocked(ServerIdentity server) const;

  mutable std::mutex mutex_;
  std::string build_;
};

// A search among the servers of an address for one of the pinned build. They take calls in turn, so
// all have been asked once one of another build is met for the third time.
class BuildSearch {
 public:
  // After an answer of another build: whether to ask once more.
  bool GoesOn(const Error& other_build) { return ++met_[other_build.server] < kMostMeetings; }

 private:
  static constexpr int kMostMeetings = 3;

  std::map<std::string, int> met_;  // by boot id
};

}  // namespace sap::client
