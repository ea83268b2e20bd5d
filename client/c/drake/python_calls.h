/* The loops of the Python package's adapter for Drake, on arrays that pydrake fills.
 *
 * Not for other users: the package and the library are of one version, and these functions change
 * with every one of them. They keep no state, and threads may call them for different states. */
#ifndef SAP_ISLANDS_CLIENT_C_DRAKE_PYTHON_CALLS_H_
#define SAP_ISLANDS_CLIENT_C_DRAKE_PYTHON_CALLS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SAP_DRAKE_API __attribute__((visibility("default")))

/* The constant part of a plant: T trees with n velocities of the nv of the plant. Those of locked
 * joints are left out. A free body is a tree with velocities (omega, v of its origin) in world
 * axes. */
typedef struct sap_drake_plant {
  double time_step;                /* dt [s] */
  int64_t trees;                   /* T */
  int64_t velocities;              /* nv */
  const int64_t* first;            /* [T + 1] in the problem, the first velocity of each tree */
  const int64_t* order;            /* [n] in the plant's v, each velocity of the problem */
  const int32_t* tree_of_body;     /* [bodies] -1: fixed to the world */
  const int64_t* position_of_free; /* [bodies] in q, the origin of a free body; otherwise -1 */
} sap_drake_plant;

/* Contact parameters of a geometry. All are doubles, since the caller has one array of them. */
typedef struct sap_drake_material {
  double body;            /* index of a body */
  double stiffness;       /* of point contact; infinite if rigid [N/m] */
  double relaxation_time; /* tau_d [s] */
  double friction;        /* mu */
  double dissipation;     /* d of Hunt & Crossley [s/m] */
  double modulus;         /* hydroelastic; infinite if rigid [Pa] */
} sap_drake_material;

/* A contact point, in world axes. */
typedef struct sap_drake_point {
  double position[3];
  double normal[3]; /* from geometry A to geometry B */
  double signed_distance;
  double stiffness;
  double relaxation_time;
  double friction;
  double dissipation;
} sap_drake_point;

/* Writes A of each tree, v* and the diagonal of A.
 *
 *   mass                 [nv, nv]
 *   damping, v_0, force  [nv] diagonal of D, velocity, all forces except those of constraints
 *   blocks               [sum n_t^2]; v_star, diagonal: [n] */
SAP_DRAKE_API void sap_drake_write_dynamics(const sap_drake_plant* plant, const double* mass,
                                            const double* damping, const double* v_0,
                                            const double* force, double* blocks, double* v_star,
                                            double* diagonal);

/* Writes the contact points of pairs of geometries that penetrate each other, and their bodies.
 * Points between bodies that are both fixed are left out. Returns the number of points.
 *
 *   geometries        [2, pairs] index in `materials` of the geometries A, then of B
 *   depth             [pairs]
 *   normal            [pairs, 3] from B to A
 *   position_on_b     [pairs, 3] the point on the surface of B
 *   points, bodies    [pairs] and [pairs, 2] are written at most */
SAP_DRAKE_API int64_t sap_drake_add_pairs(const sap_drake_plant* plant,
                                          const sap_drake_material* materials, int64_t pairs,
                                          const int64_t* geometries, const double* depth,
                                          const double* normal, const double* position_on_b,
                                          sap_drake_point* points, int32_t* bodies);

/* As sap_drake_add_pairs, a contact point for each face of S hydroelastic surfaces with F faces.
 *
 *   geometries        [2, S] index in `materials` of the geometries M, then of N
 *   faces             [S] number of faces
 *   has_gradient      [S, 2] whether M and N have pressure gradients; 0: rigid
 *   area, pressure    [F]
 *   position          [F, 3]
 *   normal            [faces of surfaces with one gradient, 3] from N to M
 *   gradient_m, _n    [faces of surfaces with this gradient, 3] */
SAP_DRAKE_API int64_t sap_drake_add_faces(
    const sap_drake_plant* plant, const sap_drake_material* materials, int64_t surfaces,
    const int64_t* geometries, const int64_t* faces, const uint8_t* has_gradient,
    const double* area, const double* pressure, const double* position, const double* normal,
    const double* gradient_m, const double* gradient_n, sap_drake_point* points, int32_t* bodies);

/* Sets a flag [bodies] for each body in contact whose Jacobian the caller computes: those that can
 * move and are not free bodies. Returns the number of values in the Jacobian of the contacts.
 *
 *   bodies   [contacts, 2] of which at least one can move */
SAP_DRAKE_API int64_t sap_drake_measure_contacts(const sap_drake_plant* plant, int64_t contacts,
                                                 const int32_t* bodies, uint8_t* needs_jacobian);

/* Writes C contacts.
 *
 *   diagonal        [n] of A
 *   position, v_0   q and [nv] v of the plant
 *   others          [K] the flagged bodies, ascending
 *   jacobians       [K, 3 + 6 nv] origin of each, and the Jacobian of its (omega, V) in world axes
 *   trees           [2, C] -1: the world
 *   jacobian        as `ContactProblem.contacts.jacobian`
 *   parameters      [8, C] signed distance, stiffness, relaxation time, friction, w, elastic force,
 *                   dissipation, and n_0, the normal impulse of Hunt & Crossley at v_0
 *   frames          [C, 3, 3] with rows t1, t2, n */
SAP_DRAKE_API void sap_drake_write_contacts(const sap_drake_plant* plant, int64_t contacts,
                                            const sap_drake_point* points, const int32_t* bodies,
                                            const double* diagonal, const double* position,
                                            const double* v_0, int64_t others_count,
                                            const int64_t* others, const double* jacobians,
                                            int32_t* trees, double* jacobian, double* parameters,
                                            double* frames);

/* Writes J' gamma [n] of the impulses gamma [C, 3] of contacts. */
SAP_DRAKE_API void sap_drake_generalized_impulse(const sap_drake_plant* plant, int64_t contacts,
                                                 const int32_t* tree_a, const int32_t* tree_b,
                                                 const double* jacobian, const double* impulse,
                                                 double* result);

/* Writes J v [C, 3] of velocities [n]. */
SAP_DRAKE_API void sap_drake_contact_velocity(const sap_drake_plant* plant, int64_t contacts,
                                              const int32_t* tree_a, const int32_t* tree_b,
                                              const double* jacobian, const double* velocity,
                                              double* result);

#ifdef __cplusplus
}
#endif

#endif /* SAP_ISLANDS_CLIENT_C_DRAKE_PYTHON_CALLS_H_ */
