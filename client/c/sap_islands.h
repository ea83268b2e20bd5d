// C interface of the solver: frictional contact problems in, certified solutions and derivatives
// out, within the calling process. C99; for other languages it is the one library to bind to.
//
//   sap_solver *solver = sap_solver_new(0);
//   sap_answer *answer = sap_answer_new();
//   sap_bodies bodies = {.struct_size = sizeof bodies};  // every struct begins with its size
//   bodies.mass = (sap_doubles){mass, 1};                // arrays stay the caller's
//   sap_problem problem = {.struct_size = sizeof problem};
//   problem.time_step = 0.01;
//   problem.bodies = &bodies;
//   if (sap_solve(solver, &problem, NULL, NULL, answer) != SAP_OK)
//     puts(sap_answer_error(answer)->message);  // "bodies.inertia has 0 values; 6 are needed ..."
//   else
//     use(sap_answer_solution(answer)->velocity);
//
// Structs have the names, meanings, units and ranges of the messages in proto/sap/v1, where each
// field is documented. Zero or NULL is what an absent field is there, so a struct of which only the
// size is set is the empty message.
//
// Memory. What the caller passes is read during the call only; the solver keeps no pointer to it.
// What an answer returns belongs to the answer, until it is used for another call or freed.
//
// Threads. A solver may be used by any number of threads at once. A session, and an answer, by one
// thread at a time. After fork() the child may go on with the solvers and with the sessions that
// were not in a step; its threads are its own.
//
// Bits. An answer is a function of the problem, its guess and the options, for one version and
// instruction set: the bits are those of sap-server, for any number of threads.
//
// Stability. sap_abi_version() is the number in the name of the shared library. Under one number
// functions stay, and structs grow only at their end: a caller may be older or newer than the
// library. A struct larger than the library's is accepted if what the library does not know is 0.
#ifndef SAP_ISLANDS_H_
#define SAP_ISLANDS_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SAP_API __attribute__((visibility("default")))
#else
#define SAP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SAP_ABI_VERSION 0

// ---- Library

// SAP_ABI_VERSION of the library; another number than the header's: do not use it.
SAP_API int32_t sap_abi_version(void);
// As in "0.1.0".
SAP_API const char* sap_version(void);
// What the library was built for, as in "x86-64-v3".
SAP_API const char* sap_instruction_set(void);

// ---- Errors

// Numbers of google.rpc.Code.
enum {
  SAP_OK = 0,
  SAP_CANCELLED = 1,            // by the stop token
  SAP_INVALID_ARGUMENT = 3,     // `field` is at fault
  SAP_RESOURCE_EXHAUSTED = 8,   // memory
  SAP_FAILED_PRECONDITION = 9,  // a session that another thread was stepping at fork()
  SAP_INTERNAL = 13             // a defect of the library
};

typedef struct sap_error {
  int32_t kind;         // SAP_OK and empty strings where there is no error
  const char* message;  // "contacts.friction[17] is -0.3; it must be finite and >= 0"
  const char* field;    // "contacts.friction[17]", or ""
  const char* reason;   // the limit that is exceeded, as "SOLVE_MEMORY", or ""
} sap_error;

// ---- Arrays: `length` numbers at `data`; NULL and 0 if empty

typedef struct sap_doubles {
  const double* data;
  int64_t length;
} sap_doubles;

typedef struct sap_int32s {
  const int32_t* data;
  int64_t length;
} sap_int32s;

typedef struct sap_uint32s {
  const uint32_t* data;
  int64_t length;
} sap_uint32s;

// ---- Problem (proto/sap/v1/problem.proto)

// T trees: articulated bodies in generalized velocities.
typedef struct sap_trees {
  size_t struct_size;
  sap_uint32s dofs;                  // [T] n_t >= 1
  sap_doubles dynamics_matrix;       // [sum n_t^2] A_t, row-major blocks, positive definite
  sap_doubles free_motion_velocity;  // [sum n_t] v* [m/s, rad/s]
  sap_doubles guess_velocity;        // [sum n_t] or empty
  sap_uint32s tree_id;               // [T] or empty; sessions match trees by it
  sap_doubles initial_velocity;      // [sum n_t], empty unless the rule is LOAD_PATH
} sap_trees;

// B rigid bodies, numbered after the trees. World axes.
typedef struct sap_bodies {
  size_t struct_size;
  sap_doubles mass;                  // [B] kg
  sap_doubles inertia;               // [6 B] xx yy zz xy xz yz about the center of mass, kg m^2
  sap_doubles center_of_mass;        // [3 B] m
  sap_doubles free_motion_velocity;  // [6 B] (v of the center of mass, angular velocity)
  sap_doubles guess_velocity;        // [6 B] or empty
  sap_uint32s body_id;               // [B] or empty
  sap_doubles initial_velocity;      // [6 B], empty unless the rule is LOAD_PATH
} sap_bodies;

// Parameters of the contacts whose `law` is one of Hunt & Crossley; arrays over all contacts of the
// group.
typedef struct sap_hunt_crossley {
  size_t struct_size;
  sap_doubles elastic_force;          // N
  sap_doubles dissipation;            // s/m
  sap_doubles lagged_normal_impulse;  // N s
} sap_hunt_crossley;

enum {
  SAP_CONTACT_LAW_SAP = 1,
  SAP_CONTACT_LAW_HUNT_CROSSLEY_LAGGED = 2,
  SAP_CONTACT_LAW_HUNT_CROSSLEY_SIMILAR = 3
};

// What contacts and body contacts have in common, for n contacts.
typedef struct sap_contact_laws {
  size_t struct_size;
  sap_doubles signed_distance;             // [n] m, negative where bodies overlap
  sap_doubles stiffness;                   // [n] N/m
  sap_doubles relaxation_time;             // [n] s
  sap_doubles friction;                    // [n] -
  sap_doubles regularization_t;            // [n] or empty, 1/kg
  sap_doubles regularization_n;            // [n] or empty, 1/kg
  sap_doubles delassus_estimate;           // [n] or empty, 1/kg
  sap_doubles surface_velocity;            // [3 n] or empty, m/s
  sap_doubles friction_2;                  // [n] or empty, -
  sap_doubles torsional_friction;          // [n] or empty, m
  sap_doubles rolling_friction;            // [2 n] or empty, m
  sap_doubles target_velocity;             // [3 n] or empty, m/s
  sap_doubles target_angular_velocity;     // [3 per contact with an angular coefficient] or empty
  sap_doubles adhesion;                    // [n] or empty, N
  sap_int32s law;                          // [n] SAP_CONTACT_LAW_*, or empty: SAP
  const sap_hunt_crossley* hunt_crossley;  // or NULL
} sap_contact_laws;

// C contacts given by Jacobians, in frames (t1, t2, n); v_n > 0 separates.
typedef struct sap_contacts {
  size_t struct_size;
  sap_int32s tree_a;             // [C] in [0, T + B)
  sap_int32s tree_b;             // [C] in [-1, T + B); -1: none
  sap_doubles jacobian;          // per contact 3 x n_a, then 3 x n_b if there is a tree_b
  sap_doubles angular_jacobian;  // the same of each contact with an angular coefficient > 0
  const sap_contact_laws* laws;  // vectors in the contact frame
} sap_contacts;

// C' contacts between bodies, given by points and normals in world axes.
typedef struct sap_body_contacts {
  size_t struct_size;
  sap_int32s body_a;             // [C'] in [0, B)
  sap_int32s body_b;             // [C'] in [-1, B); -1: the world
  sap_doubles point;             // [3 C'] m
  sap_doubles normal;            // [3 C'] unit, from b to a
  sap_doubles tangent;           // [3 C'] or empty
  const sap_contact_laws* laws;  // vectors in world axes
} sap_body_contacts;

// R constraint rows with E non-zeros.
typedef struct sap_rows {
  size_t struct_size;
  sap_uint32s entries;         // [R] non-zeros of each row
  sap_uint32s velocity_index;  // [E]
  sap_doubles coefficient;     // [E]
  sap_doubles position_error;  // from here on [R] or empty
  sap_doubles velocity_offset;
  sap_doubles stiffness;  // empty: infinite
  sap_doubles relaxation_time;
  sap_doubles force_lower;  // empty: -infinity
  sap_doubles force_upper;  // empty: infinity
  sap_doubles regularization;
  sap_doubles target_velocity;
  sap_doubles delassus_estimate;
  sap_doubles slip_parameter;
  sap_doubles force_offset;
} sap_rows;

enum {
  SAP_REGULARIZATION_RULE_FULL = 1,
  SAP_REGULARIZATION_RULE_DIAGONAL = 2,
  SAP_REGULARIZATION_RULE_LOAD_PATH = 3
};

// NULL: the default in parentheses.
typedef struct sap_regularization {
  size_t struct_size;
  const double* beta;                  // (1)
  const double* sigma;                 // (1e-3)
  const double* row_beta;              // (0.1)
  const double* stiction_speed;        // (1e-4 m/s)
  int32_t rule;                        // SAP_REGULARIZATION_RULE_*; 0: FULL
  const double* load_reference_speed;  // (infinite), m/s; of LOAD_PATH
} sap_regularization;

// NULL: the problem has none of these.
typedef struct sap_problem {
  size_t struct_size;
  double time_step;  // > 0 [s]
  const sap_trees* trees;
  const sap_bodies* bodies;
  const sap_contacts* contacts;
  const sap_body_contacts* body_contacts;
  const sap_rows* rows;
  const sap_regularization* regularization;
} sap_problem;

// ---- Options (SolveOptions in proto/sap/v1/solver_service.proto)

enum { SAP_NEWTON_PLAIN = 1, SAP_NEWTON_ACCELERATED = 2, SAP_NEWTON_GAUSS_SEIDEL = 3 };

// NULL and 0: the default in parentheses. NULL in the place of the struct: all defaults.
typedef struct sap_options {
  size_t struct_size;
  const double* relative_tolerance;        // in [0, 1) (1e-6; 1e-10 for derivatives)
  const double* absolute_speed_tolerance;  // >= 0 [m/s] (1e-14)
  const uint32_t* max_iterations;          // (500)
  const double* time_budget_s;             // > 0; then islands return their best iterate (none)
  int32_t newton;                          // SAP_NEWTON_* (ACCELERATED)
  int32_t one_island;                      // 1: all trees with constraints together (0)
  uint64_t max_memory_bytes;               // of the factorizations of a solve (no limit)
} sap_options;

// ---- Solution (proto/sap/v1/solution.proto)

enum {
  SAP_ISLAND_CONVERGED = 1,
  SAP_ISLAND_STALLED_AT_ROUNDOFF = 2,
  SAP_ISLAND_ITERATION_LIMIT = 3,
  SAP_ISLAND_DEADLINE = 4,
  SAP_ISLAND_CANCELLED = 5,
  SAP_ISLAND_NUMERICAL_FAILURE = 6
};

// Arrays over the islands, all of the same length but `swept`, which lists islands.
typedef struct sap_islands {
  sap_int32s status;  // SAP_ISLAND_*
  sap_uint32s iterations;
  sap_uint32s factorizations;
  sap_doubles momentum_residual;     // -
  sap_doubles optimality_gap_bound;  // J
  sap_uint32s dofs;
  sap_uint32s contacts;
  sap_uint32s rows;
  sap_doubles solve_time_s;
  sap_uint32s swept;
  sap_doubles cost;  // J
} sap_islands;

typedef struct sap_solution {
  sap_doubles velocity;          // [sum n_t + 6 B]
  sap_doubles impulse;           // [3 (C + C')] in (t1, t2, n), N s
  sap_doubles contact_velocity;  // [3 (C + C')] m/s
  sap_doubles row_impulse;       // [R]
  sap_doubles row_velocity;      // [R]
  sap_doubles angular_impulse;   // [3 per contact with an angular coefficient > 0] N m s
  double cost;                   // J
  sap_int32s island_of_tree;     // [T + B], -1: no constraint
  const sap_islands* islands;
  double check_s;                 // time of checking the problem,
  double islands_s;               // of finding and gathering islands,
  double solve_s;                 // and of solving them
  int32_t warm_started;           // of a session: a tree or body started from the step before
  sap_doubles delassus_estimate;  // [C + C'] w, 0 where it is not used, 1/kg
} sap_solution;

// The islands of a problem, before it is solved.
typedef struct sap_forecast {
  sap_int32s island_of_tree;  // [T + B] as in sap_solution
  sap_doubles solve_time_s;   // per island: predicted time of a warm solve on one core
} sap_forecast;

// ---- Derivatives (proto/sap/v1/gradient.proto)

// dL/d(output); empty arrays are 0.
typedef struct sap_cotangent {
  size_t struct_size;
  sap_doubles velocity;
  sap_doubles impulse;
  sap_doubles contact_velocity;
  sap_doubles row_impulse;
  sap_doubles row_velocity;
  sap_doubles angular_impulse;
  double cost;
} sap_cotangent;

// d(output) along a direction.
typedef struct sap_tangent {
  sap_doubles velocity;
  sap_doubles impulse;
  sap_doubles contact_velocity;
  sap_doubles row_impulse;
  sap_doubles row_velocity;
  sap_doubles angular_impulse;
  double cost;
} sap_tangent;

// dL/d(input). In `problem` the doubles of wanted inputs are set and all else is empty or NULL;
// its groups are never NULL.
typedef struct sap_gradient {
  const sap_problem* problem;
  sap_doubles applied_impulse;    // [sum n_t + 6 B], or empty
  sap_doubles delassus_estimate;  // [C + C'], or empty
} sap_gradient;

enum {
  SAP_ADJOINT_DIFFERENTIATED = 1,
  SAP_ADJOINT_INACCURATE = 2,
  SAP_ADJOINT_DEADLINE = 3,
  SAP_ADJOINT_NUMERICAL_FAILURE = 4
};

typedef struct sap_derivatives {
  int64_t num_gradients;  // one per cotangent
  const sap_gradient* const* gradients;
  int64_t num_tangents;  // one per direction
  const sap_tangent* const* tangents;
  sap_doubles kink_margin;    // per island, in [0, 1]
  sap_int32s adjoint_status;  // per island, SAP_ADJOINT_*
} sap_derivatives;

// Arrays of pointers have the lengths before them.
typedef struct sap_differentiation {
  size_t struct_size;
  const sap_problem* problem;
  const sap_options* options;  // or NULL
  sap_doubles velocity;        // of the solution, or empty
  int64_t num_cotangents;
  const sap_cotangent* const* cotangents;
  int64_t num_tangents;
  const sap_problem* const* tangents;  // directions in the shape of the problem
  int64_t num_wanted;
  const char* const* wanted;  // paths of inputs, as "contacts.friction"; none: all but A and J
  int32_t hold_delassus;
} sap_differentiation;

// ---- Objects. *_new returns NULL if memory or threads are exhausted; *_free takes NULL.

typedef struct sap_solver sap_solver;
typedef struct sap_session sap_session;
typedef struct sap_answer sap_answer;
typedef struct sap_stop sap_stop;

// At most `threads` threads work on one problem, the calling one included; 0: as many as the
// process may use. Problems of some 100 us are solved on the calling thread alone. NULL also for
// less than 0 and more than 1024 threads.
SAP_API sap_solver* sap_solver_new(int32_t threads);
// Sessions of the solver may be used, and freed, after it.
SAP_API void sap_solver_free(sap_solver* solver);
SAP_API int32_t sap_solver_threads(const sap_solver* solver);

SAP_API sap_answer* sap_answer_new(void);
SAP_API void sap_answer_free(sap_answer* answer);
// Error of the last call that the answer was used for. Never NULL.
SAP_API const sap_error* sap_answer_error(const sap_answer* answer);
// NULL after an error.
SAP_API const sap_solution* sap_answer_solution(const sap_answer* answer);
// NULL after an error, and if none were asked for.
SAP_API const sap_derivatives* sap_answer_derivatives(const sap_answer* answer);
// NULL after an error, and after other calls than sap_find_islands.
SAP_API const sap_forecast* sap_answer_forecast(const sap_answer* answer);

// A flag by which another thread ends a call; a call without one gets NULL.
SAP_API sap_stop* sap_stop_new(void);
SAP_API void sap_stop_free(sap_stop* stop);
// Calls with this flag end with SAP_CANCELLED within some 100 us. May be called in signal handlers.
SAP_API void sap_stop_request(sap_stop* stop);
// The flag as it was made.
SAP_API void sap_stop_reset(sap_stop* stop);

// ---- Calls. Each returns the kind of its error, which is also in the answer.

// Solves one problem.
SAP_API int32_t sap_solve(sap_solver* solver, const sap_problem* problem,
                          const sap_options* options, const sap_stop* stop, sap_answer* answer);

// Solves `count` independent problems on all threads. Each has an answer of its own, with its
// solution or its error. The options are those of each problem, the time budget that of the batch.
// Not SAP_OK if the options are at fault, or if it was stopped: then every answer has that error.
SAP_API int32_t sap_solve_batch(sap_solver* solver, int64_t count,
                                const sap_problem* const* problems, const sap_options* options,
                                const sap_stop* stop, sap_answer* const* answers);

// Finds the islands of one problem, on the calling thread. It checks counts and indices, with the
// errors of sap_solve, and looks at no other value. An island is a problem of its own: solved alone
// it has the bits that it has among the others.
SAP_API int32_t sap_find_islands(sap_solver* solver, const sap_problem* problem,
                                 sap_answer* answer);

// A sequence of problems: each starts from the velocities of the last solved one, by tree_id and
// body_id, unless it has a guess.
SAP_API sap_session* sap_session_new(sap_solver* solver);
SAP_API void sap_session_free(sap_session* session);
// As sap_solve. A step that fails leaves the session as it was.
SAP_API int32_t sap_session_step(sap_session* session, const sap_problem* problem,
                                 const sap_options* options, const sap_stop* stop,
                                 sap_answer* answer);
// Forgets the velocities: the next step is as the first one was.
SAP_API void sap_session_reset(sap_session* session);

// Solves a problem and differentiates its solution.
SAP_API int32_t sap_differentiate(sap_solver* solver, const sap_differentiation* request,
                                  const sap_stop* stop, sap_answer* answer);

// As sap_solve_batch. The time budget, or NULL, is that of the batch; requests have none.
SAP_API int32_t sap_differentiate_batch(sap_solver* solver, int64_t count,
                                        const sap_differentiation* const* requests,
                                        const double* time_budget_s, const sap_stop* stop,
                                        sap_answer* const* answers);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SAP_ISLANDS_H_
