#include "client/cpp/problem_file.h"

#include <google/protobuf/util/json_util.h>
#include <zlib.h>

#include <array>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/cpp/messages.h"

namespace sap::client {
namespace {

using google::protobuf::util::JsonParseOptions;
using google::protobuf::util::JsonPrintOptions;

constexpr std::array<const char*, 4> kExtraKeys = {"name", "source", "reference", "drake_velocity"};
// Beyond what a message can be there is nothing to read.
constexpr size_t kLargestFile_bytes = size_t{1} << 31;
constexpr unsigned kChunk_bytes = 1 << 20;

using GzFile = std::unique_ptr<gzFile_s, int (*)(gzFile)>;

tl::unexpected<Error> Fail(const std::string& message) {
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, message, ""});
}

tl::unexpected<Error> FailWithErrno(const std::string& path, const std::string& what) {
  return Fail(path + ": " + what + ": " + std::strerror(errno));
}

// The contents, inflated if they are gzipped: zlib passes other files through.
tl::expected<std::string, Error> ReadFile(const std::string& path) {
  errno = 0;
  const GzFile file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) return FailWithErrno(path, "cannot open");
  std::string contents;
  while (true) {
    const size_t size = contents.size();
    if (size > kLargestFile_bytes) return Fail(path + ": is larger than any problem can be");
    contents.resize(size + kChunk_bytes);
    const int count = gzread(file.get(), contents.data() + size, kChunk_bytes);
    if (count < 0) {
      int code = Z_OK;
      const std::string reason = gzerror(file.get(), &code);
      return code == Z_ERRNO ? FailWithErrno(path, "cannot read")
                             : Fail(path + ": cannot inflate: " + reason);
    }
    contents.resize(size + static_cast<size_t>(count));
    if (count == 0) return contents;
  }
}

tl::expected<void, Error> WriteFile(const std::string& contents, const std::string& path) {
  errno = 0;
  const char* const mode = path.ends_with(".gz") ? "wb" : "wbT";  // T: as it is, without gzip
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

// No binary problem starts with any of these: they would be tags of fields that it does not have.
bool LooksLikeJson(const std::string& contents) {
  return !contents.empty() && std::strchr("{[ \r\n\xEF", contents[0]) != nullptr;
}

// The text of the JSON object without the extra keys, which protobuf would refuse.
tl::expected<std::string, Error> StripExtraKeys(const std::string& text) {
  using Json = nlohmann::json;
  const auto keep = [](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth != 1 || event != Json::parse_event_t::key) return true;
    const std::string& key = parsed.get_ref<const std::string&>();
    return std::find(kExtraKeys.begin(), kExtraKeys.end(), key) == kExtraKeys.end();
  };
  try {
    const Json problem = Json::parse(text, keep);
    if (!problem.is_object()) return Fail("a problem is a JSON object");
    return problem.dump();
  } catch (const Json::exception& error) {
    return Fail(error.what());
  }
}

}  // namespace

tl::expected<Problem, Error> ProblemFromJson(const std::string& text) {
  const auto stripped = StripExtraKeys(text);
  if (!stripped) return tl::unexpected(stripped.error());
  v1::ContactProblem message;
  const auto status =
      google::protobuf::util::JsonStringToMessage(*stripped, &message, JsonParseOptions());
  if (!status.ok()) return Fail(std::string(status.message()));
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
    if (!status.ok()) return Fail(path + ": " + std::string(status.message()));
  } else if (!message.SerializeToString(&contents)) {
    return Fail(path + ": is larger than a message can be");
  }
  return WriteFile(contents, path);
}

}  // namespace sap::client
