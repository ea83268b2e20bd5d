// Recordings written by a client: problems with their answers, to be solved again bit for bit. A
// server writes the same format with --record; proto/sap/v1/recording.proto describes it.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <tl/expected.hpp>

#include "client/cpp/client.h"
#include "client/cpp/error.h"
#include "client/cpp/problem.h"
#include "client/cpp/solution.h"

namespace sap::client {

class RecordingWriter {
 public:
  // Replaces the file. `server` is who answers, as told by Client::Info.
  static tl::expected<RecordingWriter, Error> Create(const std::string& path,
                                                     const ServerInfo& server);

  // The problem with the guess that it was solved from, also where a session supplied it, and all
  // fields of the answer. Goes to the disk when the writer is closed, or before.
  tl::expected<void, Error> Append(const Problem& problem, const SolveOptions& options,
                                   const tl::expected<Solution, Error>& answer, double duration_s);

  // Says whether all of it has reached the file.
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
