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

/* Pairs of geometries that penetrate each other. */
typedef struct sap_drake_pairs {
  int64_t count;
  const int64_t* geometries; /* [2, count] index in the materials of the geometries A, then of B */
  const double* depth;
  const double* normal;        /* [count, 3] from B to A */
  const double* position_on_b; /* [count, 3] the point on the surface of B */
} sap_drake_pairs;

/* Hydroelastic surfaces with F faces. */
typedef struct sap_drake_surfaces {
  int64_t count;
  const int64_t* geometries; /* [2, count] index in the materials of the geometries M, then of N */
  const int64_t* faces;      /* [count] number of faces */
  const uint8_t* has_gradient; /* [count, 2] whether M and N have pressure gradients; 0: rigid */
  const double* area;          /* [F] */
  const double* pressure;      /* [F] */
  const double* position;      /* [F, 3] */
  const double* normal;        /* [faces of surfaces with one gradient, 3] from N to M */
  const double* gradient_m;    /* [faces of surfaces with this gradient, 3] */
  const double* gradient_n;
} sap_drake_surfaces;

/* Contact points and their bodies. */
typedef struct sap_drake_points {
  sap_drake_point* points;
  int32_t* bodies; /* [points, 2] A and B */
} sap_drake_points;

/* Writes a contact point for each pair. Points between bodies that are both fixed are left out.
 * Returns the number of points, as many as pairs at most. */
SAP_DRAKE_API int64_t sap_drake_add_pairs(const sap_drake_plant* plant,
                                          const sap_drake_material* materials,
                                          const sap_drake_pairs* pairs,
                                          const sap_drake_points* points);

/* As sap_drake_add_pairs, a contact point for each face. */
SAP_DRAKE_API int64_t sap_drake_add_faces(const sap_drake_plant* plant,
                                          const sap_drake_material* materials,
                                          const sap_drake_surfaces* surfaces,
                                          const sap_drake_points* points);

/* Sets a flag [bodies] for each body in contact whose Jacobian the caller computes: those that can
 * move and are not free bodies. Returns the number of values in the Jacobian of the contacts.
 *
 *   bodies   [contacts, 2] of which at least one can move */
SAP_DRAKE_API int64_t sap_drake_measure_contacts(const sap_drake_plant* plant, int64_t contacts,
                                                 const int32_t* bodies, uint8_t* needs_jacobian);

/* The state in which contact points are. */
typedef struct sap_drake_state {
  const double* diagonal; /* [n] of A */
  const double* position; /* q */
  const double* v_0;      /* [nv] */
  int64_t count;          /* K */
  const int64_t* bodies;  /* [K] the flagged ones, ascending */
  /* [K, 3 + 6 nv] origin of each, and the Jacobian of its (omega, V) in world axes */
  const double* jacobians;
} sap_drake_state;

/* Arrays of C contacts. */
typedef struct sap_drake_contacts {
  int32_t* trees;   /* [2, C] -1: the world */
  double* jacobian; /* as `ContactProblem.contacts.jacobian` */
  /* [8, C] signed distance, stiffness, relaxation time, friction, w, elastic force, dissipation,
   * and n_0, the normal impulse of Hunt & Crossley at v_0 */
  double* parameters;
  double* frames; /* [C, 3, 3] with rows t1, t2, n */
} sap_drake_contacts;

/* Writes C contacts. */
SAP_DRAKE_API void sap_drake_write_contacts(const sap_drake_plant* plant, int64_t contacts,
                                            const sap_drake_points* points,
                                            const sap_drake_state* state,
                                            const sap_drake_contacts* arrays);

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
