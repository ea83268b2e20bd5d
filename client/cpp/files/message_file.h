// Messages in files: JSON text, also gzipped. Internal.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <tl/expected.hpp>

#include "client/cpp/error.h"

namespace sap::client {

// The contents, inflated if gzipped. Errors name the file.
tl::expected<std::string, Error> ReadFile(const std::string& path);

// Gzipped where the name ends with .gz.
tl::expected<void, Error> WriteFile(const std::string& contents, const std::string& path);

// An unknown key is an error that names it. Doubles keep their bits.
tl::expected<void, Error> JsonToMessage(const std::string& text,
                                        google::protobuf::Message* message);

// With the field names of the schema. Doubles keep their bits; fields that are absent, 0 or empty
// are left out unless they are asked for.
std::string MessageToJson(const google::protobuf::Message& message, bool with_defaults = false);

}  // namespace sap::client
