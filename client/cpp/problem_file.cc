#include "client/cpp/problem_file.h"

#include "client/cpp/files/message_file.h"
#include "client/cpp/files/problem_message.h"
#include "client/cpp/transport/message_conversion.h"

namespace sap::client {

tl::expected<Problem, Error> ProblemFromJson(const std::string& text) {
  const auto message = ProblemMessageFromJson(text);
  if (!message) return tl::unexpected(message.error());
  return FromMessage(*message);
}

tl::expected<Problem, Error> LoadProblem(const std::string& path) {
  const auto message = LoadProblemMessage(path);
  if (!message) return tl::unexpected(message.error());
  auto problem = FromMessage(*message);
  if (!problem) problem.error().message = path + ": " + problem.error().message;
  return problem;
}

tl::expected<void, Error> SaveProblem(const Problem& problem, const std::string& path) {
  v1::ContactProblem message;
  ToMessage(problem, &message);
  std::string contents;
  if (path.ends_with(".json") || path.ends_with(".json.gz")) {
    contents = MessageToJson(message);
  } else if (!message.SerializeToString(&contents)) {
    return tl::unexpected(
        Error{ErrorCode::kInvalidArgument, path + ": is larger than the largest message", ""});
  }
  return WriteFile(contents, path);
}

}  // namespace sap::client
