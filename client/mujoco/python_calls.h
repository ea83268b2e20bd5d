/* The loops of the Python package's adapter for MuJoCo, on the arrays of mjModel and mjData.
 *
 * Not for other users: the package and the library are of one version, and these functions change
 * with every one of them. They keep no state, and threads may call them for different states.
 */
#ifndef SAP_ISLANDS_CLIENT_MUJOCO_PYTHON_CALLS_H_
#define SAP_ISLANDS_CLIENT_MUJOCO_PYTHON_CALLS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SAP_MUJOCO_API __attribute__((visibility("default")))

/* Where a field is. */
typedef struct sap_mujoco_field {
  int64_t in_data; /* 1: in mjData; 0: in mjModel; -1: the version has no such array */
  int64_t offset;  /* in the struct [bytes] */
  int64_t size;    /* of a number, or of an array within the struct [bytes]; of a pointer 8 */
} sap_mujoco_field;

/* The names of the rows that a table of fields must have, one per line and in order:
 *
 *   integer NAME, real NAME, array TYPE NAME     a number or an array of mjModel or mjData
 *   numbers TYPE NAME                            an array within mjData; `size` is that of all
 *   contact TYPE NAME                            an array in mjContact; `offset` is in mjContact
 *   contacts NAME                                an array of mjContact; `size` is that of one
 *   struct NAME                                  `size` is its own
 *
 * then constants, which have no row: constant ENUMERATION NAME VALUE. */
SAP_MUJOCO_API const char* sap_mujoco_fields(void);

/* Numbers of a problem, and where its arrays begin in the buffers that it is written to. */
typedef struct sap_mujoco_layout {
  int64_t rows;           /* from MuJoCo's constraints; after the build with those of actuators */
  int64_t simulator_rows; /* from MuJoCo's constraints */
  int64_t non_zeros;      /* of all rows */
  int64_t contacts;       /* C */
  int64_t turning;        /* N contacts with an angular Jacobian */
  int64_t two_frictions;  /* after the build: 1 if friction along t1 and t2 differs somewhere */
  int64_t has_stiffness;  /* after the build: 1 if normal forces are given by stiffness */
  int64_t has_slip;       /* after the build: 1 if rows have slip parameters */
  int64_t doubles;        /* length of the buffers */
  int64_t unsigned_integers;
  int64_t integers;
  int64_t part_trees; /* in a model with flexes, of all contacts; otherwise 0 */
  int64_t tree_count; /* T trees of the problem: client/mujoco/trees.h */
  int64_t couplings;  /* K pairs of trees between which A has blocks */
  /* In the doubles. */
  int64_t v_star; /* [nv]; before it A_t of each tree */
  int64_t guess;  /* [nv] */
  int64_t laws;   /* [6, row_capacity]: R, v_hat, lower, upper, u, slip parameter */
  int64_t row_capacity;
  int64_t coefficient;    /* non-zeros of the rows */
  int64_t jacobian;       /* linear blocks of all contacts */
  int64_t angular;        /* angular blocks */
  int64_t scalars;        /* [8, C]: coefficients of friction along t1, t2 and about n, R_t, R_n,
                              then signed distance, stiffness and relaxation time */
  int64_t rolling;        /* [C, 2] coefficients about t1 and t2 */
  int64_t target;         /* [C, 3] v_hat */
  int64_t target_angular; /* [N, 3] */
  int64_t servos;         /* for sap_mujoco_finish */
  int64_t velocities;     /* [nefc] J v_0 */
  int64_t coupling;       /* blocks of coupled trees, to the end of the doubles */
  /* In the unsigned integers: [row_capacity] non-zeros of each row, then their columns. */
  int64_t parts; /* [C] number of trees of each contact in a model with flexes */
  int64_t sizes; /* [T] dofs of each tree */
  /* In the integers. */
  int64_t row;     /* index in efc_* of each row from MuJoCo's constraints */
  int64_t contact; /* [C] index in mjData.contact */
  int64_t trees;   /* [2, C] trees of each contact, -1: the world; with flexes [part_trees] */
  int64_t joint;   /* joint of each row of actuators; -1: none */
  int64_t coupled; /* [2, K] trees a > b of each pair */
} sap_mujoco_layout;

enum {
  SAP_MUJOCO_LAW_SAP = 1,  /* the law of SAP, otherwise MuJoCo's */
  SAP_MUJOCO_SPARSE = 2,   /* the rows of efc_J are sparse */
  SAP_MUJOCO_CHANGE = 4,   /* MuJoCo's law in the unknown v - v_0: J v_0 is not needed */
  SAP_MUJOCO_ALWAYS = 8,   /* solve also what MuJoCo is predicted to solve faster */
  SAP_MUJOCO_RECORDED = 16 /* controls are recorded, and no callback computes them */
};

/* An array of a problem: a part of the buffer of its type. */
typedef struct sap_mujoco_array {
  int64_t number; /* of the array, in the order of solver/problem/problem_fields.h */
  int64_t begin;
  int64_t length;
} sap_mujoco_array;

/* A problem, in buffers of at least the lengths in the layout. */
typedef struct sap_mujoco_problem {
  int32_t flags; /* of the enumeration above */
  sap_mujoco_layout layout;
  double* doubles;
  uint32_t* unsigned_integers;
  int32_t* integers;
  sap_mujoco_array* arrays; /* after the build: those that are not empty */
  int64_t array_count;      /* before the build: room for so many */
} sap_mujoco_problem;

/* Parameters of all contacts, under the law of SAP; NULL: those of the model. */
typedef struct sap_mujoco_material {
  double sigma; /* slip parameter of friction loss; 0: MuJoCo's R and v_hat */
  const double* stiffness;
  const double* relaxation_time;
  const double* friction;
} sap_mujoco_material;

/* A solution. */
typedef struct sap_mujoco_solution {
  const double*
      values; /* velocity [nv], impulses of the rows, [C, 3] of contacts, [N, 3] angular */
  const uint32_t* iterations; /* [islands] */
  int64_t islands;
} sap_mujoco_solution;

/* Of sap_mujoco.h. Functions that have an outcome return SAP_OK, or another kind of error. */
struct sap_mujoco;
struct sap_mujoco_outcome;

/* Stages of mj_step before its constraint solver. */
enum {
  SAP_MUJOCO_ALL_STAGES = 0,
  SAP_MUJOCO_POSITIONS = 1,   /* all that depends on positions only */
  SAP_MUJOCO_CONSTRAINTS = 2, /* constraints, after contacts were changed */
  SAP_MUJOCO_FORCES = 3       /* after the velocities: controls and smooth forces */
};

/* A step is sap_mujoco_compute, sap_mujoco_measure, sap_mujoco_build, a solve, sap_mujoco_finish.
 *
 *   flags   SAP_MUJOCO_LAW_SAP, SAP_MUJOCO_RECORDED */
SAP_MUJOCO_API int32_t sap_mujoco_compute(const struct sap_mujoco* solver, const void* model,
                                          void* data, int32_t stage, int32_t flags,
                                          struct sap_mujoco_outcome* outcome);

/* Determines the layout of the problem of a state whose constraints and forces are computed.
 *
 *   problem   has the law in its flags */
SAP_MUJOCO_API void sap_mujoco_measure(const struct sap_mujoco* solver, const void* model,
                                       const void* data, sap_mujoco_problem* problem);

/* Writes the problem to its buffers, and where its arrays are. */
SAP_MUJOCO_API int32_t sap_mujoco_build(const struct sap_mujoco* solver, const void* model,
                                        const void* data, const sap_mujoco_material* material,
                                        sap_mujoco_problem* problem,
                                        struct sap_mujoco_outcome* outcome);

/* Writes the forces of a solution to the state, computes what MuJoCo makes of them, and integrates.
 * MuJoCo's timers count the step, with durations of 0. */
SAP_MUJOCO_API int32_t sap_mujoco_finish(const struct sap_mujoco* solver, const void* model,
                                         void* data, const sap_mujoco_problem* problem,
                                         const sap_mujoco_solution* solution,
                                         struct sap_mujoco_outcome* outcome);

/* Integrates activations, velocities and positions of a state whose forces are stored.
 *
 *   velocity   [nv] of the solution; read under the law of SAP */
SAP_MUJOCO_API int32_t sap_mujoco_integrate(const struct sap_mujoco* solver, const void* model,
                                            void* data, int32_t flags, const double* velocity,
                                            struct sap_mujoco_outcome* outcome);

/* What sap_mujoco_solve_constraints returns in place of a number of islands. */
enum {
  SAP_MUJOCO_SLOWER = -1,         /* MuJoCo's own solver is predicted to be faster */
  SAP_MUJOCO_UNSOLVED = -2,       /* an island was not solved, or the problem was refused */
  SAP_MUJOCO_MORE_ITERATIONS = -3 /* an island needs more iterations than the model allows */
};

/* How one step was solved. */
typedef struct sap_mujoco_certificate {
  int64_t islands;
  int64_t unsolved;   /* islands that were not solved to the tolerance */
  int64_t iterations; /* largest of an island */
  double bound;       /* largest bound of an island on l(v) - min l [J]; 0: there is no island */
} sap_mujoco_certificate;

/* Does what mj_fwdConstraint does: writes qacc, qfrc_constraint, efc_force, efc_state, efc_b, the
 * arrays by islands, and the solver's statistics. Returns the number of islands, or a value of the
 * enumeration above with the state unchanged.
 *
 *   flags         SAP_MUJOCO_SPARSE, SAP_MUJOCO_ALWAYS
 *   certificate   what is solved is added to it; may be NULL */
SAP_MUJOCO_API int64_t sap_mujoco_solve_constraints(const sap_mujoco_field* fields,
                                                    const void* model, void* data, int32_t flags,
                                                    sap_mujoco_certificate* certificate);

/* What the work of a Newton iteration depends on. */
typedef struct sap_mujoco_work {
  double rows;            /* of efc_J */
  double cones;           /* contacts with an elliptic cone */
  double entries_squared; /* sum over the rows, of their non-zeros */
  double dofs_squared;    /* sum over the rows, of the dofs of their trees */
  double tree_cubes;      /* sum over the trees, of their dofs cubed */
  double flops;           /* of MuJoCo's factorization */
  double fill;            /* entries of its factor */
} sap_mujoco_work;

/* Counts it, for the calibration of the choice that sap_mujoco_solve_constraints makes. */
SAP_MUJOCO_API void sap_mujoco_count_work(const sap_mujoco_field* fields, const void* model,
                                          const void* data, int32_t flags, sap_mujoco_work* work);

/* Velocities after a step, of a state whose M is computed. */
typedef struct sap_mujoco_velocities {
  const double* recorded;        /* [nv] by a simulator */
  const double* exact;           /* [nv] */
  const double* v_free;          /* [nv] of the problem: without constraints */
  const double* solution;        /* [nv] of the problem; the integrator makes `exact` of it */
  const int32_t* island_of_tree; /* [T] of the problem's trees; -1: the tree has no constraint */
  const double* gap;             /* [islands] bounds of the gaps to the least cost */
  int64_t islands;
  double slow;    /* velocity that is the smallest scale of errors */
  int32_t sleeps; /* 1: trees at rest in `recorded` do not count */
} sap_mujoco_velocities;

typedef struct sap_mujoco_comparison {
  double error;        /* of all trees, relative to the scale */
  double bound;        /* of the error against the optimum; infinite where a gap is unknown */
  double scale;        /* in the norm of M */
  double island_error; /* largest of an island, relative to its own scale */
  int64_t worst_tree;  /* first tree of that island */
  int64_t asleep;      /* trees that do not count */
} sap_mujoco_comparison;

/* Compares velocities; writes to tree_error [ntree] the norm of M of the error of each tree. */
SAP_MUJOCO_API void sap_mujoco_compare(const sap_mujoco_field* fields, const void* model,
                                       const void* data, const sap_mujoco_velocities* velocities,
                                       double* tree_error, sap_mujoco_comparison* comparison);

/* K recorded steps of a model. */
typedef struct sap_mujoco_recording {
  int64_t states;      /* K */
  const double* state; /* [K, state_size] before each step */
  int64_t state_size;
  int32_t state_kind; /* mjtState: all that a step depends on */
  int32_t sleeps;     /* as in sap_mujoco_velocities */
  double slow;
  const double* next_qvel;      /* [K, nv] recorded velocities after each step */
  const void* contacts;         /* mjContact [N] of all states; NULL: none were recorded */
  const int64_t* first_contact; /* [K + 1] of each state; NULL with `contacts` */
  double touching; /* overlap from which a pair of geoms without a recorded contact is lost [m] */
} sap_mujoco_recording;

/* What is found of a recorded step. Its contacts are the recorded ones and MuJoCo's of the pairs
 * that are lost; where none were recorded, MuJoCo's. */
typedef struct sap_mujoco_judgment {
  double error; /* as in sap_mujoco_comparison */
  double bound;
  double island_error;
  int64_t contacts;       /* of the problem */
  int64_t found_contacts; /* that MuJoCo finds */
  int64_t lost_pairs;
  double found_error; /* with the contacts that MuJoCo finds */
  int64_t asleep;
} sap_mujoco_judgment;

/* The first recorded step that has no exact one. */
typedef struct sap_mujoco_refusal {
  int64_t state;
  char message[256];
} sap_mujoco_refusal;

/* Judges recorded steps under MuJoCo's law, on threads of which each has a state of `data`. The
 * bits of a judgment depend on its recorded step alone. Returns a kind of sap_error.
 *
 *   judgments   [K] written */
SAP_MUJOCO_API int32_t sap_mujoco_judge(const struct sap_mujoco* solver, const void* model,
                                        void* const* data, int32_t threads,
                                        const sap_mujoco_recording* recording,
                                        sap_mujoco_judgment* judgments,
                                        sap_mujoco_refusal* refusal);

#ifdef __cplusplus
}
#endif

#endif /* SAP_ISLANDS_CLIENT_MUJOCO_PYTHON_CALLS_H_ */
