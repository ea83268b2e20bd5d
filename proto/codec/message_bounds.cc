#include "proto/codec/message_bounds.h"

#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "solver/problem/problem_fields.h"

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
// Fields of messages, texts and arrays that a type may have.
constexpr int kMostCounters = 32;
// A value of an enum in an array that has grown by doubling.
constexpr int64_t kEnum_bytes = 8;
// More than the fields that a mask may name, in any request.
constexpr int64_t kMostPaths = 256;
constexpr int64_t kMostFiles = 1000;
constexpr int64_t kMostComponents = 32;
constexpr int64_t kMostWorlds = 65536;
constexpr int64_t kEndless = int64_t{1} << 40;

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

bool IsMessage(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

// Bytes of a value on the wire; 0: a varint.
int BytesOfValue(const FieldDescriptor& field) {
  switch (
      WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()))) {
    case WireFormatLite::WIRETYPE_FIXED64:
      return 8;
    case WireFormatLite::WIRETYPE_FIXED32:
      return 4;
    default:
      return 0;
  }
}

int64_t Product(double a, double b, double c = 1) {
  return static_cast<int64_t>(std::min(a * b * c, 1e18));
}

// Most values of an array for which its group has so many entries.
int64_t MostValues(int columns, Per per, int entries, const ProblemLimits& limits) {
  const double dofs = std::max(limits.max_tree_dofs, 6);
  // A contact that touches k trees has at least k - 1 pairs of them.
  const double parts = 2.0 * limits.max_contacts + limits.max_row_pairs;
  switch (per) {
    case Per::kEntry:
    case Per::kAngularContact:
      return Product(columns, entries);
    case Per::kVelocity:
      return Product(entries, dofs);
    case Per::kMatrix:
      return Product(entries, dofs, dofs);
    case Per::kCoupling:
      return limits.max_row_pairs;
    case Per::kCouplingBlock:
      return Product(limits.max_row_pairs, dofs, dofs);
    case Per::kContactPart:
      return Product(parts, 1);
    case Per::kJacobian:
    case Per::kAngularJacobian:
      return Product(3, parts, dofs);
    case Per::kTerm:
      return limits.max_row_entries;
  }
  return 0;
}

// Most values of an array of numbers.
std::optional<int64_t> MostValues(const FieldDescriptor& field, const ProblemLimits& limits) {
  const std::string_view group = field.containing_type()->name();
  const std::string_view array = field.name();
  const int trees = limits.max_trees;
  const int contacts = limits.max_contacts;
#define SAP_MOST(message, type, name, columns, per, entries) \
  if (group == (message) && array == #name) return MostValues(columns, Per::per, entries, limits);
#define SAP_TREE(type, name, columns, per, ...) SAP_MOST("Trees", type, name, columns, per, trees)
#define SAP_BODY(type, name, columns, per, ...) \
  SAP_MOST("RigidBodies", type, name, columns, per, trees)
#define SAP_CONTACT(type, name, columns, per, ...) \
  SAP_MOST("Contacts", type, name, columns, per, contacts)
#define SAP_BODY_CONTACT(type, name, columns, per, ...) \
  SAP_MOST("BodyContacts", type, name, columns, per, contacts)
#define SAP_LAW(type, name, columns, per, ...)             \
  SAP_MOST("Contacts", type, name, columns, per, contacts) \
  SAP_MOST("BodyContacts", type, name, columns, per, contacts)
#define SAP_HUNT_CROSSLEY(type, name, columns, per, ...) \
  SAP_MOST("HuntCrossley", type, name, columns, per, contacts)
#define SAP_ROW(type, name, columns, per, ...) \
  SAP_MOST("ConstraintRows", type, name, columns, per, limits.max_rows)
#include "solver/problem/problem_fields.inc"
#undef SAP_MOST
  if (group != "Cotangent" && group != "DifferentiateRequest") return std::nullopt;
  if (array == "velocity") return MostValues(1, Per::kVelocity, trees, limits);
  if (array.starts_with("row_")) return limits.max_rows;
  return MostValues(3, Per::kEntry, contacts, limits);  // impulses and velocities of contacts
}

tl::unexpected<EngineError> TooMany(const std::string& field, int64_t most) {
  return RefuseField(field, "has more than " + std::to_string(most) + " values; at most " +
                                std::to_string(most) + " are accepted");
}

tl::unexpected<EngineError> TooLarge(const std::string& field) {
  return RefuseField(field, "and other messages within the request take more than " +
                                std::to_string(kMostBytes >> 20) + " MiB");
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
  if (name == "sap.v1.PutModelRequest.files") return kMostFiles;
  if (name == "sap.v1.AdvanceRequest.control_components") return kMostComponents;
  if (name == "sap.v1.AdvanceRequest.rested") return kMostWorlds;
  // Their lengths follow from counts that are not read yet. In memory they are as on the wire.
  for (const char* const numbers :
       {"sap.v1.AdvanceRequest.states", "sap.v1.AdvanceRequest.controls"}) {
    if (name == numbers) return kEndless;
  }
  if (field.is_packable()) return MostValues(field, limits.problem);
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
    entry.counted = IsMessage(field) || field.is_repeated();
    entry.is_array = field.is_packable();
    entry.value_bytes = BytesOfValue(field);
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
    int64_t& count = elements[field.counter];
    if (is_counted && field.is_array && wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (auto checked = CheckArray(field, &count, input, counts); !checked) return checked;
      continue;
    }
    const int64_t index = is_counted ? count++ : 0;
    if (is_counted && index >= field.most) return TooMany(field.name, field.most);
    if (is_counted && field.message != nullptr) {
      if (auto checked = CheckMessage(field, index, input, counts); !checked) return checked;
    } else if (!WireFormatLite::SkipField(input, tag)) {
      return tl::unexpected(NotAMessage());
    }
  }
  if (!input->ConsumedEntireMessage()) return tl::unexpected(NotAMessage());
  return {};
}

// Values of an array in one piece: their number follows from its length, or they are counted.
EngineStatus MessageBounds::CheckArray(const Field& field, int64_t* elements,
                                       CodedInputStream* input, Counts* counts) {
  int length = 0;
  if (!input->ReadVarintSizeAsInt(&length)) return tl::unexpected(NotAMessage());
  if (field.value_bytes > 0) {
    *elements += length / field.value_bytes;
    if (*elements > field.most) return TooMany(field.name, field.most);
    if (!input->Skip(length)) return tl::unexpected(NotAMessage());
    return {};
  }
  const CodedInputStream::Limit limit = input->PushLimit(length);
  if (input->BytesUntilLimit() != length) return tl::unexpected(NotAMessage());
  while (input->BytesUntilLimit() > 0) {
    uint64_t value = 0;
    if (!input->ReadVarint64(&value)) return tl::unexpected(NotAMessage());
    if (++*elements > field.most) return TooMany(field.name, field.most);
    counts->bytes += kEnum_bytes;
    if (counts->bytes > kMostBytes) return TooLarge(field.name);
  }
  input->PopLimit(limit);
  return {};
}

EngineStatus MessageBounds::CheckMessage(const Field& field, int64_t index, CodedInputStream* input,
                                         Counts* counts) {
  counts->bytes += field.message->bytes;
  if (counts->bytes > kMostBytes) return TooLarge(field.name);
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
