// A body in free fall, stepped at a server by a program with an event loop: it never waits in the
// library. It waits for a descriptor that becomes readable when something has arrived.
//
//   cc event_loop.c -I CLONE/client/c -L CLONE/build/release/lib -lsap_islands_client -o event_loop
//   ./event_loop 127.0.0.1:50051
#include <poll.h>
#include <sap_islands.h>
#include <stdio.h>
#include <sys/eventfd.h>

enum { STEPS = 3 };

static int fail(const sap_answer* answer) {
  fprintf(stderr, "%s\n", sap_answer_error(answer)->message);
  return 1;
}

int main(int argc, char** argv) {
  const double mass = 2, gravity = 9.81;
  const double inertia[6] = {0.1, 0.1, 0.1, 0, 0, 0}, center[3] = {0, 0, 10};
  double velocity[6] = {0};
  sap_bodies bodies = {.struct_size = sizeof bodies};
  bodies.mass = (sap_doubles){&mass, 1};
  bodies.inertia = (sap_doubles){inertia, 6};
  bodies.center_of_mass = (sap_doubles){center, 3};
  bodies.free_motion_velocity = (sap_doubles){velocity, 6};
  sap_problem problem = {.struct_size = sizeof problem};
  problem.time_step = 0.01;
  problem.bodies = &bodies;

  if (argc != 2) return fputs("usage: event_loop HOST:PORT\n", stderr), 2;
  if (sap_abi_version() != SAP_ABI_VERSION) return fputs("the library is another\n", stderr), 2;
  sap_client* client = NULL;
  sap_session* session = NULL;
  sap_answer* answer = sap_answer_new();
  sap_call call = {.struct_size = sizeof call, .background = 1};
  if (sap_connect(argv[1], NULL, NULL, &client, answer) != SAP_OK) return fail(answer);
  if (sap_session_open(client, NULL, &call, &session, answer) != SAP_OK) return fail(answer);
  struct pollfd event = {.fd = eventfd(0, EFD_NONBLOCK), .events = POLLIN};
  sap_session_notify(session, sap_notify_eventfd, (void*)(intptr_t)event.fd, answer);

  for (int step = 0; step < STEPS; ++step) {
    velocity[2] -= gravity * problem.time_step;
    if (sap_session_send(session, &problem, NULL, NULL, answer) != SAP_OK) return fail(answer);
    const double now = 0;
    while (!sap_session_await_outcome(session, &now)) {
      poll(&event, 1, -1);  // other descriptors of the program would stand here too
      eventfd_t count;
      eventfd_read(event.fd, &count);
    }
    if (sap_session_take(session, NULL, answer) != SAP_OK) return fail(answer);
    printf("%.9f m/s\n", -sap_answer_solution(answer)->velocity.data[2]);
  }
  sap_session_free(session);
  sap_client_free(client);
  sap_answer_free(answer);
  return 0;
}
