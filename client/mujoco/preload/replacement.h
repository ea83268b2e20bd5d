/* The library that takes the place of MuJoCo's constraint solver in an unchanged program.
 *
 *   LD_PRELOAD=libsap_islands_mujoco.so PROGRAM
 *
 * It has functions of the names of some of MuJoCo's, which the program and MuJoCo itself call
 * instead: with LD_PRELOAD, if the program is linked with this library before MuJoCo, and after
 * sap_replacement_start if it was loaded later. Environment:
 *
 *   SAP_RUN_WHEN     faster (default): the steps in which it is predicted to be faster than MuJoCo;
 *                    always: every step that it can take; never
 *   SAP_RUN_REPORT   a file to count in, as `sap-islands run` makes it
 *   SAP_LIBRARY      libsap_islands.so; otherwise the one next to this library, or the system's
 *
 * The functions below are for the Python package and libsap_islands.so of the same version. */
#ifndef SAP_ISLANDS_CLIENT_MUJOCO_PRELOAD_REPLACEMENT_H_
#define SAP_ISLANDS_CLIENT_MUJOCO_PRELOAD_REPLACEMENT_H_

#include <stdint.h>

#include "client/mujoco/python_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SAP_REPLACEMENT_API __attribute__((visibility("default")))

/* The outcomes of steps, one per line; the first is "solved". A report is a file of 64-bit
 * integers: the version of MuJoCo, the number of islands solved, the steps of each outcome, and as
 * many integers more. */
SAP_REPLACEMENT_API const char* sap_replacement_outcomes(void);

/* Takes the place of MuJoCo's solver in this process, which has loaded MuJoCo already; again, with
 * another `when`, at any time. Returns 0, or -1 if MuJoCo is not loaded or its memory cannot be
 * written to.
 *
 *   when     as SAP_RUN_WHEN
 *   report   as SAP_RUN_REPORT; NULL: unchanged */
SAP_REPLACEMENT_API int32_t sap_replacement_start(const char* when, const char* report);

typedef int64_t (*sap_replacement_solve)(const sap_mujoco_field* fields, const void* model,
                                         void* data, int32_t flags,
                                         sap_mujoco_certificate* certificate);

/* From now on steps of this thread are solved by `solve`, which is sap_mujoco_solve_constraints,
 * where it is predicted to be faster than MuJoCo, whatever other threads do; they are added to the
 * certificate, and not to a report. NULL, NULL: steps of this thread are as others are again.
 * Returns 0, or -1 as sap_replacement_start. */
SAP_REPLACEMENT_API int32_t sap_replacement_use(sap_replacement_solve solve,
                                                sap_mujoco_certificate* certificate);

#ifdef __cplusplus
}
#endif

#endif /* SAP_ISLANDS_CLIENT_MUJOCO_PRELOAD_REPLACEMENT_H_ */
