#include "client/cpp/problem_file.h"

#include <google/protobuf/util/json_util.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "client/cpp/transport/message_conversion.h"

namespace sap::client {
namespace {

using google::protobuf::util::JsonParseOptions;
using google::protobuf::util::JsonPrintOptions;

constexpr std::array<const char*, 4> kExtraKeys = {"name", "source", "reference", "drake_velocity"};
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

// The contents, inflated if gzipped: zlib passes other files through.
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

// A binary problem starts with none of these: they are tags of fields that it does not have.
bool LooksLikeJson(const std::string& contents) {
  return !contents.empty() && std::strchr("{[ \r\n", contents[0]) != nullptr;
}

// End of the JSON value that starts at `start`: the position of the comma or bracket after it. Only
// strings and brackets are parsed; protobuf checks the value itself.
size_t EndOfValue(const std::string& text, size_t start) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = start; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth < 0) return i;
    } else if (c == ',' && depth == 0) {
      return i;
    }
  }
  return text.size();
}

// The text of a JSON object without the extra keys, which protobuf would reject. The rest is kept
// as text, since parsing and printing numbers could change their bits.
std::string StripExtraKeys(const std::string& text) {
  std::string stripped = "{";
  for (size_t start = text.find('{') + 1; start < text.size();) {
    const size_t end = EndOfValue(text, start);
    const size_t quote = text.find('"', start);
    const auto is_key = [&](const std::string& key) {
      return quote < end && text.compare(quote + 1, key.size() + 1, key + '"') == 0;
    };
    if (std::none_of(kExtraKeys.begin(), kExtraKeys.end(), is_key)) {
      if (stripped.size() > 1) stripped += ',';
      stripped.append(text, start, end - start);
    }
    if (end == text.size() || text[end] != ',') return stripped.append(text, end);
    start = end + 1;
  }
  return stripped;
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

tl::expected<Problem, Error> ProblemFromJson(const std::string& text) {
  if (const size_t start = text.find_first_not_of(" \r\n\t");
      start == std::string::npos || text[start] != '{') {
    return Fail("a problem is a JSON object");
  }
  v1::ContactProblem message;
  const JsonParseOptions options;
  const auto status = google::protobuf::util::JsonStringToMessage(
      KeepNegativeZeros(StripExtraKeys(text)), &message, options);
  if (!status.ok()) return Fail(status.message().ToString());
  return FromMessage(message);
}

tl::expected<Problem, Error> LoadProblem(const std::string& path) {
  const auto contents = ReadFile(path);
  if (!contents) return tl::unexpected(contents.error());
  if (LooksLikeJson(*contents)) {
    auto problem = ProblemFromJson(*contents);
    if (!problem) problem.error().message = path + ": " + problem.error().message;
    return problem;
  }
  v1::ContactProblem message;
  if (contents->empty() || !message.ParseFromString(*contents)) {
    return Fail(path + ": is neither JSON nor a sap.v1.ContactProblem");
  }
  return FromMessage(message);
}

tl::expected<void, Error> SaveProblem(const Problem& problem, const std::string& path) {
  v1::ContactProblem message;
  ToMessage(problem, &message);
  std::string contents;
  if (path.ends_with(".json") || path.ends_with(".json.gz")) {
    JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    const auto status = google::protobuf::util::MessageToJsonString(message, &contents, options);
    if (!status.ok()) return Fail(path + ": " + status.message().ToString());
  } else if (!message.SerializeToString(&contents)) {
    return Fail(path + ": is larger than the largest message");
  }
  return WriteFile(contents, path);
}

}  // namespace sap::client
