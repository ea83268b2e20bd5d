#include "proto/codec/problem_encoder.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "proto/codec/problem_messages.h"
#include "proto/codec/wire_fields.h"

namespace sap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

static_assert(std::endian::native == std::endian::little, "arrays are copied as they are");

v1::RegularizationRule EncodeRule(DelassusRule rule) {
  switch (rule) {
    case DelassusRule::kFull:
      return v1::REGULARIZATION_RULE_FULL;
    case DelassusRule::kDiagonal:
      return v1::REGULARIZATION_RULE_DIAGONAL;
    case DelassusRule::kLoadPath:
      return v1::REGULARIZATION_RULE_LOAD_PATH;
  }
  return v1::REGULARIZATION_RULE_UNSPECIFIED;
}

void EncodeRegularization(const Regularization& regularization, v1::Regularization* message) {
#define SAP_NUMBER(name, input) message->set_##name(regularization.name);
#include "solver/problem/problem_fields.inc"
  message->set_rule(EncodeRule(regularization.rule));
  message->clear_preset();  // all that it gives is set
  // Absent is infinite.
  if (regularization.load_reference_speed == std::numeric_limits<double>::infinity()) {
    message->clear_load_reference_speed();
  }
  // Absent is 0.
  if (regularization.reference_time_step == 0) message->clear_reference_time_step();
}

// A field of ContactProblem or of a group within it.
struct WireField {
  enum class Kind : uint8_t { kGroup, kRegularization, kFixedSize, kEnums };

  int number;
  Kind kind;
  size_t end;       // the next field that is not within this one
  size_t array{0};  // in the order of ForEachArray
};

// The fields with their groups, in the order in which protobuf writes them: each group before its
// fields, and these by number. The time step, which comes before all, is not among them.
class WireFields {
 public:
  static const WireFields& Get() {
    static const WireFields fields;
    return fields;
  }

  size_t size() const { return fields_.size(); }
  const WireField& operator[](size_t i) const { return fields_[i]; }

 private:
  WireFields() {
    const ContactProblemView view;
    std::map<std::string, size_t> arrays;
    ForEachArray(
        [&arrays](std::string_view prefix, const auto& field, const auto&) {
          const size_t index = arrays.size();
          arrays.emplace(std::string(prefix).append(field.name), index);
        },
        view);
    AddFields(v1::ContactProblem::descriptor(), "", arrays);
  }

  void AddFields(const Descriptor* message, const std::string& prefix,
                 const std::map<std::string, size_t>& arrays) {
    std::map<int, const FieldDescriptor*> by_number;
    for (int i = 0; i < message->field_count(); ++i) {
      by_number.emplace(message->field(i)->number(), message->field(i));
    }
    for (const auto& [number, field] : by_number) {
      using Kind = WireField::Kind;
      if (field->is_repeated()) {
        const bool is_enum = field->type() == FieldDescriptor::TYPE_ENUM;
        fields_.push_back({.number = number,
                           .kind = is_enum ? Kind::kEnums : Kind::kFixedSize,
                           .end = fields_.size() + 1,
                           .array = arrays.at(prefix + field->name())});
      } else if (field->message_type() == v1::Regularization::descriptor()) {
        fields_.push_back(
            {.number = number, .kind = Kind::kRegularization, .end = fields_.size() + 1});
      } else if (field->message_type() != nullptr) {
        const size_t group = fields_.size();
        fields_.push_back({.number = number, .kind = Kind::kGroup, .end = 0});
        AddFields(field->message_type(), prefix + field->name() + ".", arrays);
        fields_[group].end = fields_.size();
      }
    }
  }

  std::vector<WireField> fields_;
};

std::span<const int32_t> EnumsIn(std::span<const std::byte> array) {
  return {reinterpret_cast<const int32_t*>(array.data()), array.size() / sizeof(int32_t)};
}

size_t SizeOfEnums(std::span<const int32_t> values) {
  size_t size = 0;
  for (const int32_t value : values) size += CodedOutputStream::VarintSize32SignExtended(value);
  return size;
}

}  // namespace

void EncodeProblem(const ContactProblemView& problem, v1::ContactProblem* message) {
  message->set_time_step(problem.time_step);
  ForEachMessageArray(
      [](auto* field, const auto& values) { field->Assign(values.begin(), values.end()); }, message,
      problem);
  EncodeRegularization(problem.regularization, message->mutable_regularization());
}

ProblemBytes::ProblemBytes(const ContactProblemView& problem)
    : time_step_(problem.time_step), lengths_(WireFields::Get().size()) {
  EncodeRegularization(problem.regularization, &regularization_);
  arrays_.reserve(lengths_.size());
  ForEachArray([this](std::string_view, const auto&,
                      const auto& array) { arrays_.push_back(std::as_bytes(array)); },
               problem);
  // As protobuf: a number that is not optional is left out where all of its bits are 0.
  if (std::bit_cast<uint64_t>(time_step_) != 0) size_ = 1 + sizeof(double);
  AddSizes(0, lengths_.size(), &size_);
}

// Adds the sizes of the fields [begin, end), groups with all that is in them.
void ProblemBytes::AddSizes(size_t begin, size_t end, size_t* size) {
  const WireFields& fields = WireFields::Get();
  for (size_t i = begin; i < end; i = fields[i].end) {
    const WireField& field = fields[i];
    switch (field.kind) {
      case WireField::Kind::kGroup:
        AddSizes(i + 1, field.end, &lengths_[i]);
        break;
      case WireField::Kind::kRegularization:
        lengths_[i] = regularization_.ByteSizeLong();
        break;
      case WireField::Kind::kFixedSize:
        lengths_[i] = arrays_[field.array].size();
        if (lengths_[i] == 0) continue;
        break;
      case WireField::Kind::kEnums:
        lengths_[i] = SizeOfEnums(EnumsIn(arrays_[field.array]));
        if (lengths_[i] == 0) continue;
        break;
    }
    *size += DelimitedSize(field.number, lengths_[i]);
  }
}

uint8_t* ProblemBytes::Write(uint8_t* to) const {
  if (std::bit_cast<uint64_t>(time_step_) != 0) {
    to = WireFormatLite::WriteDoubleToArray(v1::ContactProblem::kTimeStepFieldNumber, time_step_,
                                            to);
  }
  return WriteFields(0, lengths_.size(), to);
}

uint8_t* ProblemBytes::WriteFields(size_t begin, size_t end, uint8_t* to) const {
  const WireFields& fields = WireFields::Get();
  for (size_t i = begin; i < end; i = fields[i].end) {
    const WireField& field = fields[i];
    const size_t length = lengths_[i];
    switch (field.kind) {
      case WireField::Kind::kGroup:
        to = WriteDelimiter(field.number, length, to);
        to = WriteFields(i + 1, field.end, to);
        break;
      case WireField::Kind::kRegularization:
        to = WriteMessage(field.number, regularization_, to);
        break;
      case WireField::Kind::kFixedSize:
        if (length == 0) break;
        to = WriteDelimiter(field.number, length, to);
        std::memcpy(to, arrays_[field.array].data(), length);
        to += length;
        break;
      case WireField::Kind::kEnums:
        if (length == 0) break;
        to = WriteDelimiter(field.number, length, to);
        for (const int32_t value : EnumsIn(arrays_[field.array])) {
          to = CodedOutputStream::WriteVarint32SignExtendedToArray(value, to);
        }
        break;
    }
  }
  return to;
}

}  // namespace sap
