#include "client/cpp/solution_json.h"

#include "client/cpp/files/message_file.h"
#include "client/cpp/transport/message_conversion.h"

namespace sap::client {

std::string SolutionToJson(const Solution& solution) {
  v1::ContactSolution message;
  ToMessage(solution, &message);
  return MessageToJson(message, /*with_defaults=*/true);
}

}  // namespace sap::client
