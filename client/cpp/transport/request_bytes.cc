#include "client/cpp/transport/request_bytes.h"

#include <grpc/slice.h>
#include <grpcpp/support/slice.h>

#include <vector>

#include "proto/codec/problem_encoder.h"
#include "proto/codec/wire_fields.h"
#include "sap/v1/solver_service.grpc.pb.h"

namespace sap::client {
namespace {

using google::protobuf::internal::WireFormatLite;

// write(to) writes so many bytes.
template <typename Write>
grpc::ByteBuffer MakeBytes(size_t size, const Write& write) {
  grpc_slice memory = grpc_slice_malloc(size);
  write(GRPC_SLICE_START_PTR(memory));
  const grpc::Slice slice(memory, grpc::Slice::STEAL_REF);
  return {&slice, 1};
}

size_t FieldSize(int field, const ProblemBytes& problem) {
  return DelimitedSize(field, problem.size());
}
size_t FieldSize(int field, const v1::SolveOptions& options) {
  return DelimitedSize(field, options.ByteSizeLong());
}

uint8_t* WriteProblem(int field, const ProblemBytes& problem, uint8_t* to) {
  return problem.Write(WriteDelimiter(field, problem.size(), to));
}

}  // namespace

grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message) {
  return MakeBytes(message.ByteSizeLong(),
                   [&](uint8_t* to) { message.SerializeWithCachedSizesToArray(to); });
}

// One problem is a batch of one: the fields have the same numbers.
grpc::ByteBuffer SolveRequestBytes(const ContactProblemView& problem,
                                   const v1::SolveOptions& options) {
  return BatchRequestBytes({&problem, 1}, options);
}

grpc::ByteBuffer BatchRequestBytes(std::span<const ContactProblemView> problems,
                                   const v1::SolveOptions& options) {
  using Fields = v1::SolveBatchRequest;
  const std::vector<ProblemBytes> written(problems.begin(), problems.end());
  size_t size = FieldSize(Fields::kOptionsFieldNumber, options);
  for (const ProblemBytes& problem : written) {
    size += FieldSize(Fields::kProblemsFieldNumber, problem);
  }
  return MakeBytes(size, [&](uint8_t* to) {
    for (const ProblemBytes& problem : written) {
      to = WriteProblem(Fields::kProblemsFieldNumber, problem, to);
    }
    WriteMessage(Fields::kOptionsFieldNumber, options, to);
  });
}

grpc::ByteBuffer StepRequestBytes(uint64_t step_id, const ContactProblemView& problem,
                                  const std::optional<v1::SolveOptions>& options) {
  using Fields = v1::SessionStep;
  const ProblemBytes written(problem);
  size_t size = FieldSize(Fields::kProblemFieldNumber, written);
  // As protobuf: 0 is left out.
  if (step_id != 0) size += 1 + WireFormatLite::UInt64Size(step_id);
  if (options) size += FieldSize(Fields::kOptionsFieldNumber, *options);
  const int step = v1::SolveSessionRequest::kStepFieldNumber;
  return MakeBytes(DelimitedSize(step, size), [&](uint8_t* to) {
    to = WriteDelimiter(step, size, to);
    if (step_id != 0) {
      to = WireFormatLite::WriteUInt64ToArray(Fields::kStepIdFieldNumber, step_id, to);
    }
    to = WriteProblem(Fields::kProblemFieldNumber, written, to);
    if (options) WriteMessage(Fields::kOptionsFieldNumber, *options, to);
  });
}

v1::SolveSessionRequest ParseStep(const grpc::ByteBuffer& step) {
  v1::SolveSessionRequest message;
  grpc::ByteBuffer bytes(step);
  // Bytes of this process, which are a message.
  if (bytes.Valid()) {
    (void)grpc::SerializationTraits<v1::SolveSessionRequest>::Deserialize(&bytes, &message);
  }
  return message;
}

}  // namespace sap::client
