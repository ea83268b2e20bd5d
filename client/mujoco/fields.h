// The fields of mjModel and mjData that the adapter for MuJoCo reads and writes: the names in
// fields.inc.
//
// The structs differ between versions of MuJoCo, and one library serves all of them. So nothing is
// compiled against MuJoCo's headers: the caller says where each name is in the structs of the
// installed version. The Python package knows it from mujoco.introspect.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "client/mujoco/python_calls.h"

namespace sap::mujoco {

#define SAP_CONSTANT(enumeration, name, value) inline constexpr int name = value;
#include "client/mujoco/fields.inc"

// The fields of one model and state. An array that the version does not have is null.
struct Fields {
#define SAP_INTEGER(name) int64_t name;
#define SAP_REAL(name) double name;
#define SAP_ARRAY(type, name) type* name;
#define SAP_NUMBERS(type, name) std::span<type> name;
#define SAP_CONTACTS(name) const std::byte* name;
#define SAP_CONTACT_ARRAY(type, name) int64_t offset_of_contact_##name;
#define SAP_STRUCT(name) int64_t bytes_of_##name;
#include "client/mujoco/fields.inc"

  int64_t contact_bytes;  // of one mjContact

#define SAP_CONTACT_ARRAY(type, name)                                       \
  const type* contact_##name(int64_t i) const {                             \
    const std::byte* begin = contact + i * contact_bytes;                   \
    return reinterpret_cast<const type*>(begin + offset_of_contact_##name); \
  }
#include "client/mujoco/fields.inc"
};

// Reads the fields of a model and a state as they are now: MuJoCo moves the arrays of constraints
// and contacts from step to step.
Fields ReadFields(const sap_mujoco_field* table, const void* model, const void* data);

// Whether MuJoCo takes a number for one of a simulation that has become unstable: its mju_isBad.
inline bool IsBad(double value) {
  constexpr double kLargest = 1e10;  // mjMAXVAL
  return !(std::abs(value) <= kLargest);
}

// Row numbers, to read single fields.
namespace row {
enum Row {
#define SAP_INTEGER(name) name,
#define SAP_REAL(name) name,
#define SAP_ARRAY(type, name) name,
#define SAP_NUMBERS(type, name) name,
#define SAP_CONTACTS(name) name,
#define SAP_CONTACT_ARRAY(type, name) contact_##name,
#define SAP_STRUCT(name) bytes_of_##name,
#include "client/mujoco/fields.inc"
  kCount
};
}  // namespace row

int64_t ReadInteger(const sap_mujoco_field& row, const void* model, const void* data);

template <typename Type>
Type* ReadArray(const sap_mujoco_field& row, const void* model, const void* data) {
  return reinterpret_cast<Type*>(ReadInteger(row, model, data));
}

}  // namespace sap::mujoco
