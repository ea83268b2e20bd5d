// Structs of the C interface: problems, options, solutions, derivatives, errors, servers. Included
// by sap_islands.h, which says what holds for all of them.
#ifndef SAP_ISLANDS_TYPES_H_
#define SAP_ISLANDS_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Whether a struct that the library wrote has a member.
#define SAP_HAS(pointer, member)                                               \
  ((size_t)((const char*)(&(pointer)->member + 1) - (const char*)(pointer)) <= \
   (pointer)->struct_size)

// ---- Errors

// Numbers of google.rpc.Code.
enum {
  SAP_OK = 0,
  SAP_CANCELLED = 1,            // by the stop flag
  SAP_INVALID_ARGUMENT = 3,     // `field` is at fault, or a file cannot be read
  SAP_DEADLINE_EXCEEDED = 4,    // of the call or of the session
  SAP_PERMISSION_DENIED = 7,    // this client may not make the call
  SAP_RESOURCE_EXHAUSTED = 8,   // memory, or a limit of the server: retry later
  SAP_FAILED_PRECONDITION = 9,  // the server, or this process after a fork(), cannot do this now
  SAP_ABORTED = 10,             // the session was idle for too long
  SAP_UNIMPLEMENTED = 12,       // the server, or this library, does not know this call
  SAP_INTERNAL = 13,            // a defect of the library or of the server
  SAP_UNAVAILABLE = 14,         // no connection, or the server is shutting down: retry
  SAP_UNAUTHENTICATED = 16      // the server does not accept the token, or needs one
};

typedef struct sap_error {
  size_t struct_size;
  int32_t kind;            // SAP_OK and empty strings where there is no error
  int32_t lost_attempts;   // losses after the call was sent; with 2 it may be what ends servers
  const char* message;     // "contacts.friction[17] is -0.3; it must be finite and >= 0"
  const char* field;       // "contacts.friction[17]", or ""
  int64_t index;           // 17, or -1 if the field has none
  const char* reason;      // the limit that is exceeded, as "SOLVE_MEMORY", or ""
  double retry_after_s;    // wait before a retry; 0: the server suggests none
  const char* request_id;  // names the call in the server's log, or ""
  const char* server;      // boot id of the server that ended the call, or "": none did
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
  sap_doubles initial_velocity;      // [sum n_t], for LOAD_PATH and rest, or empty
  sap_int32s coupled_a;              // [K] pairs of coupled trees a > b, ascending
  sap_int32s coupled_b;              // [K]
  sap_doubles coupling_block;        // [sum n_a n_b] A_ab of each pair, row-major blocks
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
  sap_doubles initial_velocity;      // [6 B], for LOAD_PATH and rest, or empty
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

// The arrays that contacts and body contacts have in common, for n contacts.
typedef struct sap_contact_laws {
  size_t struct_size;
  sap_doubles signed_distance;             // [n] m, negative where bodies overlap
  sap_doubles stiffness;                   // [n] N/m
  sap_doubles relaxation_time;             // [n] s; 0 where signed_distance > 0
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
  // In the contact frame for either kind, as impulses of solutions are, or empty: no guess.
  sap_doubles guess_impulse;          // [3 n] N s
  sap_doubles guess_angular_impulse;  // [3 per contact with an angular coefficient] N m s
} sap_contact_laws;

// C contacts given by Jacobians, in frames (t1, t2, n); v_n > 0 separates.
typedef struct sap_contacts {
  size_t struct_size;
  sap_int32s tree_a;             // [C] in [0, T + B)
  sap_int32s tree_b;             // [C] in [-1, T + B); -1: none
  sap_doubles jacobian;          // per contact 3 x n_a, then 3 x n_b if there is a tree_b
  sap_doubles angular_jacobian;  // the same of each contact with an angular coefficient > 0
  const sap_contact_laws* laws;  // vectors in the contact frame
  // In place of tree_a and tree_b: contacts of any number of trees, 3 x n of each in this order.
  sap_uint32s parts;     // [C] trees of each contact
  sap_int32s part_tree;  // [sum of parts] in [0, T + B)
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
  sap_doubles guess_impulse;  // N s, N m s
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
  const double* reference_time_step;   // (time_step), s
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

// Which islands the accelerated method hands over to the interior-point method.
enum { SAP_INTERIOR_POINT_AUTO = 1, SAP_INTERIOR_POINT_NEVER = 2, SAP_INTERIOR_POINT_ALWAYS = 3 };

enum { SAP_PRIORITY_NORMAL = 1, SAP_PRIORITY_HIGH = 2 };

// Exact Coulomb friction. NULL: the default in parentheses.
typedef struct sap_coulomb_friction {
  size_t struct_size;
  const uint32_t* max_rounds;  // convex solves after the first, per island (100)
  const double* tolerance;     // in [0, 1) (relative_tolerance)
} sap_coulomb_friction;

// A bound on how far islands move if nothing around them changes. NULL: the default in parentheses.
typedef struct sap_rest {
  size_t struct_size;
  const double* horizon;  // finite, > 0 [s] (1)
} sap_rest;

// NULL and 0: the default in parentheses. NULL in place of the struct: all defaults.
typedef struct sap_options {
  size_t struct_size;
  const double* relative_tolerance;        // in [0, 1) (1e-6; 1e-10 for derivatives)
  const double* absolute_speed_tolerance;  // >= 0 [m/s] (1e-14)
  const uint32_t* max_iterations;          // (500)
  const double* time_budget_s;             // > 0; then islands return their best iterate (none)
  int32_t newton;                          // SAP_NEWTON_* (ACCELERATED)
  int32_t one_island;                      // 1: all trees with constraints together (0)
  uint64_t max_memory_bytes;               // of the factorizations, in process (no limit)
  int64_t num_response_mask;               // fields of the solution to return, as "velocity":
  const char* const* response_mask;        // their names (all)
  int32_t priority;                        // SAP_PRIORITY_* among what waits at a server (NORMAL)
  const sap_coulomb_friction* coulomb;     // exact Coulomb friction (the convex model)
  const sap_rest* rest;                    // asks for rest_drift, needs initial_velocity (none)
  int32_t interior_point;                  // SAP_INTERIOR_POINT_* (AUTO)
} sap_options;

typedef struct sap_stop sap_stop;

typedef void (*sap_callback)(void* context);

// Context of sap_notify_event.
typedef struct sap_event {
  uint8_t* flag;    // is set to 1, and then
  int32_t eventfd;  // 1 is added to this descriptor
} sap_event;

enum { SAP_SERVERS_OF_ADDRESS = -1 };

// How a call is made. NULL and 0: the default in parentheses. NULL in place of the struct: all
// defaults.
typedef struct sap_call {
  size_t struct_size;
  const double* deadline_s;  // time after which it fails; of sap_session_open, that of all steps
  const sap_stop* stop;      // ends it from another thread (none)
  // For sap_solve only: the number of parts, each at a server of its own, in which a scene of many
  // large islands is solved where that pays; SAP_SERVERS_OF_ADDRESS: as many as the address has.
  // Changes no bits. (1)
  int32_t servers;
  // 1: the call returns when it has begun, with SAP_OK or why it has not. When it has ended, its
  // answers are complete, and `done` is called on a thread of the library, which must neither wait
  // in it nor call functions of this header other than sap_notify_*. (0)
  int32_t background;
  sap_callback done;        // or NULL; has returned when sap_answer_await does
  void* context;            // of `done`
  const char* request_id;   // names the call in the server's log (the server makes one)
  const char* traceparent;  // W3C trace context (none)
  int32_t* kind;            // where the kind of a call in the background is put (nowhere)
  // For sap_session_open only.
  const double* reconnect_within_s;  // as that of sap_connect_options, for this session (that one)
  const int32_t* low_latency;        // likewise
  int32_t opens_later;               // 1: returns at once, see sap_session_await_open (0)
} sap_call;

// ---- Solution (proto/sap/v1/solution.proto)

enum {
  SAP_ISLAND_CONVERGED = 1,
  SAP_ISLAND_STALLED_AT_ROUNDOFF = 2,
  SAP_ISLAND_ITERATION_LIMIT = 3,
  SAP_ISLAND_DEADLINE = 4,
  SAP_ISLAND_CANCELLED = 5,
  SAP_ISLAND_NUMERICAL_FAILURE = 6,
  SAP_ISLAND_COULOMB_LIMIT = 7
};

// Arrays over the islands, all of the same length but `swept`, which lists islands, those of exact
// Coulomb friction, which are empty without it, and `rest_drift`, which is empty unless asked for.
typedef struct sap_island_reports {
  size_t struct_size;
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
  sap_uint32s coulomb_rounds;
  sap_doubles coulomb_defect;  // kg^1/2 m/s
  sap_doubles rest_drift;      // m; of articulated trees the unit of each degree of freedom
  sap_doubles sag;             // m, rad: give of contacts and rows beyond their stiffness
  sap_doubles creep;           // m/s, rad/s: slip of friction that holds
} sap_island_reports;

typedef struct sap_solution {
  size_t struct_size;
  sap_doubles velocity;           // [sum n_t + 6 B]
  sap_doubles impulse;            // [3 (C + C')] in (t1, t2, n), N s
  sap_doubles contact_velocity;   // [3 (C + C')] m/s
  sap_doubles row_impulse;        // [R]
  sap_doubles row_velocity;       // [R]
  sap_doubles angular_impulse;    // [3 per contact with an angular coefficient > 0] N m s
  sap_doubles delassus_estimate;  // [C + C'] w, 0 where it is not used, 1/kg
  double cost;                    // J
  sap_int32s island_of_tree;      // [T + B], -1: no constraint
  const sap_island_reports* islands;
  double decode_s;       // time of reading and checking the problem,
  double queue_s;        // of waiting for a thread of the server,
  double islands_s;      // of finding and gathering islands,
  double solve_s;        // of solving them,
  double encode_s;       // and of encoding the answer at the server
  int32_t warm_started;  // of a step: a tree or body started from the last solved step
} sap_solution;

// The islands of a problem, before it is solved.
typedef struct sap_forecast {
  size_t struct_size;
  sap_int32s island_of_tree;  // [T + B] as in sap_solution
  sap_doubles solve_time_s;   // per island: predicted time of a warm solve on one core
} sap_forecast;

// ---- Bodies at rest

// All finite and > 0; the horizon at most 10000 time steps.
typedef struct sap_rest_rules {
  size_t struct_size;
  double horizon;    // of certificates and long steps, rounded to whole time steps [s]
  double tolerance;  // largest rest_drift of an island that rests [m]
  double time_step;  // of the other steps [s]
} sap_rest_rules;

enum {
  SAP_WAKE_PAIR = 0,  // a body outside of the island within the margin
  SAP_WAKE_INPUT = 1  // load, motor, target, material or gravity changed
};

// How the poses of M bodies follow their velocities, which they have from now on.
typedef struct sap_body_moves {
  size_t struct_size;
  sap_uint32s body_id;   // [M]
  sap_doubles duration;  // [M] [s]; 0: it stays where it is
  sap_doubles velocity;  // [6 M] linear, then angular, in world axes [m/s, rad/s]
  int64_t resting;       // of them, the first so many rest; the others are awake
} sap_body_moves;

// Since the beginning, in islands.
typedef struct sap_rest_counts {
  size_t struct_size;
  int64_t woken_by_pair;
  int64_t woken_by_input;
  int64_t long_steps;
  int64_t long_steps_refused;  // each wakes an island
} sap_rest_counts;

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
  size_t struct_size;
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
  size_t struct_size;
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
  size_t struct_size;
  int64_t num_gradients;  // one per cotangent
  const sap_gradient* const* gradients;
  int64_t num_tangents;  // one per direction
  const sap_tangent* const* tangents;
  sap_doubles kink_margin;    // per island, in [0, 1]
  sap_int32s adjoint_status;  // per island, SAP_ADJOINT_*
} sap_derivatives;

// Arrays of pointers have the lengths before them. `padding` is 0: without it, what a later version
// has in its place would be read from callers that never set it.
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
  int32_t padding;
} sap_differentiation;

// ---- Files

typedef struct sap_bytes {
  const void* data;
  int64_t length;
} sap_bytes;

enum { SAP_FORMAT_BINARY = 0, SAP_FORMAT_JSON = 1 };

// One problem as it was solved, and its outcome (proto/sap/v1/recording.proto).
typedef struct sap_record {
  size_t struct_size;
  const char* version;          // of the server; bits are equal for equal version
  const char* instruction_set;  // and instruction set
  int64_t arrival_time_ns;      // since 1970
  double duration_s;            // from arrival to answer
  const sap_problem* problem;   // with the guess that the solve started from
  const sap_options* options;
  const sap_solution* solution;  // or NULL
  const sap_error* error;        // or NULL
} sap_record;

// ---- Servers

// A limit that "embedded:" does not have is the largest number.
typedef struct sap_server_info {
  size_t struct_size;
  const char* version;
  const char* instruction_set;
  const char* boot_id;  // of the process: different after each start
  uint32_t processors;
  uint32_t solver_threads;  // that work on one problem
  uint64_t max_message_bytes;
  uint64_t max_solve_memory_bytes;  // of the factorization of one problem
  uint32_t max_trees;
  uint32_t max_tree_dofs;
  uint32_t max_contacts;
  uint32_t max_rows;
  uint32_t max_row_entries;  // of all rows of a problem together
  uint32_t max_row_pairs;    // of trees that the rows of a problem join
  uint32_t max_iterations;
  uint32_t max_concurrent_calls;
  uint32_t max_batch_problems;
  uint32_t max_sessions;
  uint32_t max_client_sessions;
  uint32_t max_steps_in_flight;
  uint32_t max_derivatives;       // cotangents and tangents of one problem
  int32_t high_priority;          // 0: high priority is served as normal
  double max_solve_s;             // of this client, as the next one
  double max_client_calls_per_s;  // 0: no limit
  uint32_t max_client_calls;      // of one client at once
  uint64_t max_held_bytes;        // of all calls at once
  uint64_t max_client_bytes;      // of the calls of one client at once
  double queue_timeout_s;         // longest wait for a thread
  double read_timeout_s;          // longest time for a message to arrive
  double session_idle_s;          // longest pause between steps of a session
  double connection_age_s;        // age at which a client is asked to connect again
} sap_server_info;

// How to connect. NULL and 0: the default in parentheses. Texts of certificates and keys are PEM;
// of a text and its file, give one.
typedef struct sap_connect_options {
  size_t struct_size;
  int32_t threads;      // of "embedded:": that work on one problem, <= 1024 (all of the process)
  int32_t low_latency;  // 1: callers poll for up to a millisecond before they sleep, and servers
                        // are asked to keep processors awake between the steps of sessions (0)
  const double* connect_timeout_s;   // time to wait for a server; 0: none, the first call does (2)
  const double* reconnect_within_s;  // time to repeat lost calls and to move lost sessions (5)
  int32_t allow_mixed_servers;  // 1: a session or batch stream may go on at a server of another
                                // version or instruction set, and so in bits (0)
  int32_t tls;                  // 1: encrypt; implied by a CA, certificate or key (0)
  const char* server_ca;        // trusted authorities (those of the system)
  const char* server_ca_file;
  const char* certificate;  // of this client, where the server asks for one (none)
  const char* certificate_file;
  const char* key;  // of that certificate
  const char* key_file;
  const char* server_name;    // expected in the server's certificate (the host of the address)
  const char* token;          // bearer token (none)
  const char* token_file;     // read again when it changes
  int32_t in_order;           // 1: the first server of a list that can be reached, no turns (0)
  int32_t scene_connections;  // most connections to one server over which a solve or step divides
                              // a large scene, with the same bits, <= 64 (1)
} sap_connect_options;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SAP_ISLANDS_TYPES_H_
