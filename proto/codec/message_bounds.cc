#include "proto/codec/message_bounds.h"

#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <array>

namespace sap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int64_t kMostUnknown = 1000;
constexpr int64_t kMostBytes = int64_t{64} << 20;
// Bytes of the allocator, and the pointer to the message.
constexpr int64_t kAllocation_bytes = 24;
// Fields of messages and texts that a type may have.
constexpr int kMostCounters = 16;
// More than the fields that a mask may name, in any request.
constexpr int64_t kMostPaths = 256;

int64_t BytesOf(const Descriptor* type) {
  auto* const factory = google::protobuf::MessageFactory::generated_factory();
  return static_cast<int64_t>(factory->GetPrototype(type)->SpaceUsedLong()) + kAllocation_bytes;
}

uint8_t BitOf(WireFormatLite::WireType type) { return static_cast<uint8_t>(1U << type); }

// Others are unknown fields to the parser.
uint8_t WireTypesOf(const FieldDescriptor& field) {
  const auto type = static_cast<WireFormatLite::FieldType>(field.type());
  uint8_t types = BitOf(WireFormatLite::WireTypeForFieldType(type));
  if (field.is_packable()) types |= BitOf(WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  return types;
}

bool IsText(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
}
bool IsMessage(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

}  // namespace

EngineError NotAMessage() {
  return {EngineErrorCode::kInvalidArgument, "the bytes are not a message of this method", ""};
}

std::optional<int64_t> MessageBounds::MostElements(const FieldDescriptor& field,
                                                   const EngineLimits& limits) {
  if (!field.is_repeated()) return 1;
  const std::string& name = field.full_name();
  for (const char* const problems :
       {"sap.v1.SolveBatchRequest.problems", "sap.v1.StreamBatchRequest.problems",
        "sap.v1.DifferentiateBatchRequest.requests"}) {
    if (name == problems) return limits.max_batch_problems;
  }
  for (const char* const derivatives :
       {"sap.v1.DifferentiateRequest.cotangents", "sap.v1.DifferentiateRequest.tangents"}) {
    if (name == derivatives) return limits.max_derivatives;
  }
  if (name == "google.protobuf.FieldMask.paths") return kMostPaths;
  return std::nullopt;
}

MessageBounds::MessageBounds(const Descriptor* type, const EngineLimits& limits)
    : root_(Add(type, limits)) {}

const MessageBounds::Type* MessageBounds::Add(const Descriptor* descriptor,
                                              const EngineLimits& limits) {
  const auto found = types_.find(descriptor);
  if (found != types_.end()) return &found->second;
  Type type{BytesOf(descriptor), {}};
  int counters = 0;
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor& field = *descriptor->field(i);
    type.fields.resize(std::max<size_t>(type.fields.size(), field.number() + 1));
    Field& entry = type.fields[field.number()];
    entry.wire_types = WireTypesOf(field);
    entry.name = field.name();
    if (IsMessage(field)) entry.message = Add(field.message_type(), limits);
    entry.counted = IsMessage(field) || (IsText(field) && field.is_repeated());
    if (!entry.counted) continue;
    entry.most = counters < kMostCounters ? MostElements(field, limits).value_or(0) : 0;
    entry.counter = std::min(counters++, kMostCounters - 1);
  }
  return &types_.emplace(descriptor, std::move(type)).first->second;
}

EngineStatus MessageBounds::Check(google::protobuf::io::ZeroCopyInputStream* bytes) const {
  CodedInputStream input(bytes);
  Counts counts;
  return CheckFields(*root_, &input, &counts);
}

// Up to the end of the bytes, or of the limit within them.
EngineStatus MessageBounds::CheckFields(const Type& type, CodedInputStream* input, Counts* counts) {
  std::array<int64_t, kMostCounters> elements{};
  while (const uint32_t tag = input->ReadTag()) {
    const auto number = static_cast<size_t>(WireFormatLite::GetTagFieldNumber(tag));
    const auto wire = WireFormatLite::GetTagWireType(tag);
    const bool is_group =
        wire == WireFormatLite::WIRETYPE_START_GROUP || wire == WireFormatLite::WIRETYPE_END_GROUP;
    if (number == 0 || is_group) return tl::unexpected(NotAMessage());
    static const Field kUnknown;
    const Field& field = number < type.fields.size() ? type.fields[number] : kUnknown;
    const bool is_known = (field.wire_types & BitOf(wire)) != 0;
    if (!is_known && ++counts->unknown > kMostUnknown) {
      return RefuseField(
          "field " + std::to_string(number),
          "is unknown; a request may have " + std::to_string(kMostUnknown) + " unknown fields");
    }
    const bool is_counted = field.counted && is_known;
    const int64_t index = is_counted ? elements[field.counter]++ : 0;
    if (is_counted && index >= field.most) {
      return RefuseField(field.name, "has more than " + std::to_string(field.most) +
                                         " values; at most " + std::to_string(field.most) +
                                         " are accepted");
    }
    if (is_counted && field.message != nullptr) {
      if (auto checked = CheckMessage(field, index, input, counts); !checked) return checked;
    } else if (!WireFormatLite::SkipField(input, tag)) {
      return tl::unexpected(NotAMessage());
    }
  }
  if (!input->ConsumedEntireMessage()) return tl::unexpected(NotAMessage());
  return {};
}

EngineStatus MessageBounds::CheckMessage(const Field& field, int64_t index, CodedInputStream* input,
                                         Counts* counts) {
  counts->bytes += field.message->bytes;
  if (counts->bytes > kMostBytes) {
    return RefuseField(field.name, "and other messages within the request take more than " +
                                       std::to_string(kMostBytes >> 20) + " MiB");
  }
  int length = 0;
  if (!input->ReadVarintSizeAsInt(&length)) return tl::unexpected(NotAMessage());
  const CodedInputStream::Limit limit = input->PushLimit(length);
  // Longer than what it is part of.
  if (input->BytesUntilLimit() != length) return tl::unexpected(NotAMessage());
  EngineStatus checked = CheckFields(*field.message, input, counts);
  if (checked && input->BytesUntilLimit() != 0) return tl::unexpected(NotAMessage());
  input->PopLimit(limit);
  if (checked || checked.error().field.empty()) return checked;
  // As the decoder names fields: "requests[17].cotangents".
  std::string within = field.name;
  if (field.most > 1) within.append("[").append(std::to_string(index)).append("]");
  EngineError error = checked.error();
  error.field = within + "." + error.field;
  error.message = within + "." + error.message;
  return tl::unexpected(error);
}

}  // namespace sap
