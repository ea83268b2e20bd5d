#include "client/cpp/bench/recorded_load.h"

#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "client/cpp/transport/message_conversion.h"
#include "sap/v1/recording.pb.h"

namespace sap::client {

tl::expected<void, Error> AddRecording(const std::string& path, double speed, Load* load) {
  std::ifstream file(path, std::ios::binary);
  google::protobuf::io::IstreamInputStream stream(&file);
  std::vector<v1::RecordedSolve> records;
  // The last record may be incomplete, as after a crash.
  for (v1::RecordedSolve record;
       google::protobuf::util::ParseDelimitedFromZeroCopyStream(&record, &stream, nullptr);) {
    if (record.has_problem()) records.push_back(std::move(record));
    record.Clear();
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
