#include "client/c/drake/python_calls.h"

#include <cstddef>

#include "client/c/drake/contact_jacobian.h"
#include "client/c/drake/contact_points.h"
#include "client/c/drake/contacts.h"
#include "client/c/drake/dynamics.h"

namespace {

using sap::drake::ContactArrays;
using sap::drake::ContactState;
using sap::drake::PointWriter;

ContactArrays ContactsIn(int64_t count, int32_t* trees, double* jacobian, double* parameters,
                         double* frames) {
  return {.tree_a = trees,
          .tree_b = trees + count,
          .jacobian = jacobian,
          .signed_distance = parameters,
          .stiffness = parameters + count,
          .relaxation_time = parameters + 2 * count,
          .friction = parameters + 3 * count,
          .delassus_estimate = parameters + 4 * count,
          .elastic_force = parameters + 5 * count,
          .dissipation = parameters + 6 * count,
          .lagged_normal_impulse = parameters + 7 * count,
          .frames = frames};
}

}  // namespace

void sap_drake_write_dynamics(const sap_drake_plant* plant, const double* mass,
                              const double* damping, const double* v_0, const double* force,
                              double* blocks, double* v_star, double* diagonal) {
  sap::drake::WriteDynamics(*plant, {mass, damping, v_0, force}, blocks, v_star, diagonal);
}

int64_t sap_drake_add_pairs(const sap_drake_plant* plant, const sap_drake_material* materials,
                            int64_t pairs, const int64_t* geometries, const double* depth,
                            const double* normal, const double* position_on_b,
                            sap_drake_point* points, int32_t* bodies) {
  PointWriter writer(*plant, materials, points, bodies);
  writer.AddPairs({pairs, geometries, depth, normal, position_on_b});
  return writer.count();
}

int64_t sap_drake_add_faces(const sap_drake_plant* plant, const sap_drake_material* materials,
                            int64_t surfaces, const int64_t* geometries, const int64_t* faces,
                            const uint8_t* has_gradient, const double* area, const double* pressure,
                            const double* position, const double* normal, const double* gradient_m,
                            const double* gradient_n, sap_drake_point* points, int32_t* bodies) {
  PointWriter writer(*plant, materials, points, bodies);
  writer.AddFaces({.count = surfaces,
                   .geometries = geometries,
                   .faces = faces,
                   .has_gradient = has_gradient,
                   .area = area,
                   .pressure = pressure,
                   .position = position,
                   .normal = normal,
                   .gradient_m = gradient_m,
                   .gradient_n = gradient_n});
  return writer.count();
}

int64_t sap_drake_measure_contacts(const sap_drake_plant* plant, int64_t contacts,
                                   const int32_t* bodies, uint8_t* needs_jacobian) {
  return sap::drake::MeasureContacts(*plant, {contacts, nullptr, bodies}, needs_jacobian);
}

void sap_drake_write_contacts(const sap_drake_plant* plant, int64_t contacts,
                              const sap_drake_point* points, const int32_t* bodies,
                              const double* diagonal, const double* position, const double* v_0,
                              int64_t others_count, const int64_t* others, const double* jacobians,
                              int32_t* trees, double* jacobian, double* parameters,
                              double* frames) {
  const ContactState state = {.diagonal = diagonal,
                              .position = position,
                              .v_0 = v_0,
                              .bodies = {others, static_cast<size_t>(others_count)},
                              .jacobians = jacobians};
  sap::drake::WriteContacts(*plant, {contacts, points, bodies}, state,
                            ContactsIn(contacts, trees, jacobian, parameters, frames));
}

void sap_drake_generalized_impulse(const sap_drake_plant* plant, int64_t contacts,
                                   const int32_t* tree_a, const int32_t* tree_b,
                                   const double* jacobian, const double* impulse, double* result) {
  sap::drake::WriteGeneralizedImpulse(*plant, {contacts, tree_a, tree_b, jacobian}, impulse,
                                      result);
}

void sap_drake_contact_velocity(const sap_drake_plant* plant, int64_t contacts,
                                const int32_t* tree_a, const int32_t* tree_b,
                                const double* jacobian, const double* velocity, double* result) {
  sap::drake::WriteContactVelocity(*plant, {contacts, tree_a, tree_b, jacobian}, velocity, result);
}
