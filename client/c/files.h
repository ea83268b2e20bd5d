// Files and messages behind the C interface. Of the definitions, transport/ has those of
// libsap_islands_client, no_transport.cc those of libsap_islands.
#pragma once

#include <memory>
#include <string>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "client/c/sap_islands.h"

namespace sap::c {

bool HasTransport();

Status FormatProblem(const sap_problem* problem, int32_t format, AnswerContent* answer);
Status FormatSolution(const sap_solution* solution, int32_t format, AnswerContent* answer);
Status ParseProblem(const std::string& bytes, int32_t format, AnswerContent* answer);
Status ParseSolution(const std::string& bytes, int32_t format, AnswerContent* answer);
Status SaveProblem(const sap_problem* problem, const std::string& path, AnswerContent* answer);
Status LoadProblem(const std::string& path, AnswerContent* answer);

class Recording {
 public:
  virtual ~Recording() = default;
  virtual Status Read(AnswerContent* answer) = 0;
  virtual Status Write(const sap_record* record) = 0;
  virtual Status Close() = 0;
};

enum class RecordingUse : uint8_t { kRead, kWrite };
tl::expected<std::unique_ptr<Recording>, Error> OpenRecording(const std::string& path,
                                                              RecordingUse use);

}  // namespace sap::c
