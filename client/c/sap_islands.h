// C interface of sap-islands: frictional contact problems in, certified solutions and derivatives
// out, within the calling process or from servers. C99; what other languages bind to.
//
//   sap_client *client = NULL;
//   sap_answer *answer = sap_answer_new();
//   sap_connect("embedded:", NULL, NULL, &client, answer);  // or "127.0.0.1:50051", "unix:/run/s"
//   sap_bodies bodies = {.struct_size = sizeof bodies};     // every struct begins with its size
//   bodies.mass = (sap_doubles){mass, 1};                   // arrays stay the caller's
//   sap_problem problem = {.struct_size = sizeof problem};
//   problem.time_step = 0.01;
//   problem.bodies = &bodies;
//   if (sap_solve(client, &problem, NULL, NULL, answer) != SAP_OK)
//     puts(sap_answer_error(answer)->message);  // "bodies.inertia has 0 values; 6 are needed ..."
//   else
//     use(sap_answer_solution(answer)->velocity);
//
// Two libraries have this interface: libsap_islands solves within the process alone and contains
// no gRPC; libsap_islands_client also reaches servers, and reads and writes files. What the first
// one cannot do ends with SAP_UNIMPLEMENTED there.
//
// Structs have the names, meanings, units and ranges of the messages in proto/sap/v1, where each
// field is documented. Zero or NULL is what an absent field is there, so a struct of which only the
// size is set is the empty message.
//
// Memory. What the caller passes is read until the call returns; of a call in the background, until
// it has ended. What an answer returns belongs to the answer, until it is used for another call or
// freed.
//
// Threads. A client may be used by any number of threads at once. A session, a batch and an answer
// by one thread at a time, and not while a call with them is in the background.
//
// fork(). The child goes on with the clients of "embedded:" and with their sessions, but with none
// that was in a step; its threads are its own. It may neither use nor open clients of servers if
// its parent had one: SAP_FAILED_PRECONDITION. To free them does nothing there.
//
// Bits. An answer is a function of the problem, its guess and the options, for one version and
// instruction set: within the process as from a server, for any number of threads.
//
// Stability. sap_abi_version() is the number in the names of the shared libraries. Under one number
// functions stay, and structs grow only at their end: a caller may be older or newer than the
// library. A struct of the caller that is larger than the library's is accepted if what the library
// does not know is 0. A struct of the library says in struct_size how much of it there is: read
// fields that were not in the first version after SAP_HAS.
#ifndef SAP_ISLANDS_H_
#define SAP_ISLANDS_H_

#include "sap_islands_types.h"

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
// The instruction set of the build, as in "x86-64-v3".
SAP_API const char* sap_instruction_set(void);

// 1 if servers can be reached and files be read, as in libsap_islands_client.
SAP_API int32_t sap_has_transport(void);

// ---- Objects. *_new returns NULL if memory or threads are exhausted; *_free takes NULL. To calls
// NULL is SAP_INVALID_ARGUMENT; other functions answer as of an object that has ended.

typedef struct sap_client sap_client;
typedef struct sap_session sap_session;
typedef struct sap_batch sap_batch;
typedef struct sap_recording sap_recording;
typedef struct sap_resting sap_resting;
typedef struct sap_answer sap_answer;

SAP_API sap_answer* sap_answer_new(void);
SAP_API void sap_answer_free(sap_answer* answer);
// 1 if the call in the background that the answer was passed to has ended; else waits for that,
// `wait_s` at most, NULL: without end. Other threads may wait as well. The order is: answers are
// complete, `done` is called, `done` returns, this returns 1. So nothing that was passed to the
// call is read, written or called after it, and the context of `done` may be freed, or its
// descriptor closed. Where the answers are complete and `done` is running it waits for that, also
// with a `wait_s` of 0: who is woken by `done` gets 1.
SAP_API int32_t sap_answer_await(const sap_answer* answer, const double* wait_s);
// Error of the last call that the answer was used for. Never NULL.
SAP_API const sap_error* sap_answer_error(const sap_answer* answer);
// Each NULL after an error, and after calls that return something else.
SAP_API const sap_solution* sap_answer_solution(const sap_answer* answer);
SAP_API const sap_derivatives* sap_answer_derivatives(const sap_answer* answer);
SAP_API const sap_forecast* sap_answer_forecast(const sap_answer* answer);
SAP_API const sap_server_info* sap_answer_info(const sap_answer* answer);
SAP_API const sap_problem* sap_answer_problem(const sap_answer* answer);
SAP_API const sap_record* sap_answer_record(const sap_answer* answer);
SAP_API const sap_body_moves* sap_answer_moves(const sap_answer* answer);
SAP_API sap_bytes sap_answer_bytes(const sap_answer* answer);
// Number of the step that sap_session_send sent or whose outcome was taken: 1, 2, ..., also after
// an error of the step; 0: none.
SAP_API uint64_t sap_answer_step_id(const sap_answer* answer);

// A flag by which another thread ends calls.
SAP_API sap_stop* sap_stop_new(void);
SAP_API void sap_stop_free(sap_stop* stop);
// Calls with this flag end with SAP_CANCELLED: solves in this process within some 100 us, waits for
// servers within some 50 ms. May be called in signal handlers.
SAP_API void sap_stop_request(sap_stop* stop);
// The flag as it was made.
SAP_API void sap_stop_reset(sap_stop* stop);

// Adds 1 to an eventfd(2), whose number is the context: a `done` for event loops, which wait for
// the descriptor to become readable.
//
//   sap_call call = {.struct_size = sizeof call, .background = 1,
//                    .done = sap_notify_eventfd, .context = (void *)(intptr_t)fd};
SAP_API void sap_notify_eventfd(void* context);
// The same for calls and sessions that share an eventfd: the context is a sap_event, which must
// live as long as its descriptor, and its flag says whose turn it is. Read the descriptor first,
// then the flags; clear a flag before you look at what it stands for.
SAP_API void sap_notify_event(void* context);

// ---- Calls. Each returns the kind of its error, which is also in the answer.

// Makes a client of an address:
//
//   embedded:                        the solver in this process
//   HOST:PORT, unix:PATH             one server
//   HOST:PORT,HOST:PORT,...          several; calls and sessions take turns
//   dns:///NAME:PORT                 all that the name stands for
//   xds:///NAME                      those that a control plane says
SAP_API int32_t sap_connect(const char* address, const sap_connect_options* options,
                            const sap_call* call, sap_client** client, sap_answer* answer);
// Its sessions, and calls in the background, go on without it.
SAP_API void sap_client_free(sap_client* client);
// Version, hardware and limits of the server: sap_answer_info.
SAP_API int32_t sap_info(sap_client* client, const sap_call* call, sap_answer* answer);
// SAP_OK if a server takes calls, SAP_UNAVAILABLE if it says that it does not.
SAP_API int32_t sap_health(sap_client* client, const sap_call* call, sap_answer* answer);

// Solves one problem.
SAP_API int32_t sap_solve(sap_client* client, const sap_problem* problem,
                          const sap_options* options, const sap_call* call, sap_answer* answer);

// Solves `count` independent problems. Each has an answer of its own, with its solution or its
// error. The options are those of each problem, the time budget that of the batch. Not SAP_OK if
// the lists or options are at fault, if it was stopped, or if the call failed: then every answer
// has that error.
SAP_API int32_t sap_solve_batch(sap_client* client, int64_t count,
                                const sap_problem* const* problems, const sap_options* options,
                                const sap_call* call, sap_answer* const* answers);

// As sap_solve_batch, but returns at once. Answers become complete one by one, in any order, and
// sap_batch_next says which; `done` is called whenever it has one, and when it has none any more.
// What is passed is read, and `done` is called, until sap_batch_free, which ends it: there is no
// `stop`. The kind returned is also the error of every answer.
SAP_API int32_t sap_batch_begin(sap_client* client, int64_t count,
                                const sap_problem* const* problems, const sap_options* options,
                                const sap_call* call, sap_answer* const* answers,
                                sap_batch** batch);
enum { SAP_BATCH_WAITS = -1, SAP_BATCH_ENDED = -2 };
// Index of an answer that is complete and was not returned before. Waits for it, `wait_s` at most,
// NULL: without end; then SAP_BATCH_WAITS. SAP_BATCH_ENDED if all have been returned.
SAP_API int64_t sap_batch_next(sap_batch* batch, const double* wait_s);
// Cancels what has not ended, and waits for that.
SAP_API void sap_batch_free(sap_batch* batch);

// Finds the islands of one problem, in this process. It checks counts and indices, with the errors
// of sap_solve, and looks at no other value. An island is a problem of its own: solved alone it has
// the bits that it has among the others.
SAP_API int32_t sap_find_islands(sap_client* client, const sap_problem* problem,
                                 sap_answer* answer);

// Solves a problem and differentiates its solution.
SAP_API int32_t sap_differentiate(sap_client* client, const sap_differentiation* request,
                                  const sap_call* call, sap_answer* answer);

// As sap_solve_batch. The time budget, or NULL, is that of the batch; requests have none.
SAP_API int32_t sap_differentiate_batch(sap_client* client, int64_t count,
                                        const sap_differentiation* const* requests,
                                        const double* time_budget_s, const sap_call* call,
                                        sap_answer* const* answers);

// ---- Sessions: sequences of problems. Each step starts from the velocities of the last solved
// one, by tree_id and body_id, unless it has a guess. A step that fails leaves the session as it
// was. The state is here: a session outlives connections and servers.

// Opens a session; the options are those of its steps. Without `background` the thread that waits
// serves it, which takes less time per step. With it a thread of the library serves it, with all
// others of this kind, and the function returns at once: steps may be sent, and
// sap_session_notify says what arrives, for event loops. `done` is not called. With `opens_later`
// it returns at once, too, and the session is opened by the thread that waits.
SAP_API int32_t sap_session_open(sap_client* client, const sap_options* options,
                                 const sap_call* call, sap_session** session, sap_answer* answer);
// Cancels the steps in flight.
SAP_API void sap_session_free(sap_session* session);
// Solves a step; none may be in flight. Options, or NULL, are those of this step.
SAP_API int32_t sap_session_step(sap_session* session, const sap_problem* problem,
                                 const sap_options* options, const sap_call* call,
                                 sap_answer* answer);
// Sends a step, and numbers it: sap_answer_step_id. At the server's limit of steps in flight it
// waits for the oldest outcome and keeps it. In process it solves the step.
SAP_API int32_t sap_session_send(sap_session* session, const sap_problem* problem,
                                 const sap_options* options, const sap_call* call,
                                 sap_answer* answer);
// 1 if the session has been opened, or has ended: then sap_session_take has the error. Else waits
// for that, `wait_s` at most, NULL: without end.
SAP_API int32_t sap_session_await_open(sap_session* session, const double* wait_s);
// 1 if sap_session_take, or sap_session_send, would return at once, if only with the error of the
// session; else they wait for that, `wait_s` at most, NULL: without end.
SAP_API int32_t sap_session_await_outcome(sap_session* session, const double* wait_s);
SAP_API int32_t sap_session_await_room(sap_session* session, const double* wait_s);
// Waits for the outcome of the oldest step in flight. Not in the background.
SAP_API int32_t sap_session_take(sap_session* session, const sap_call* call, sap_answer* answer);
// Sets what is called when an outcome has arrived, a step can be sent, or the session has opened or
// ended, under the rules of sap_call.done; NULL: nothing, from then on: when this or
// sap_session_free returns, the last call has returned. For sessions in the background, and in
// process.
SAP_API int32_t sap_session_notify(sap_session* session, sap_callback changed, void* context,
                                   sap_answer* answer);
// Makes the step of that number and all later ones not to have been sent: outcomes that were not
// taken are dropped. In process SAP_FAILED_PRECONDITION: they are solved.
SAP_API int32_t sap_session_withdraw(sap_session* session, uint64_t step_id, sap_answer* answer);
// Forgets the velocities: the next step is as the first one was. None may be in flight.
SAP_API int32_t sap_session_reset(sap_session* session, sap_answer* answer);
// Ends the session when its steps are solved; outcomes that were not taken are lost.
SAP_API int32_t sap_session_close(sap_session* session, const sap_call* call, sap_answer* answer);
// Steps that were sent and whose outcome was not taken.
SAP_API int32_t sap_session_in_flight(const sap_session* session);
// 1 if the server has asked it to move, as before its shutdown.
SAP_API int32_t sap_session_draining(const sap_session* session);
// 0 if it has ended: no step can be sent.
SAP_API int32_t sap_session_is_open(const sap_session* session);

// ---- Bodies at rest, which are left out of the steps (deploy/docs/rest.md): which ones rest, with
// which velocities, until when. One step of a simulation: sap_resting_due, and the long step of
// these with sap_resting_take_long_steps; sap_resting_wake; the step of all that are awake with
// sap_resting_take_step. Each of these leaves its bodies in sap_answer_moves.

SAP_API int32_t sap_resting_create(const sap_rest_rules* rules, sap_resting** resting,
                                   sap_answer* answer);
SAP_API void sap_resting_free(sap_resting* resting);
// The horizon of certificates and long steps, in whole time steps [s].
SAP_API double sap_resting_horizon(const sap_resting* resting);
// The number of the island that each body rests in, -1: it is awake, and part of the next problem.
SAP_API int32_t sap_resting_islands(const sap_resting* resting, const uint32_t* body_id,
                                    int64_t count, int32_t* islands);
// Writes as much as its struct_size says.
SAP_API int32_t sap_resting_counts(const sap_resting* resting, sap_rest_counts* counts);
// Bodies of the islands whose horizon ends now, with the velocities that they kept.
SAP_API int32_t sap_resting_due(const sap_resting* resting, sap_answer* answer);
// Wakes the islands of the bodies, for a SAP_WAKE_*: all their bodies.
SAP_API int32_t sap_resting_wake(sap_resting* resting, const uint32_t* body_id, int64_t count,
                                 int32_t reason, sap_answer* answer);
// Wakes all, as where gravity changes, and goes on with steps of another length [s].
SAP_API int32_t sap_resting_set_time_step(sap_resting* resting, double time_step,
                                          sap_answer* answer);
// The long step of whole islands that are due: who rests on, then who wakes.
SAP_API int32_t sap_resting_take_long_steps(sap_resting* resting, const sap_problem* problem,
                                            const sap_solution* solution, sap_answer* answer);
// The step of all that are awake, which ends a time step: who rests from now on. Durations are 0,
// velocities those of the solution.
SAP_API int32_t sap_resting_take_step(sap_resting* resting, const sap_problem* problem,
                                      const sap_solution* solution, sap_answer* answer);

// ---- Files and messages, of libsap_islands_client alone

// Messages of proto/sap/v1 as bytes, or JSON with the field names of the schema: sap_answer_bytes.
SAP_API int32_t sap_format_problem(const sap_problem* problem, int32_t format, sap_answer* answer);
SAP_API int32_t sap_format_solution(const sap_solution* solution, int32_t format,
                                    sap_answer* answer);
// From that format: sap_answer_problem, sap_answer_solution. JSON of a problem may have the keys
// name, source, reference and drake_velocity, which are ignored; any other that the schema does not
// have is an error.
SAP_API int32_t sap_parse_problem(sap_bytes bytes, int32_t format, sap_answer* answer);
SAP_API int32_t sap_parse_solution(sap_bytes bytes, int32_t format, sap_answer* answer);
// A file of one problem: JSON where its name ends with .json, else binary; gzipped with .gz after
// that. It is read whatever its name.
SAP_API int32_t sap_save_problem(const sap_problem* problem, const char* path, sap_answer* answer);
SAP_API int32_t sap_load_problem(const char* path, sap_answer* answer);

// Opens a recording to read it, or creates or replaces it to write it. Errors name the file.
SAP_API int32_t sap_recording_open(const char* path, sap_recording** recording, sap_answer* answer);
SAP_API int32_t sap_recording_create(const char* path, sap_recording** recording,
                                     sap_answer* answer);
SAP_API void sap_recording_free(sap_recording* recording);
// The next record: sap_answer_record, NULL at the end.
SAP_API int32_t sap_recording_read(sap_recording* recording, sap_answer* answer);
// Appends one with a solution or an error. Without an arrival time it arrived before its duration.
SAP_API int32_t sap_recording_write(sap_recording* recording, const sap_record* record,
                                    sap_answer* answer);
// Writes what is buffered. An error if any part did not reach the file.
SAP_API int32_t sap_recording_close(sap_recording* recording, sap_answer* answer);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SAP_ISLANDS_H_
