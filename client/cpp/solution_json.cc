#include "client/cpp/solution_json.h"

#include <google/protobuf/util/json_util.h>

#include "client/cpp/transport/message_conversion.h"

namespace sap::client {

std::string SolutionToJson(const Solution& solution) {
  v1::ContactSolution message;
  ToMessage(solution, &message);
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  // Can fail only on strings that are not UTF-8 and on unknown types; the message has neither.
  (void)google::protobuf::util::MessageToJsonString(message, &text, options);
  return text;
}

}  // namespace sap::client
