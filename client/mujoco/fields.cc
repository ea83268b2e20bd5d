#include "client/mujoco/fields.h"

#include <cstring>

namespace sap::mujoco {
namespace {

const std::byte* Place(const sap_mujoco_field& row, const void* model, const void* data) {
  return static_cast<const std::byte*>(row.in_data == 1 ? data : model) + row.offset;
}

template <typename Type>
Type ReadValue(const sap_mujoco_field& row, const void* model, const void* data) {
  Type value;
  std::memcpy(&value, Place(row, model, data), sizeof(Type));
  return value;
}

// Reads the rows of a table in turn.
class TableReader {
 public:
  TableReader(const sap_mujoco_field* row, const void* model, const void* data)
      : row_(row), model_(model), data_(data) {}

  int64_t Integer() { return ReadInteger(*row_++, model_, data_); }
  double Real() { return ReadValue<double>(*row_++, model_, data_); }

  template <typename Type>
  Type* Array() {
    const sap_mujoco_field& row = *row_++;
    return row.in_data >= 0 ? ReadValue<Type*>(row, model_, data_) : nullptr;
  }

  // The caller's state is not const.
  template <typename Type>
  std::span<Type> Numbers() {
    const sap_mujoco_field& row = *row_++;
    auto* begin = const_cast<std::byte*>(Place(row, model_, data_));
    return {reinterpret_cast<Type*>(begin), static_cast<size_t>(row.size) / sizeof(Type)};
  }

  int64_t NextOffset() { return row_++->offset; }
  int64_t NextSize() { return row_++->size; }
  int64_t Size() const { return row_->size; }

 private:
  const sap_mujoco_field* row_;
  const void* model_;
  const void* data_;
};

}  // namespace

int64_t ReadInteger(const sap_mujoco_field& row, const void* model, const void* data) {
  if (row.in_data < 0) return 0;
  if (row.size == sizeof(int32_t)) return ReadValue<int32_t>(row, model, data);
  return ReadValue<int64_t>(row, model, data);
}

Fields ReadFields(const sap_mujoco_field* table, const void* model, const void* data) {
  Fields fields;
  TableReader reader(table, model, data);
#define SAP_INTEGER(name) fields.name = reader.Integer();
#define SAP_REAL(name) fields.name = reader.Real();
#define SAP_ARRAY(type, name) fields.name = reader.Array<type>();
#define SAP_NUMBERS(type, name) fields.name = reader.Numbers<type>();
#define SAP_CONTACT_ARRAY(type, name) fields.offset_of_contact_##name = reader.NextOffset();
#define SAP_STRUCT(name) fields.bytes_of_##name = reader.NextSize();
#define SAP_CONTACTS(name)              \
  fields.contact_bytes = reader.Size(); \
  fields.name = reader.Array<const std::byte>();
#include "client/mujoco/fields.inc"
  return fields;
}

}  // namespace sap::mujoco

const char* sap_mujoco_fields() {
  return
#define SAP_INTEGER(name) "integer " #name "\n"
#define SAP_REAL(name) "real " #name "\n"
#define SAP_ARRAY(type, name) "array " #type " " #name "\n"
#define SAP_NUMBERS(type, name) "numbers " #type " " #name "\n"
#define SAP_CONTACTS(name) "contacts " #name "\n"
#define SAP_CONTACT_ARRAY(type, name) "contact " #type " " #name "\n"
#define SAP_STRUCT(name) "struct " #name "\n"
#define SAP_CONSTANT(enumeration, name, value) "constant " #enumeration " " #name " " #value "\n"
#include "client/mujoco/fields.inc"
      ;
}
