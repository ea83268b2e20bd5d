#include "tests/proto/schema_changes.h"

#include <map>
#include <set>

namespace sap {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::EnumDescriptorProto;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptorSet;
using google::protobuf::MethodDescriptorProto;
using google::protobuf::ServiceDescriptorProto;

// A schema as a flat list of what can be relied on: where it is, and what it is.
class Promises {
 public:
  explicit Promises(const FileDescriptorSet& schema) {
    for (const auto& file : schema.file()) {
      for (const auto& message : file.message_type()) Add(file.package(), message);
      for (const auto& type : file.enum_type()) Add(file.package(), type);
      for (const auto& service : file.service()) Add(file.package(), service);
    }
  }

  const std::map<std::string, std::string>& all() const { return all_; }

  // Whether a field that is gone cannot come back with another meaning.
  bool IsReserved(const std::string& where, const std::string& what) const {
    const std::string message = where.substr(0, where.find(' '));
    const std::string name = what.substr(what.rfind(' ') + 1);
    return reserved_numbers_.contains(where) && all_.contains(message + " reserves " + name);
  }

 private:
  void Add(const std::string& scope, const DescriptorProto& message) {
    const std::string name = scope + "." + message.name();
    all_["message " + name] = "";
    for (const auto& field : message.field()) {
      all_[name + " field " + std::to_string(field.number())] = Describe(message, field);
    }
    for (const auto& range : message.reserved_range()) {
      for (int number = range.start(); number < range.end(); ++number) {
        reserved_numbers_.insert(name + " field " + std::to_string(number));
      }
    }
    for (const auto& removed : message.reserved_name()) all_[name + " reserves " + removed] = "";
    for (const auto& nested : message.nested_type()) Add(name, nested);
    for (const auto& type : message.enum_type()) Add(name, type);
  }

  void Add(const std::string& scope, const EnumDescriptorProto& type) {
    const std::string name = scope + "." + type.name();
    all_["enum " + name] = "";
    for (const auto& value : type.value()) {
      all_[name + " value " + std::to_string(value.number())] = value.name();
    }
  }

  void Add(const std::string& scope, const ServiceDescriptorProto& service) {
    const std::string name = scope + "." + service.name();
    all_["service " + name] = "";
    for (const auto& call : service.method())
      all_["call " + name + "." + call.name()] = Describe(call);
  }

  // "repeated double friction". Optional and plain fields differ in presence, members of a oneof in
  // what they exclude; both are part of what a client sees.
  static std::string Describe(const DescriptorProto& message, const FieldDescriptorProto& field) {
    std::string text = FieldDescriptorProto::Label_Name(field.label()).substr(6);
    if (field.proto3_optional()) {
      text += " with presence";
    } else if (field.has_oneof_index()) {
      text += " in oneof " + message.oneof_decl(field.oneof_index()).name();
    }
    text += ' ';
    text += FieldDescriptorProto::Type_Name(field.type()).substr(5) + field.type_name();
    return text + ' ' + field.name();
  }

  static std::string Describe(const MethodDescriptorProto& call) {
    return (call.client_streaming() ? "stream " : "") + call.input_type() + " to " +
           (call.server_streaming() ? "stream " : "") + call.output_type();
  }

  std::map<std::string, std::string> all_;
  std::set<std::string> reserved_numbers_;
};

}  // namespace

std::vector<std::string> BreakingSchemaChanges(const FileDescriptorSet& before,
                                               const FileDescriptorSet& now) {
  const Promises old_promises(before);
  const Promises new_promises(now);
  std::vector<std::string> changes;
  for (const auto& [where, what] : old_promises.all()) {
    const auto found = new_promises.all().find(where);
    if (found == new_promises.all().end()) {
      if (new_promises.IsReserved(where, what)) continue;
      changes.push_back(where + (what.empty() ? "" : " (" + what + ")") + " is gone");
    } else if (found->second != what) {
      changes.push_back(where + " was " + what + ", is " + found->second);
    }
  }
  return changes;
}

}  // namespace sap
