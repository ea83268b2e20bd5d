#include "client/cpp/files/recording_reader.h"

#include <fcntl.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sap::client {
namespace {

tl::unexpected<Error> Fail(const std::string& what, int code) {
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, what + ": " + std::strerror(code), ""});
}

}  // namespace

tl::expected<RecordingReader, Error> RecordingReader::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return Fail(path + ": cannot open", errno);
  return RecordingReader(path, descriptor);
}

RecordingReader::RecordingReader(std::string path, int descriptor)
    : path_(std::move(path)),
      stream_(std::make_unique<google::protobuf::io::FileInputStream>(descriptor)) {
  stream_->SetCloseOnDelete(true);
}

tl::expected<RecordingReader::Found, Error> RecordingReader::Next(v1::RecordedSolve* record) {
  record->Clear();
  bool ended = false;
  if (google::protobuf::util::ParseDelimitedFromZeroCopyStream(record, stream_.get(), &ended)) {
    return Found::kRecord;
  }
  // A length of more bytes than a varint has is left in the stream, as if it had ended.
  const void* rest = nullptr;
  int size = 0;
  const bool more = ended && stream_->Next(&rest, &size);
  if (stream_->GetErrno() != 0) return Fail(path_ + ": cannot read", stream_->GetErrno());
  return ended && !more ? Found::kEnd : Found::kIncomplete;
}

}  // namespace sap::client
