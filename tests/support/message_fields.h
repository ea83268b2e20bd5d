// Arrays of messages by their path, "contacts.friction", so that tests can be tables.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/reflection.h>

#include <string>
#include <vector>

namespace sap::test {

// A field within a message, and the sub-message that holds it.
struct FieldPlace {
  google::protobuf::Message* owner;
  const google::protobuf::FieldDescriptor* field;
};

// The path must exist.
FieldPlace FindField(const std::string& path, google::protobuf::Message* message);

// The repeated field at a path; Value must be its type, int32_t for an enum.
template <typename Value>
class Array {
 public:
  Array(const std::string& path, google::protobuf::Message* message)
      : Array(FindField(path, message)) {}

  int size() const { return values_.size(); }
  void Set(int i, Value value) { values_.Set(i, value); }
  void Clear() { values_.Clear(); }
  void Resize(int size, Value fill) {
    while (values_.size() > size) values_.RemoveLast();
    while (values_.size() < size) values_.Add(fill);
  }

 private:
  explicit Array(const FieldPlace& place)
      : values_(place.owner->GetReflection()->GetMutableRepeatedFieldRef<Value>(place.owner,
                                                                                place.field)) {}

  google::protobuf::MutableRepeatedFieldRef<Value> values_;
};

// Paths of all repeated fields of the type, of sub-messages too.
std::vector<std::string> ArrayPaths(const google::protobuf::Descriptor& descriptor,
                                    google::protobuf::FieldDescriptor::CppType type);

// Sets every field, down to the last sub-message: numbers that differ from field to field, `count`
// entries in arrays, enums that are not UNSPECIFIED. Fields must be messages, numbers or enums.
void FillFields(int count, google::protobuf::Message* message);

}  // namespace sap::test
