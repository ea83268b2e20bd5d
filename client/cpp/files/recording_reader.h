// Reads the records of a recording one by one. Internal.
#pragma once

#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "client/cpp/error.h"
#include "sap/v1/recording.pb.h"

namespace sap::client {

class RecordingReader {
 public:
  enum class Found : uint8_t { kRecord, kEnd, kIncomplete };

  // Errors name the file.
  static tl::expected<RecordingReader, Error> Open(const std::string& path);

  // Replaces `record` by the next one. kIncomplete: the file ends within a record, as after a
  // crash, or what follows is none. An error if the file cannot be read.
  tl::expected<Found, Error> Next(v1::RecordedSolve* record);

 private:
  RecordingReader(std::string path, int descriptor);

  std::string path_;
  std::unique_ptr<google::protobuf::io::FileInputStream> stream_;
};

}  // namespace sap::client
