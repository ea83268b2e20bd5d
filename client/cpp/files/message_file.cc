#include "client/cpp/files/message_file.h"

#include <google/protobuf/util/json_util.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace sap::client {
namespace {

// The largest size of a protobuf message: a larger file cannot hold one.
constexpr size_t kLargestFile_bytes = size_t{1} << 31;
constexpr unsigned kChunk_bytes = 1 << 20;

using GzFile = std::unique_ptr<gzFile_s, int (*)(gzFile)>;

tl::unexpected<Error> Fail(const std::string& message) {
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, message, ""});
}

tl::unexpected<Error> FailWithErrno(const std::string& path, const std::string& what) {
  return Fail(path + ": " + what + ": " + std::strerror(errno));
}

// Replaces -0 by -0.0: protobuf prints -0, reads it back as an integer and loses the sign, which
// selects the frame of a contact whose normal has nz = -0.
std::string KeepNegativeZeros(const std::string& text) {
  std::string kept;
  kept.reserve(text.size());
  size_t copied = 0;
  for (size_t at = text.find("-0"); at != std::string::npos; at = text.find("-0", at + 2)) {
    const bool starts = at == 0 || std::strchr("[,: \t\r\n", text[at - 1]) != nullptr;
    const bool ends = at + 2 == text.size() || std::strchr(",]} \t\r\n", text[at + 2]) != nullptr;
    if (!starts || !ends) continue;
    kept.append(text, copied, at + 2 - copied).append(".0");
    copied = at + 2;
  }
  return kept.append(text, copied);
}

}  // namespace

// zlib passes files through that are not gzipped.
tl::expected<std::string, Error> ReadFile(const std::string& path) {
  errno = 0;
  const GzFile file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) return FailWithErrno(path, "cannot open");
  std::string contents;
  while (true) {
    const size_t size = contents.size();
    if (size > kLargestFile_bytes) return Fail(path + ": is larger than the largest message");
    contents.resize(size + kChunk_bytes);
    const int count = gzread(file.get(), contents.data() + size, kChunk_bytes);
    contents.resize(size + static_cast<size_t>(std::max(count, 0)));
    if (count > 0) continue;
    // A truncated archive differs from a complete one only by this code.
    int code = Z_OK;
    const std::string reason = gzerror(file.get(), &code);
    if (code == Z_ERRNO) return FailWithErrno(path, "cannot read");
    if (code != Z_OK) return Fail(std::string(path).append(": cannot inflate: ").append(reason));
    return contents;
  }
}

tl::expected<void, Error> WriteFile(const std::string& contents, const std::string& path) {
  errno = 0;
  const char* const mode = path.ends_with(".gz") ? "wb" : "wbT";  // T: not compressed
  GzFile file(gzopen(path.c_str(), mode), gzclose);
  if (file == nullptr) return FailWithErrno(path, "cannot open");
  for (size_t start = 0; start < contents.size(); start += kChunk_bytes) {
    const size_t count = std::min<size_t>(kChunk_bytes, contents.size() - start);
    if (gzwrite(file.get(), contents.data() + start, static_cast<unsigned>(count)) <= 0) {
      return FailWithErrno(path, "cannot write");
    }
  }
  if (gzclose(file.release()) != Z_OK) return FailWithErrno(path, "cannot write");
  return {};
}

tl::expected<void, Error> JsonToMessage(const std::string& text,
                                        google::protobuf::Message* message) {
  const auto status = google::protobuf::util::JsonStringToMessage(KeepNegativeZeros(text), message);
  if (!status.ok()) return Fail(status.message().ToString());
  return {};
}

std::string MessageToJson(const google::protobuf::Message& message, bool with_defaults) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = with_defaults;
  std::string text;
  // Can fail only on strings that are not UTF-8 and on unknown types; messages of sap.v1 that this
  // library prints have neither.
  (void)google::protobuf::util::MessageToJsonString(message, &text, options);
  return text;
}

}  // namespace sap::client
