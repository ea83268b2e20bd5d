// The style that the schema keeps, so that every client reads it the same way.
//
//   - the package is the directory and ends in a major version
//   - every message, field, enum, value, service and call has a comment
//   - messages and calls are CamelCase, fields snake_case, enum values THE_ENUM_VALUE
//   - value 0 of an enum is THE_ENUM_UNSPECIFIED, and no two values share a number
//   - a service is named ...Service; a call has a request and a response of its own, named after it
//   - repeated integers have a fixed width, which parses as fast as a copy
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace sap {

// One line per broken rule, naming what breaks it: "sap.v1.Contacts.tree_a has no comment". The
// file must have been built with its source info.
std::vector<std::string> BrokenSchemaRules(const google::protobuf::FileDescriptor& file);

}  // namespace sap
