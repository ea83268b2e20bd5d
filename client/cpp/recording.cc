#include "client/cpp/recording.h"

#include <google/protobuf/util/delimited_message_util.h>
#include <google/protobuf/util/time_util.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "client/cpp/transport/message_conversion.h"
#include "sap/v1/recording.pb.h"

namespace sap::client {

tl::expected<RecordingWriter, Error> RecordingWriter::Create(const std::string& path,
                                                             const ServerInfo& server) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  RecordingWriter writer(path, server, std::move(file));
  if (!writer.file_) return writer.CannotWrite();
  return writer;
}

RecordingWriter::RecordingWriter(std::string path, const ServerInfo& server, std::ofstream file)
    : path_(std::move(path)),
      version_(server.version),
      instruction_set_(server.instruction_set),
      file_(std::move(file)) {}

tl::expected<void, Error> RecordingWriter::Append(const Problem& problem,
                                                  const SolveOptions& options,
                                                  const tl::expected<Solution, Error>& answer,
                                                  double duration_s) {
  using google::protobuf::util::TimeUtil;
  v1::RecordedSolve record;
  record.set_version(version_);
  record.set_instruction_set(instruction_set_);
  *record.mutable_arrival_time() =
      TimeUtil::GetCurrentTime() - TimeUtil::NanosecondsToDuration(std::llround(duration_s * 1e9));
  ToMessage(problem, record.mutable_problem());
  ToMessage(options, record.mutable_options());
  if (answer) {
    ToMessage(*answer, record.mutable_outcome()->mutable_solution());
  } else {
    ToMessage(answer.error(), record.mutable_outcome()->mutable_failure());
  }
  record.set_duration_s(duration_s);
  return Append(record);
}

tl::expected<void, Error> RecordingWriter::Append(const v1::RecordedSolve& record) {
  errno = 0;
  if (!google::protobuf::util::SerializeDelimitedToOstream(record, &file_)) return CannotWrite();
  return {};
}

tl::expected<void, Error> RecordingWriter::Close() {
  errno = 0;
  file_.close();
  if (!file_) return CannotWrite();
  return {};
}

tl::unexpected<Error> RecordingWriter::CannotWrite() const {
  const std::string reason = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, path_ + ": cannot write" + reason, ""});
}

}  // namespace sap::client
