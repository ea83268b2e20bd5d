// Worlds of MuJoCo, stepped by servers that were started with --mujoco-library: a model once, then
// states and controls in, states and sensors out (proto/sap/v1/world_service.proto). Of
// libsap_islands_client alone. Structs, memory and threads are as in sap_islands.h.
//
//   sap_world_model_create(SAP_MODEL_MJB, mj_version(), 1, &file, &model, answer);
//   sap_worlds worlds = {.struct_size = sizeof worlds, .worlds = N, .steps = K};
//   worlds.models = models;                       // [N] of them
//   worlds.states = (sap_doubles){initial, N * size};
//   worlds.answered_states = (sap_double_buffer){answered, N * K * size};
//   worlds.codes = codes;
//   sap_worlds_advance(client, &worlds, NULL, answer);
//
// Servers keep a model by its hash and step it with this solver; the states stay the caller's. A
// call is made in parts, at all servers of the address, and repeated where it is lost: same bits.
#ifndef SAP_ISLANDS_WORLDS_H_
#define SAP_ISLANDS_WORLDS_H_

#include "sap_islands.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SAP_MODEL_MJB = 1, SAP_MODEL_MJCF = 2 };

// A file of a model. That of a binary one needs no name.
typedef struct sap_model_file {
  const char* name;
  sap_bytes content;
} sap_model_file;

typedef struct sap_world_model sap_world_model;

enum { SAP_STATE_FULL_PHYSICS = 1, SAP_STATE_INTEGRATION = 2 };

enum {
  SAP_CONTROL_CTRL = 1,
  SAP_CONTROL_QFRC_APPLIED = 2,
  SAP_CONTROL_XFRC_APPLIED = 3,
  SAP_CONTROL_EQ_ACTIVE = 4,
  SAP_CONTROL_MOCAP_POS = 5,
  SAP_CONTROL_MOCAP_QUAT = 6,
  SAP_CONTROL_USERDATA = 7
};

enum {
  SAP_WORLD_LAW_SAP = 1,
  SAP_WORLD_LAW_MUJOCO = 2,
  SAP_WORLD_LAW_COULOMB = 3,
  SAP_WORLD_LAW_RUN = 4
};

enum {
  SAP_WORLD_END_STEPS = 1,    // all steps are taken
  SAP_WORLD_END_WARNING = 2,  // held after a warning of MuJoCo's
  SAP_WORLD_END_REST = 3,
  SAP_WORLD_END_FAILURE = 4
};

// A world ends when the largest dof_length |qvel| has been below `speed` for `duration`.
typedef struct sap_at_rest {
  size_t struct_size;
  double speed;     // > 0 [m/s]
  double duration;  // >= 0 [s]
} sap_at_rest;

// How a step was solved. Never grows.
typedef struct sap_world_certificate {
  int64_t islands;     // solved by this solver
  int64_t unsolved;    // of these, not to the tolerance
  int64_t iterations;  // largest of an island
  double bound;        // largest of an island on l(v) - min l [J]
} sap_world_certificate;

enum { SAP_WORLD_MESSAGE = 256 };

// Writable memory; NULL and 0: not wanted.
typedef struct sap_double_buffer {
  double* data;
  int64_t length;
} sap_double_buffer;

// N worlds, K steps, R = ceil(K / every) answered rows of each. 0, NULL and empty: the default in
// parentheses. Rows after the end of a world repeat its last state and sensors.
typedef struct sap_worlds {
  size_t struct_size;
  int64_t worlds;                        // N
  int64_t steps;                         // K
  int64_t every;                         // (1)
  const sap_world_model* const* models;  // [N], with states of equal size
  int32_t state_kind;                    // SAP_STATE_* of `states` (FULL_PHYSICS)
  int32_t answered_kind;                 // of `answered_states` (FULL_PHYSICS)
  sap_doubles states;                    // [N, size] to begin with
  sap_int32s control_components;         // SAP_CONTROL_* that controls have (no controls are set)
  sap_doubles controls;                  // [N, K, size of all components]
  int32_t law;                           // SAP_WORLD_LAW_* (SAP)
  int32_t refuses_unsolved;              // 1: a world fails at an island that is not solved (0)
  int32_t holds_after_warning;           // 1: as mujoco.rollout; 0: goes on, as mj_step (0)
  int32_t padding;
  const double* relative_tolerance;  // not for RUN (that of the law)
  const uint32_t* max_iterations;    // likewise
  const sap_at_rest* until;          // when worlds end before K steps (never)
  sap_doubles rested;                // [N] as `rested_after` of the call before (0)
  // Written. NULL: not wanted.
  sap_double_buffer answered_states;    // [N, R, size of answered_kind]
  sap_double_buffer sensors;            // [N, R, nsensordata]
  sap_double_buffer final_states;       // [N, size of INTEGRATION]: checkpoints
  sap_world_certificate* certificates;  // [N, K], 0 after the end of a world
  int32_t* ends;                        // [N] SAP_WORLD_END_*
  int64_t* taken;                       // [N] steps
  uint32_t* warnings;                   // [N] the bit 1 << kind for each mjtWarning
  double* rested_after;                 // [N] time below the speed of `until` [s]
  int32_t* codes;  // [N] SAP_OK, or why there are no further steps: of the step after `taken`
  char* messages;  // [N, SAP_WORLD_MESSAGE] of these errors
} sap_worlds;

// Makes a model as servers get it, a SAP_MODEL_* of `mujoco_version` as mj_version() counts it. The
// files are copied. Its hash is computed once: use one for all calls, by any number of threads.
SAP_API int32_t sap_world_model_create(int32_t kind, int32_t mujoco_version, int64_t num_files,
                                       const sap_model_file* files, sap_world_model** model,
                                       sap_answer* answer);
// Not while a call uses it.
SAP_API void sap_world_model_free(sap_world_model* model);
// Steps worlds. SAP_OK also where some have failed: see `codes`.
SAP_API int32_t sap_worlds_advance(sap_client* client, const sap_worlds* worlds,
                                   const sap_call* call, sap_answer* answer);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SAP_ISLANDS_WORLDS_H_
