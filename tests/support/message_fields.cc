#include "tests/support/message_fields.h"

namespace sap::test {

using google::protobuf::FieldDescriptor;

FieldPlace FindField(const std::string& path, google::protobuf::Message* message) {
  const size_t dot = path.find('.');
  const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(path.substr(0, dot));
  GOOGLE_CHECK(field != nullptr) << path;
  if (dot == std::string::npos) return {message, field};
  return FindField(path.substr(dot + 1), message->GetReflection()->MutableMessage(message, field));
}

std::vector<std::string> ArrayPaths(const google::protobuf::Descriptor& descriptor,
                                    FieldDescriptor::CppType type) {
  std::vector<std::string> paths;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor* group = descriptor.field(i);
    if (group->message_type() == nullptr) continue;
    for (int j = 0; j < group->message_type()->field_count(); ++j) {
      const FieldDescriptor* field = group->message_type()->field(j);
      if (field->is_repeated() && field->cpp_type() == type) {
        paths.push_back(group->name() + "." + field->name());
      }
    }
  }
  return paths;
}

}  // namespace sap::test
