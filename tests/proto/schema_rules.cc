#include "tests/proto/schema_rules.h"

#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cctype>
#include <regex>

namespace sap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::ServiceDescriptor;
using google::protobuf::SourceLocation;

class RuleCheck {
 public:
  std::vector<std::string> Run(const FileDescriptor& file) {
    CheckPackage(file);
    for (int i = 0; i < file.message_type_count(); ++i) CheckMessage(*file.message_type(i));
    for (int i = 0; i < file.enum_type_count(); ++i) CheckEnum(*file.enum_type(i));
    for (int i = 0; i < file.service_count(); ++i) CheckService(*file.service(i));
    return std::move(broken_);
  }

 private:
  void Require(bool holds, const std::string& name, const std::string& otherwise) {
    if (!holds) broken_.push_back(name + " " + otherwise);
  }

  void RequireMatch(const std::string& name, const char* pattern, const std::string& full_name) {
    Require(std::regex_match(name, std::regex(pattern)), full_name,
            std::string("does not match ") + pattern);
  }

  template <typename Element>
  void RequireComment(const Element& element) {
    SourceLocation location;
    const bool found = element.GetSourceLocation(&location);
    const auto& text = location.leading_comments;
    const bool said =
        std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
    Require(found && said, element.full_name(), "has no comment");
  }

  void CheckPackage(const FileDescriptor& file) {
    Require(file.syntax() == FileDescriptor::SYNTAX_PROTO3, file.name(), "is not proto3");
    std::string directory = file.name().substr(0, file.name().find_last_of('/'));
    std::replace(directory.begin(), directory.end(), '/', '.');
    Require(file.package() == directory, file.name(), "has package " + file.package());
    Require(std::regex_search(file.package(), std::regex("\\.v[0-9]+$")), file.name(),
            "has a package without a major version");
  }

  void CheckMessage(const Descriptor& message) {
    RequireComment(message);
    RequireMatch(message.name(), "([A-Z][a-z0-9]*)+", message.full_name());
    for (int i = 0; i < message.field_count(); ++i) CheckField(*message.field(i));
    for (int i = 0; i < message.real_oneof_decl_count(); ++i) {
      RequireComment(*message.oneof_decl(i));
    }
    for (int i = 0; i < message.enum_type_count(); ++i) CheckEnum(*message.enum_type(i));
    for (int i = 0; i < message.nested_type_count(); ++i) CheckMessage(*message.nested_type(i));
  }

  void CheckField(const FieldDescriptor& field) {
    RequireComment(field);
    RequireMatch(field.name(), "[a-z][a-z0-9]*(_[a-z0-9]+)*", field.full_name());
    const bool varying = field.type() == FieldDescriptor::TYPE_INT32 ||
                         field.type() == FieldDescriptor::TYPE_INT64 ||
                         field.type() == FieldDescriptor::TYPE_UINT32 ||
                         field.type() == FieldDescriptor::TYPE_UINT64 ||
                         field.type() == FieldDescriptor::TYPE_SINT32 ||
                         field.type() == FieldDescriptor::TYPE_SINT64;
    Require(!(field.is_repeated() && varying), field.full_name(),
            "is repeated with integers of varying width");
  }

  void CheckEnum(const EnumDescriptor& type) {
    RequireComment(type);
    RequireMatch(type.name(), "([A-Z][a-z0-9]*)+", type.full_name());
    std::string prefix;
    for (const char c : type.name()) {
      if (std::isupper(static_cast<unsigned char>(c)) != 0 && !prefix.empty()) prefix += '_';
      prefix += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    Require(!type.options().allow_alias(), type.full_name(), "gives two values one number");
    Require(type.value(0)->number() == 0 && type.value(0)->name() == prefix + "_UNSPECIFIED",
            type.full_name(), "does not begin with " + prefix + "_UNSPECIFIED = 0");
    for (int i = 0; i < type.value_count(); ++i) {
      RequireComment(*type.value(i));
      RequireMatch(type.value(i)->name(), (prefix + "(_[A-Z0-9]+)+").c_str(),
                   type.value(i)->full_name());
    }
  }

  void CheckService(const ServiceDescriptor& service) {
    RequireComment(service);
    RequireMatch(service.name(), "([A-Z][a-z0-9]*)+Service", service.full_name());
    for (int i = 0; i < service.method_count(); ++i) {
      const auto& call = *service.method(i);
      RequireComment(call);
      RequireMatch(call.name(), "([A-Z][a-z0-9]*)+", call.full_name());
      Require(call.input_type()->full_name() ==
                  service.file()->package() + "." + call.name() + "Request",
              call.full_name(), "takes " + call.input_type()->full_name());
      Require(call.output_type()->full_name() ==
                  service.file()->package() + "." + call.name() + "Response",
              call.full_name(), "returns " + call.output_type()->full_name());
    }
  }

  std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> BrokenSchemaRules(const FileDescriptor& file) {
  return RuleCheck().Run(file);
}

}  // namespace sap
