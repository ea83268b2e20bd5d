// A client in one of our languages, behind the types of the one for C++, so that the suites run
// through all of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "client/cpp/client.h"

namespace sap::test {

// The C library, and both faces of the Python package, each in a process of its own.
enum class Language : uint8_t { kCpp, kC, kPython, kPythonAsyncio };

std::string Name(Language language);
inline void PrintTo(Language language, std::ostream* out) { *out << Name(language); }

// Languages that can be tested here: C where its library is built, Python where the environment
// variable SAP_PYTHON names an interpreter with the package, as for tests/deploy/test_suites.py.
const std::vector<Language>& Languages();

// Language of one of several clients: they take turns.
inline Language LanguageOf(size_t number) { return Languages()[number % Languages().size()]; }

using Outcome = client::Client::SolveOutcome;

// Used by one thread at a time.
class TestedSession {
 public:
  virtual ~TestedSession() = default;
  virtual Outcome Step(const client::Problem& problem) = 0;
  virtual tl::expected<void, client::Error> Send(const client::Problem& problem) = 0;
  virtual tl::expected<client::StepOutcome, client::Error> Receive() = 0;
  virtual tl::expected<void, client::Error> Close() = 0;
};

// Thread-safe.
class TestedClient {
 public:
  virtual ~TestedClient() = default;
  virtual Outcome Solve(const client::Problem& problem) = 0;
  virtual std::vector<Outcome> SolveBatch(std::span<const client::Problem> problems) = 0;
  virtual tl::expected<void, client::Error> StreamBatch(std::span<const client::Problem> problems,
                                                        const client::Client::BatchSink& sink) = 0;
  virtual tl::expected<std::unique_ptr<TestedSession>, client::Error> OpenSession() = 0;
};

using Connected = tl::expected<std::unique_ptr<TestedClient>, client::Error>;

// Heeds times and credentials of the options. The deadline is that of each call, and of a session.
Connected Connect(Language language, const std::string& address,
                  const client::ConnectOptions& options,
                  std::optional<std::chrono::nanoseconds> deadline = std::nullopt);

// Connect by the client of one language each.
Connected ConnectCpp(const std::string& address, const client::ConnectOptions& options,
                     std::optional<std::chrono::nanoseconds> deadline);
Connected ConnectC(const std::string& address, const client::ConnectOptions& options,
                   std::optional<std::chrono::nanoseconds> deadline);
// The face is "sync" or "asyncio".
Connected ConnectPython(const std::string& face, const std::string& address,
                        const client::ConnectOptions& options,
                        std::optional<std::chrono::nanoseconds> deadline);

}  // namespace sap::test
