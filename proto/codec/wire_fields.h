// Fields of messages as bytes, by protobuf's own primitives.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstddef>
#include <cstdint>

namespace sap {

inline uint32_t DelimitedTag(int field) {
  using google::protobuf::internal::WireFormatLite;
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// Bytes of a message, text or packed array of this length as a field, with its tag.
inline size_t DelimitedSize(int field, size_t length) {
  using google::protobuf::io::CodedOutputStream;
  return CodedOutputStream::VarintSize32(DelimitedTag(field)) +
         CodedOutputStream::VarintSize64(length) + length;
}

// Writes what stands before the content of such a field.
inline uint8_t* WriteDelimiter(int field, size_t length, uint8_t* to) {
  using google::protobuf::io::CodedOutputStream;
  to = CodedOutputStream::WriteTagToArray(DelimitedTag(field), to);
  return CodedOutputStream::WriteVarint64ToArray(length, to);
}

// Writes a message as a field, after ByteSizeLong() was called for its present content.
inline uint8_t* WriteMessage(int field, const google::protobuf::MessageLite& message, uint8_t* to) {
  to = WriteDelimiter(field, static_cast<size_t>(message.GetCachedSize()), to);
  return message.SerializeWithCachedSizesToArray(to);
}

}  // namespace sap
