// The functions of sap_islands.h for files and messages.
#include <memory>
#include <string>
#include <utility>

#include "client/c/files.h"
#include "client/c/run_call.h"
#include "client/c/sap_islands.h"

struct sap_recording {
  explicit sap_recording(std::unique_ptr<sap::c::Recording> of) : recording(std::move(of)) {}

  std::unique_ptr<sap::c::Recording> recording;
};

namespace {

using sap::c::Fail;
using sap::c::RunOnAnswer;
using sap::c::Status;

// Runs `work(path)` unless there is no path.
template <typename Work>
Status WithPath(const char* path, const Work& work) {
  if (path == nullptr) return Fail(SAP_INVALID_ARGUMENT, "path is NULL", "path");
  return work(std::string(path));
}

template <typename Work>
Status WithBytes(const sap_bytes& bytes, const Work& work) {
  if (bytes.length < 0 || (bytes.data == nullptr && bytes.length > 0)) {
    return Fail(SAP_INVALID_ARGUMENT, "bytes are at NULL, or have a negative length", "bytes");
  }
  return work(std::string(static_cast<const char*>(bytes.data), bytes.length));
}

template <typename Work>
int32_t RunOn(sap_recording* recording, sap_answer* answer, const Work& work) noexcept {
  return RunOnAnswer(answer, [&](auto* content) -> Status {
    if (recording == nullptr) return Fail(SAP_INVALID_ARGUMENT, "the recording is NULL");
    return work(recording->recording.get(), content);
  });
}

int32_t OpenRecording(const char* path, sap::c::RecordingUse use, sap_recording** recording,
                      sap_answer* answer) noexcept {
  if (recording == nullptr) return SAP_INVALID_ARGUMENT;
  *recording = nullptr;
  return RunOnAnswer(answer, [&](sap::c::AnswerContent*) {
    return WithPath(path, [&](const std::string& file) -> Status {
      auto opened = sap::c::OpenRecording(file, use);
      if (!opened) return tl::unexpected(std::move(opened.error()));
      *recording = std::make_unique<sap_recording>(std::move(*opened)).release();
      return {};
    });
  });
}

}  // namespace

const sap_problem* sap_answer_problem(const sap_answer* answer) {
  return sap::c::ContentOf(answer).problem_struct();
}

const sap_record* sap_answer_record(const sap_answer* answer) {
  return sap::c::ContentOf(answer).record_struct();
}

sap_bytes sap_answer_bytes(const sap_answer* answer) { return sap::c::ContentOf(answer).bytes(); }

int32_t sap_format_problem(const sap_problem* problem, int32_t format, sap_answer* answer) {
  return RunOnAnswer(answer,
                     [&](auto* content) { return FormatProblem(problem, format, content); });
}

int32_t sap_format_solution(const sap_solution* solution, int32_t format, sap_answer* answer) {
  return RunOnAnswer(answer,
                     [&](auto* content) { return FormatSolution(solution, format, content); });
}

int32_t sap_parse_problem(sap_bytes bytes, int32_t format, sap_answer* answer) {
  return RunOnAnswer(answer, [&](auto* content) {
    return WithBytes(bytes, [&](const auto& text) { return ParseProblem(text, format, content); });
  });
}

int32_t sap_parse_solution(sap_bytes bytes, int32_t format, sap_answer* answer) {
  return RunOnAnswer(answer, [&](auto* content) {
    return WithBytes(bytes, [&](const auto& text) { return ParseSolution(text, format, content); });
  });
}

int32_t sap_save_problem(const sap_problem* problem, const char* path, sap_answer* answer) {
  return RunOnAnswer(answer, [&](auto* content) {
    return WithPath(path, [&](const auto& file) { return SaveProblem(problem, file, content); });
  });
}

int32_t sap_load_problem(const char* path, sap_answer* answer) {
  return RunOnAnswer(answer, [&](auto* content) {
    return WithPath(path, [&](const auto& file) { return LoadProblem(file, content); });
  });
}

int32_t sap_recording_open(const char* path, sap_recording** recording, sap_answer* answer) {
  return OpenRecording(path, sap::c::RecordingUse::kRead, recording, answer);
}

int32_t sap_recording_create(const char* path, sap_recording** recording, sap_answer* answer) {
  return OpenRecording(path, sap::c::RecordingUse::kWrite, recording, answer);
}

void sap_recording_free(sap_recording* recording) { delete recording; }

int32_t sap_recording_read(sap_recording* recording, sap_answer* answer) {
  return RunOn(recording, answer, [](auto* file, auto* content) { return file->Read(content); });
}

int32_t sap_recording_write(sap_recording* recording, const sap_record* record,
                            sap_answer* answer) {
  return RunOn(recording, answer, [&](auto* file, auto*) { return file->Write(record); });
}

int32_t sap_recording_close(sap_recording* recording, sap_answer* answer) {
  return RunOn(recording, answer, [](auto* file, auto*) { return file->Close(); });
}
