// Files and messages behind the C interface, by those of the client for C++.
#include "client/c/files.h"

#include <google/protobuf/util/time_util.h>

#include <optional>
#include <utility>

#include "client/c/struct_reader.h"
#include "client/c/transport/struct_messages.h"
#include "client/cpp/files/message_file.h"
#include "client/cpp/files/problem_message.h"
#include "client/cpp/files/recording_reader.h"
#include "client/cpp/recording.h"
#include "client/cpp/transport/message_conversion.h"
#include "proto/codec/wanted_inputs.h"

namespace sap::c {
namespace {

using google::protobuf::Message;

Status CheckFormat(int32_t format) {
  if (format == SAP_FORMAT_BINARY || format == SAP_FORMAT_JSON) return {};
  return Fail(SAP_INVALID_ARGUMENT,
              "format is " + std::to_string(format) + "; this version knows 0 and 1", "format");
}

// The bytes or the JSON of a message.
Status Format(const Message& message, int32_t format, AnswerContent* answer) {
  if (Status known = CheckFormat(format); !known) return known;
  std::string bytes;
  if (format == SAP_FORMAT_JSON) {
    bytes = client::MessageToJson(message);
  } else if (!message.SerializeToString(&bytes)) {
    return Fail(SAP_INVALID_ARGUMENT, "it is larger than the largest message");
  }
  answer->SetBytes(std::move(bytes));
  return {};
}

// `where` precedes what is wrong with the values of a message.
Status SetProblem(const tl::expected<v1::ContactProblem, client::Error>& message,
                  const std::string& where, AnswerContent* answer) {
  if (!message) return tl::unexpected(message.error());
  auto problem = client::FromMessage(*message);
  if (!problem) {
    problem.error().message.insert(0, where);
    return tl::unexpected(problem.error());
  }
  answer->SetProblem(std::move(*problem), GivenIn(*message));
  return {};
}

class RecordingFile final : public Recording {
 public:
  RecordingFile(std::string path, client::RecordingReader reader)
      : path_(std::move(path)), reader_(std::move(reader)) {}
  RecordingFile(std::string path, client::RecordingWriter writer)
      : path_(std::move(path)), writer_(std::move(writer)) {}

  Status Read(AnswerContent* answer) override {
    using Found = client::RecordingReader::Found;
    if (!reader_) return Fail(SAP_INVALID_ARGUMENT, path_ + ": is not open to be read");
    v1::RecordedSolve message;
    const auto found = reader_->Next(&message);
    if (!found) return tl::unexpected(found.error());
    if (*found == Found::kEnd) return {};
    if (*found == Found::kIncomplete) {
      return Fail(SAP_INVALID_ARGUMENT,
                  path_ + ": record " + std::to_string(count_) + " is truncated or malformed");
    }
    ++count_;
    auto record = RecordOf(message);
    if (!record) return tl::unexpected(record.error());
    answer->SetRecord(std::move(*record));
    return {};
  }

  Status Write(const sap_record* given) override {
    if (!writer_) return Fail(SAP_INVALID_ARGUMENT, path_ + ": is not open to be written");
    auto message = ToMessage(given);
    if (!message) return tl::unexpected(message.error());
    return writer_->Append(*message);
  }

  Status Close() override {
    if (reader_) return reader_.reset(), Status();
    return writer_->Close();
  }

 private:
  const std::string path_;
  std::optional<client::RecordingReader> reader_;
  std::optional<client::RecordingWriter> writer_;
  int count_{0};
};

}  // namespace

bool HasTransport() { return true; }

Status FormatProblem(const sap_problem* problem, int32_t format, AnswerContent* answer) {
  const auto message = ToMessage(problem);
  if (!message) return tl::unexpected(message.error());
  return Format(*message, format, answer);
}

Status FormatSolution(const sap_solution* solution, int32_t format, AnswerContent* answer) {
  const auto message = ToMessage(solution);
  if (!message) return tl::unexpected(message.error());
  return Format(*message, format, answer);
}

Status ParseProblem(const std::string& bytes, int32_t format, AnswerContent* answer) {
  if (Status known = CheckFormat(format); !known) return known;
  if (format == SAP_FORMAT_JSON) {
    return SetProblem(client::ProblemMessageFromJson(bytes), "", answer);
  }
  v1::ContactProblem message;
  if (!message.ParseFromString(bytes)) {
    return Fail(SAP_INVALID_ARGUMENT, "the bytes are no sap.v1.ContactProblem");
  }
  return SetProblem(std::move(message), "", answer);
}

Status ParseSolution(const std::string& bytes, int32_t format, AnswerContent* answer) {
  if (Status known = CheckFormat(format); !known) return known;
  v1::ContactSolution message;
  if (format == SAP_FORMAT_JSON) {
    Status read = client::JsonToMessage(bytes, &message);
    if (!read) return read;
  } else if (!message.ParseFromString(bytes)) {
    return Fail(SAP_INVALID_ARGUMENT, "the bytes are no sap.v1.ContactSolution");
  }
  return Put(client::FromMessage(message), /*warm_started=*/false, answer);
}

Status SaveProblem(const sap_problem* problem, const std::string& path, AnswerContent* answer) {
  const bool json = path.ends_with(".json") || path.ends_with(".json.gz");
  Status formatted = FormatProblem(problem, json ? SAP_FORMAT_JSON : SAP_FORMAT_BINARY, answer);
  if (!formatted) return formatted;
  const sap_bytes bytes = answer->bytes();
  const std::string contents(static_cast<const char*>(bytes.data), bytes.length);
  answer->Clear();
  return client::WriteFile(contents, path);
}

Status LoadProblem(const std::string& path, AnswerContent* answer) {
  return SetProblem(client::LoadProblemMessage(path), path + ": ", answer);
}

tl::expected<std::unique_ptr<Recording>, Error> OpenRecording(const std::string& path,
                                                              RecordingUse use) {
  if (use == RecordingUse::kRead) {
    auto reader = client::RecordingReader::Open(path);
    if (!reader) return tl::unexpected(reader.error());
    return std::make_unique<RecordingFile>(path, std::move(*reader));
  }
  auto writer = client::RecordingWriter::Create(path, {});
  if (!writer) return tl::unexpected(writer.error());
  return std::make_unique<RecordingFile>(path, std::move(*writer));
}

}  // namespace sap::c
