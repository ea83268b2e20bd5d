// Sessions whose connection was lost, kept for a while so that their clients can go on with them.
//
// A session can be asked for by its token while its old stream is still thought to be alive, since
// a client notices a lost connection before the server may. Then the old stream is to be ended, and
// the session is handed over once that has happened.
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
  std::vector<v1::StepOutcome> outcomes;  // of the last steps, which the client may lack
  std::string client;                     // only it may resume
};

// Whoever waits for a session. Called once, on any thread; null: it cannot be had.
class SessionClaimant {
 public:
  virtual void Resume(std::unique_ptr<DetachedSession> lost) = 0;

 protected:
  ~SessionClaimant() = default;
};

// A stream that has a session which can be resumed.
class SessionHolder {
 public:
  // The session is wanted elsewhere: end the stream, then Keep or Forget it. Any thread.
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

  // A new secret of 128 bits.
  static std::string NewToken();

  // The stream has the session of that token from now on, until Keep or Forget.
  void Hold(const std::string& token, SessionHolder* holder);
  // The stream has ended: the session is kept for whoever claims it, or given to who waits for it.
  void Keep(const std::string& token, std::unique_ptr<DetachedSession> lost);
  // The stream has ended in good order.
  void Forget(const std::string& token);

  // Hands the session over, now or later.
  void Claim(const std::string& token, const std::string& client, SessionClaimant* claimant);

  // Drops what nobody has claimed for too long; returns how many.
  int Sweep();
  // Drops the one that has been lost for longest; false if there is none.
  bool DropOldest();
  void DropAll();

  size_t size() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    SessionHolder* holder{nullptr};
    SessionClaimant* claimant{nullptr};  // waits for the holder
    std::string claiming_client;
    std::unique_ptr<DetachedSession> lost;
    Clock::time_point since;
  };

  const double keep_s_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace sap
