#include "client/c/mujoco/fields.h"

#include <cstring>

namespace sap::mujoco {
namespace {

// Reads the rows of a table in turn.
class TableReader {
 public:
  TableReader(const sap_mujoco_field* row, const void* model, const void* data)
      : row_(row),
        structs_{static_cast<const std::byte*>(model), static_cast<const std::byte*>(data)} {}

  int64_t Integer() {
    if (row_->size == sizeof(int32_t)) return Value<int32_t>();
    return Value<int64_t>();
  }

  double Real() { return Value<double>(); }

  template <typename Type>
  Type* Array() {
    if (row_->in_data >= 0) return Value<Type*>();
    ++row_;
    return nullptr;
  }

  int64_t NextOffset() { return row_++->offset; }
  int64_t Size() const { return row_->size; }

 private:
  template <typename Type>
  Type Value() {
    Type value;
    std::memcpy(&value, structs_[row_->in_data] + row_->offset, sizeof(Type));
    ++row_;
    return value;
  }

  const sap_mujoco_field* row_;
  const std::byte* structs_[2];
};

}  // namespace

Fields ReadFields(const sap_mujoco_field* table, const void* model, const void* data) {
  Fields fields;
  TableReader reader(table, model, data);
#define SAP_INTEGER(name) fields.name = reader.Integer();
#define SAP_REAL(name) fields.name = reader.Real();
#define SAP_ARRAY(type, name) fields.name = reader.Array<type>();
#define SAP_CONTACT_ARRAY(type, name) fields.offset_of_contact_##name = reader.NextOffset();
#define SAP_CONTACTS(name)              \
  fields.contact_bytes = reader.Size(); \
  fields.name = reader.Array<const std::byte>();
#include "client/c/mujoco/fields.inc"
  return fields;
}

}  // namespace sap::mujoco

const char* sap_mujoco_fields() {
  return
#define SAP_INTEGER(name) "integer " #name "\n"
#define SAP_REAL(name) "real " #name "\n"
#define SAP_ARRAY(type, name) "array " #type " " #name "\n"
#define SAP_CONTACTS(name) "contacts " #name "\n"
#define SAP_CONTACT_ARRAY(type, name) "contact " #type " " #name "\n"
#define SAP_CONSTANT(enumeration, name, value) "constant " #enumeration " " #name " " #value "\n"
#include "client/c/mujoco/fields.inc"
      ;
}
