// Sessions that lost their connection, kept for a limited time so that their clients can resume
// them.
//
// A client may notice a lost connection before the server does. A claim for a session whose old
// stream is still open first ends that stream; the session is handed over once it has ended.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sap/v1/solver_service.pb.h"
#include "server/engine/session.h"

namespace sap {

struct DetachedSession {
  std::unique_ptr<Session> session;
  std::vector<v1::StepOutcome>
      outcomes;        // of the last steps; the client may not have received them
  std::string client;  // the only client that may resume the session
};

// A stream that waits for a session. Resume is called once, on any thread; null: the session is not
// available.
class SessionClaimant {
 public:
  virtual void Resume(std::unique_ptr<DetachedSession> detached) = 0;

 protected:
  ~SessionClaimant() = default;
};

// A stream that owns a resumable session.
class SessionHolder {
 public:
  // Another stream claims the session: end this stream, then call Keep or Forget. Any thread.
  virtual void GiveUp() = 0;

 protected:
  ~SessionHolder() = default;
};

// Thread-safe.
class DetachedSessions {
 public:
  explicit DetachedSessions(double keep_s) : keep_s_(keep_s) {}
  ~DetachedSessions();

  bool keeps() const { return keep_s_ > 0; }

  // A new random token of 128 bits.
  static std::string NewToken();

  // Registers the stream as the owner of the session until Keep or Forget.
  void Hold(const std::string& token, SessionHolder* holder);
  // The stream has ended. Keeps the session for a later claim, or hands it to a waiting claimant.
  void Keep(const std::string& token, std::unique_ptr<DetachedSession> detached);
  // The stream has ended normally; the session is not resumable.
  void Forget(const std::string& token);

  // Hands the session to the claimant, immediately or once the owning stream has ended.
  void Claim(const std::string& token, const std::string& client, SessionClaimant* claimant);

  // Drops sessions that were detached for longer than the limit; returns their number.
  int Sweep();
  // Drops the session that was detached first; false if there is none.
  bool DropOldest();
  void DropAll();

  size_t size() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    SessionHolder* holder{nullptr};
    SessionClaimant* claimant{nullptr};  // waits for the holder's stream to end
    std::string claiming_client;
    std::unique_ptr<DetachedSession> detached;
    Clock::time_point since;
  };

  const double keep_s_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace sap
