#include "client/cpp/bench/recorded_load.h"

#include <algorithm>
#include <vector>

#include "client/cpp/files/recording_reader.h"
#include "client/cpp/transport/message_conversion.h"

namespace sap::client {

tl::expected<void, Error> AddRecording(const std::string& path, double speed, Load* load) {
  auto reader = RecordingReader::Open(path);
  if (!reader) return tl::unexpected(reader.error());
  std::vector<v1::RecordedSolve> records;
  v1::RecordedSolve record;
  while (true) {
    const auto found = reader->Next(&record);
    if (!found) return tl::unexpected(found.error());
    // The last record may be incomplete, as after a crash.
    if (*found != RecordingReader::Found::kRecord) break;
    if (record.has_problem()) records.push_back(std::move(record));
  }
  if (records.empty()) {
    return tl::unexpected(
        Error{ErrorCode::kInvalidArgument, path + ": is not a recording with problems", ""});
  }
  const auto arrival_s = [](const v1::RecordedSolve& record) {
    const google::protobuf::Timestamp& time = record.arrival_time();
    return static_cast<double>(time.seconds()) + 1e-9 * time.nanos();
  };
  // Records are in the order of the answers.
  std::ranges::stable_sort(records, {}, arrival_s);
  const double first_s = arrival_s(records.front());
  for (v1::RecordedSolve& record : records) {
    if (speed > 0) load->due_s.push_back((arrival_s(record) - first_s) / speed);
    auto problem = FromMessage(record.problem());
    if (!problem) return tl::unexpected(problem.error());
    load->problems.push_back(std::move(*problem));
  }
  return {};
}

}  // namespace sap::client
