// Bounds on what a message allocates, checked on its bytes before it is parsed.
//
// Most arrays of numbers take in memory what they take on the wire, but an empty element of a
// repeated message is 2 bytes on the wire and up to 700 in memory, an unknown field 2 and 40, and a
// value of an enum 1 and, as the array grows by doubling, 8, so the size of a message alone bounds
// little. One pass over the tags counts, and allocates nothing:
//
//   elements of a repeated message or string, within one message     as the schema says
//   values of an array, within one message                           most of any problem in the
//                                                                    limits: problem_fields.inc
//   messages that are not repeated, within one message               1 (protobuf would merge them)
//   memory of all messages within and of enums, in all               64 MiB
//   unknown fields in all                                            1000
//   groups, which no message of the schema has                       0
//
// Server and client of one version never exceed them; newer clients may send some unknown fields.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "solver/engine/engine_error.h"
#include "solver/engine/engine_limits.h"

namespace sap {

// The error about bytes that cannot be parsed.
EngineError NotAMessage();

class MessageBounds {
 public:
  // The bounds of messages of a type. Types within may not contain themselves.
  MessageBounds(const google::protobuf::Descriptor* type, const EngineLimits& limits);

  // Thread-safe. An error names the field.
  EngineStatus Check(google::protobuf::io::ZeroCopyInputStream* bytes) const;

  // Most elements of a field of messages or texts, or of a repeated one, within one message.
  // Nothing: there is no bound for it, and it is refused wherever it occurs.
  static std::optional<int64_t> MostElements(const google::protobuf::FieldDescriptor& field,
                                             const EngineLimits& limits);

 private:
  struct Type;
  struct Field {
    uint8_t wire_types{0};  // with which it is parsed, a bit each; none: there is no such field
    bool counted{false};
    bool is_array{false};          // of numbers
    int counter{0};                // of the elements within one message
    int64_t most{0};               // of them
    const Type* message{nullptr};  // null: a number, a text or an array of numbers
    int value_bytes{0};            // of a value of an array on the wire; 0: they differ
    std::string name;
  };
  struct Type {
    int64_t bytes{0};           // in memory, without arrays and texts
    std::vector<Field> fields;  // by number
  };
  // Counts over the message as a whole.
  struct Counts {
    int64_t unknown{0};
    int64_t bytes{0};
  };

  const Type* Add(const google::protobuf::Descriptor* descriptor, const EngineLimits& limits);
  static EngineStatus CheckFields(const Type& type, google::protobuf::io::CodedInputStream* input,
                                  Counts* counts);
  static EngineStatus CheckMessage(const Field& field, int64_t index,
                                   google::protobuf::io::CodedInputStream* input, Counts* counts);
  static EngineStatus CheckArray(const Field& field, int64_t* elements,
                                 google::protobuf::io::CodedInputStream* input, Counts* counts);

  std::map<const google::protobuf::Descriptor*, Type> types_;
  const Type* root_;
};

}  // namespace sap
