#include "tests/support/message_fields.h"

namespace sap::test {

using google::protobuf::FieldDescriptor;

namespace {

// Sets a field, or adds an entry to an array, to a value made of a number.
void Put(const FieldDescriptor* field, int number, google::protobuf::Message* message) {
  const google::protobuf::Reflection& fields = *message->GetReflection();
  const bool is_array = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      is_array ? fields.AddDouble(message, field, number + 0.5)
               : fields.SetDouble(message, field, number + 0.5);
      return;
    case FieldDescriptor::CPPTYPE_INT32:
      is_array ? fields.AddInt32(message, field, number) : fields.SetInt32(message, field, number);
      return;
    case FieldDescriptor::CPPTYPE_UINT32:
      is_array ? fields.AddUInt32(message, field, number)
               : fields.SetUInt32(message, field, number);
      return;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int value = 1 + number % (field->enum_type()->value_count() - 1);
      is_array ? fields.AddEnumValue(message, field, value)
               : fields.SetEnumValue(message, field, value);
      return;
    }
    default:
      GOOGLE_LOG(FATAL) << field->full_name() << " is of another type";
  }
}

void FillFields(int count, int* number, google::protobuf::Message* message) {
  const google::protobuf::Descriptor& descriptor = *message->GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor* field = descriptor.field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      FillFields(count, number, message->GetReflection()->MutableMessage(message, field));
      continue;
    }
    const int entries = field->is_repeated() ? count : 1;
    for (int k = 0; k < entries; ++k) Put(field, ++*number, message);
  }
}

}  // namespace

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
    const FieldDescriptor* field = descriptor.field(i);
    if (field->is_repeated()) {
      if (field->cpp_type() == type) paths.push_back(field->name());
    } else if (field->message_type() != nullptr) {
      for (const std::string& path : ArrayPaths(*field->message_type(), type)) {
        paths.push_back(field->name() + "." + path);
      }
    }
  }
  return paths;
}

void FillFields(int count, google::protobuf::Message* message) {
  int number = 0;
  FillFields(count, &number, message);
}

}  // namespace sap::test
