/* Steps of MuJoCo with the constraints solved by this solver, for C and C++ programs.
 *
 *   sap_mujoco* solver;
 *   if (sap_mujoco_open(NULL, NULL, &solver, &outcome) != SAP_OK) puts(outcome.message);
 *   while (data->time < 3) sap_mujoco_step(solver, model, data, NULL, &outcome);
 *
 * The program is linked with MuJoCo 3.5 to 4.0, whose structs are known by version. A step runs on
 * the calling thread, which keeps its memory; threads may step different states at once. But for
 * SAP_MUJOCO_RUN, models that enable ipc are refused, and RK4 is stepped as Euler. */
#ifndef SAP_ISLANDS_CLIENT_MUJOCO_SAP_MUJOCO_H_
#define SAP_ISLANDS_CLIENT_MUJOCO_SAP_MUJOCO_H_

#include <stdint.h>

#include "python_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sap_mujoco sap_mujoco;

/* Laws of contact; see client/python/MUJOCO.md. */
enum {
  SAP_MUJOCO_SAP = 0,
  SAP_MUJOCO_MUJOCO = 1,  /* MuJoCo's own problem and integrators */
  SAP_MUJOCO_COULOMB = 2, /* that of SAP with exact Coulomb friction */
  /* The step of `sap-islands run`: MuJoCo's own, in which this solver takes the place of MuJoCo's
   * where it is predicted to be faster. Outcomes are of what this solver has solved. Tolerance and
   * number of iterations are the model's. Needs libsap_islands_mujoco.so, next to this library,
   * where packages have it, or where the system finds it. */
  SAP_MUJOCO_RUN = 3
};

typedef struct sap_mujoco_settings {
  int32_t law;               /* of the enumeration above */
  int32_t refuses_unsolved;  /* 1: a state with an island that is not solved is not advanced */
  double relative_tolerance; /* 0: 1e-6, under MuJoCo's law 1e-10 */
  int32_t max_iterations;    /* 0: the default, 500 */
} sap_mujoco_settings;

typedef struct sap_mujoco_outcome {
  int64_t islands;
  int64_t unsolved;   /* islands that were not solved to the tolerance */
  int64_t iterations; /* largest of an island */
  double bound;       /* largest bound of an island on l(v) - min l [J]; 0: there is no island */
  int32_t code;       /* SAP_OK, or the kind of error that the function returns */
  char message[256];  /* why there is no result; otherwise empty */
  /* Of a rollout: */
  int32_t warnings;    /* warnings of MuJoCo's in it: the bit 1 << kind for each mjtWarning */
  int32_t end;         /* why an environment has ended, of the enumeration below; 0: of many */
  int64_t environment; /* the first environment with an error; 0: there is none */
  int64_t step;        /* the step of the error */
} sap_mujoco_outcome;

/* Why an environment of a rollout has ended. */
enum {
  SAP_MUJOCO_END_STEPS = 1,   /* all steps are taken */
  SAP_MUJOCO_END_WARNING = 2, /* MuJoCo warned of it: sap_mujoco_rollout_arrays.warned_in */
  SAP_MUJOCO_END_REST = 3,    /* it is at rest: sap_mujoco_rollout_arrays.rest_speed */
  SAP_MUJOCO_END_FAILURE = 4  /* an error */
};

/* Finds MuJoCo's functions: in the loaded library of that path, or where NULL in what the program
 * is linked with. From then on MuJoCo's errors in calls of this interface are its errors.
 * Functions return SAP_OK, or another kind of error of sap_islands_types.h.
 *
 *   fields   table of sap_mujoco_fields; NULL: that of the released version */
SAP_MUJOCO_API int32_t sap_mujoco_open(const char* library, const sap_mujoco_field* fields,
                                       sap_mujoco** solver, sap_mujoco_outcome* outcome);
SAP_MUJOCO_API void sap_mujoco_close(sap_mujoco* solver);

/* As mj_forward and mj_step. `settings` may be NULL. */
SAP_MUJOCO_API int32_t sap_mujoco_forward(const sap_mujoco* solver, const void* model, void* data,
                                          const sap_mujoco_settings* settings,
                                          sap_mujoco_outcome* outcome);
SAP_MUJOCO_API int32_t sap_mujoco_step(const sap_mujoco* solver, const void* model, void* data,
                                       const sap_mujoco_settings* settings,
                                       sap_mujoco_outcome* outcome);

/* N environments over some steps. */
typedef struct sap_mujoco_rollout_arrays {
  int64_t environments;     /* N */
  int64_t steps;            /* S */
  const void* const* model; /* [N] */
  /* [N], all different, with the initial states. NULL: states are made, one for each thread and
   * model, and each environment begins with one as mj_resetData leaves it and its initial_state. */
  void* const* data;
  const double* initial_state; /* [N, state_size] if there is no `data` */
  const double* control;       /* [N, S, control_size]; NULL: none is set */
  int64_t control_size;
  int32_t control_kind; /* mjtState of a control */
  int32_t state_kind;   /* mjtState of a state */
  double* state;        /* [N, S, state_size] after each step; NULL: not wanted */
  int64_t state_size;
  double* sensordata;           /* [N, S, nsensordata]; NULL: not wanted */
  int32_t threads;              /* >= 1 */
  const volatile int32_t* stop; /* not 0: to end soon, with SAP_CANCELLED; may be NULL */
  int64_t* taken;               /* [N] written: steps that were taken; NULL: not wanted */
  /* [N] written: the step in which MuJoCo first warned of an environment (of numbers that are not
   * finite, or of a full buffer), after which its state and sensordata are repeated to the end, as
   * mujoco.rollout does; S: in none. NULL: environments go on, as with mj_step. */
  int64_t* warned_in;
  /* Environments end, and their rows are repeated to the end, once the largest dof_length |qvel| of
   * their degrees of freedom has been below this speed for rest_seconds [m/s]. It is a threshold:
   * what turns round or creeps counts as at rest. 0: they do not end. */
  double rest_speed;
  double rest_seconds;
  sap_mujoco_outcome* outcomes;         /* [N] written: of each environment; NULL: not wanted */
  sap_mujoco_certificate* certificates; /* [N, S] written for each step taken; NULL: not wanted */
} sap_mujoco_rollout_arrays;

/* Steps them concurrently, with the bits of sap_mujoco_step for any number of threads. These are
 * kept for the next call with as many. An error ends its environment, and the others go on. The
 * outcome has the sum of islands, the largest number of iterations, the largest bound, and the
 * error of the first environment that has one. */
SAP_MUJOCO_API int32_t sap_mujoco_rollout(const sap_mujoco* solver,
                                          const sap_mujoco_rollout_arrays* arrays,
                                          const sap_mujoco_settings* settings,
                                          sap_mujoco_outcome* outcome);

#ifdef __cplusplus
}
#endif

#endif /* SAP_ISLANDS_CLIENT_MUJOCO_SAP_MUJOCO_H_ */
