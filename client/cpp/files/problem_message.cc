#include "client/cpp/files/problem_message.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "client/cpp/files/message_file.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::client {
namespace {

constexpr std::array<const char*, 4> kExtraKeys = {"name", "source", "reference", "drake_velocity"};

tl::unexpected<Error> InvalidProblem(const std::string& message) {
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, message, ""});
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

// A key that an object of a JSON text has twice, of which protobuf would take the last; empty:
// there is none.
std::string RepeatedKey(const std::string& text) {
  std::vector<std::set<std::string_view>> objects;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') objects.emplace_back();
    if ((text[i] == '}' || text[i] == ']') && !objects.empty()) objects.pop_back();
    if (text[i] != '"') continue;
    const size_t start = ++i;
    while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
    if (i >= text.size()) break;
    const std::string_view string(&text[start], i - start);
    const size_t next = text.find_first_not_of(" \r\n\t", i + 1);
    const bool is_key = next != std::string::npos && text[next] == ':' && !objects.empty();
    if (is_key && !objects.back().insert(string).second) return std::string(string);
  }
  return "";
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

// A request in place of a problem, which it has inside.
std::string KindOfRequest(const std::string& text) {
  v1::SolveRequest solve;
  if (JsonToMessage(text, &solve)) return "SolveRequest";
  v1::DifferentiateRequest differentiate;
  if (JsonToMessage(text, &differentiate)) return "DifferentiateRequest";
  return "";
}

}  // namespace

tl::expected<v1::ContactProblem, Error> ProblemMessageFromJson(const std::string& text) {
  if (const size_t start = text.find_first_not_of(" \r\n\t");
      start == std::string::npos || text[start] != '{') {
    return InvalidProblem("a problem is a JSON object");
  }
  if (const std::string key = RepeatedKey(text); !key.empty()) {
    return InvalidProblem("key '" + key + "' appears twice");
  }
  v1::ContactProblem message;
  if (auto read = JsonToMessage(StripExtraKeys(text), &message); !read) {
    const std::string request = KindOfRequest(text);
    if (request.empty()) return tl::unexpected(read.error());
    return InvalidProblem("is a " + request + "; a problem is what its field 'problem' holds");
  }
  return message;
}

tl::expected<v1::ContactProblem, Error> LoadProblemMessage(const std::string& path) {
  const auto contents = ReadFile(path);
  if (!contents) return tl::unexpected(contents.error());
  if (LooksLikeJson(*contents)) {
    auto message = ProblemMessageFromJson(*contents);
    if (!message) message.error().message = path + ": " + message.error().message;
    return message;
  }
  v1::ContactProblem message;
  if (contents->empty() || !message.ParseFromString(*contents)) {
    return InvalidProblem(path + ": is neither JSON nor a sap.v1.ContactProblem");
  }
  return message;
}

}  // namespace sap::client
