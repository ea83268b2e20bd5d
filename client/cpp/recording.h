// Writes recordings: problems with their answers, for a replay that compares bit for bit. A server
// writes the same format with --record; see proto/sap/v1/recording.proto.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <tl/expected.hpp>

#include "client/cpp/client.h"
#include "client/cpp/error.h"
#include "client/cpp/problem.h"
#include "client/cpp/solution.h"

namespace sap::v1 {
class RecordedSolve;
}

namespace sap::client {

class RecordingWriter {
 public:
  // Creates or replaces the file. `server` is the Client::Info of the server that answers.
  static tl::expected<RecordingWriter, Error> Create(const std::string& path,
                                                     const ServerInfo& server);

  // Appends one record. The problem needs the guess that it was solved from, even if a session
  // supplied it, and the answer all of its fields. Buffered until Close.
  tl::expected<void, Error> Append(const Problem& problem, const SolveOptions& options,
                                   const tl::expected<Solution, Error>& answer, double duration_s);

  // Appends a record in the form of the file.
  tl::expected<void, Error> Append(const v1::RecordedSolve& record);

  // Writes what is buffered. An error if any part did not reach the file.
  tl::expected<void, Error> Close();

 private:
  RecordingWriter(std::string path, const ServerInfo& server, std::ofstream file);

  tl::unexpected<Error> CannotWrite() const;

  std::string path_;
  std::string version_;
  std::string instruction_set_;
  std::ofstream file_;
};

}  // namespace sap::client
