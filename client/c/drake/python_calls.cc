#include "client/c/drake/python_calls.h"

#include "client/c/drake/contact_jacobian.h"
#include "client/c/drake/contact_points.h"
#include "client/c/drake/contacts.h"
#include "client/c/drake/dynamics.h"

namespace {

using sap::drake::ContactArrays;
using sap::drake::PointWriter;

ContactArrays ArraysIn(int64_t count, const sap_drake_contacts& arrays) {
  double* parameters = arrays.parameters;
  return {.tree_a = arrays.trees,
          .tree_b = arrays.trees + count,
          .jacobian = arrays.jacobian,
          .signed_distance = parameters,
          .stiffness = parameters + count,
          .relaxation_time = parameters + 2 * count,
          .friction = parameters + 3 * count,
          .delassus_estimate = parameters + 4 * count,
          .elastic_force = parameters + 5 * count,
          .dissipation = parameters + 6 * count,
          .lagged_normal_impulse = parameters + 7 * count,
          .frames = arrays.frames};
}

}  // namespace

void sap_drake_write_dynamics(const sap_drake_plant* plant, const double* mass,
                              const double* damping, const double* v_0, const double* force,
                              double* blocks, double* v_star, double* diagonal) {
  sap::drake::WriteDynamics(*plant, {mass, damping, v_0, force}, blocks, v_star, diagonal);
}

int64_t sap_drake_add_pairs(const sap_drake_plant* plant, const sap_drake_material* materials,
                            const sap_drake_pairs* pairs, const sap_drake_points* points) {
  PointWriter writer(*plant, materials, points->points, points->bodies);
  writer.AddPairs(*pairs);
  return writer.count();
}

int64_t sap_drake_add_faces(const sap_drake_plant* plant, const sap_drake_material* materials,
                            const sap_drake_surfaces* surfaces, const sap_drake_points* points) {
  PointWriter writer(*plant, materials, points->points, points->bodies);
  writer.AddFaces(*surfaces);
  return writer.count();
}

int64_t sap_drake_measure_contacts(const sap_drake_plant* plant, int64_t contacts,
                                   const int32_t* bodies, uint8_t* needs_jacobian) {
  return sap::drake::MeasureContacts(*plant, {contacts, nullptr, bodies}, needs_jacobian);
}

void sap_drake_write_contacts(const sap_drake_plant* plant, int64_t contacts,
                              const sap_drake_points* points, const sap_drake_state* state,
                              const sap_drake_contacts* arrays) {
  sap::drake::WriteContacts(*plant, {contacts, points->points, points->bodies}, *state,
                            ArraysIn(contacts, *arrays));
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
