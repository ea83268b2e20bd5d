// Breaking changes of a schema: what clients of the old schema lose with the new one.
//
// Clients rely on the wire (numbers, types, labels) and on JSON (names). Additions are no change;
// everything else that was there must stay as it was.
#pragma once

#include <google/protobuf/descriptor.pb.h>

#include <string>
#include <vector>

namespace sap {

// One line per breaking change: "sap.v1.Contacts field 7 (friction) is gone". Messages, enums and
// services are compared by their full names, wherever their files are.
std::vector<std::string> BreakingSchemaChanges(const google::protobuf::FileDescriptorSet& before,
                                               const google::protobuf::FileDescriptorSet& now);

}  // namespace sap
