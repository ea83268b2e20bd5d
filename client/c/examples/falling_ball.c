// A ball that falls on the floor, as a session: each step starts from the velocity of the one
// before.
//
//   cc falling_ball.c -I CLONE/client/c -L CLONE/build/release/lib -lsap_islands -o falling_ball
#include <sap_islands.h>
#include <stdio.h>

enum { STEPS = 100 };
static const double time_step = 0.01;  // s
static const double gravity = 9.81;    // m/s^2
static const double radius = 0.1;      // m

int main(void) {
  const double mass = 1.0;
  const double inertia[6] = {0.004, 0.004, 0.004, 0, 0, 0};  // xx yy zz xy xz yz [kg m^2]
  double center[3] = {0, 0, 0.3};
  double velocity[6] = {0.5, 0, 0, 0, 0, 0};  // of the center, then angular
  const uint32_t name = 1;
  sap_bodies bodies = {.struct_size = sizeof bodies};
  bodies.mass = (sap_doubles){&mass, 1};
  bodies.inertia = (sap_doubles){inertia, 6};
  bodies.center_of_mass = (sap_doubles){center, 3};
  bodies.free_motion_velocity = (sap_doubles){velocity, 6};
  bodies.body_id = (sap_uint32s){&name, 1};

  const int32_t ball = 0, world = -1;
  double point[3];
  const double normal[3] = {0, 0, 1};
  double distance;
  const double stiffness = 1e5, friction = 0.5;
  double relaxation_time;
  sap_contact_laws laws = {.struct_size = sizeof laws};
  laws.signed_distance = (sap_doubles){&distance, 1};
  laws.stiffness = (sap_doubles){&stiffness, 1};
  laws.relaxation_time = (sap_doubles){&relaxation_time, 1};
  laws.friction = (sap_doubles){&friction, 1};
  sap_body_contacts contacts = {.struct_size = sizeof contacts};
  contacts.body_a = (sap_int32s){&ball, 1};
  contacts.body_b = (sap_int32s){&world, 1};
  contacts.point = (sap_doubles){point, 3};
  contacts.normal = (sap_doubles){normal, 3};
  contacts.laws = &laws;

  sap_problem problem = {.struct_size = sizeof problem};
  problem.time_step = time_step;
  problem.bodies = &bodies;
  problem.body_contacts = &contacts;

  if (sap_abi_version() != SAP_ABI_VERSION) return 1;
  sap_client* client = NULL;
  sap_session* session = NULL;
  sap_answer* answer = sap_answer_new();
  if (sap_connect("embedded:", NULL, NULL, &client, answer) != SAP_OK ||
      sap_session_open(client, NULL, NULL, &session, answer) != SAP_OK) {
    fprintf(stderr, "%s\n", sap_answer_error(answer)->message);
    return 1;
  }
  for (int step = 0; step < STEPS; ++step) {
    velocity[2] -= gravity * time_step;
    distance = center[2] - radius;
    relaxation_time = distance > 0 ? 0 : 0.01;  // or it brakes before touch
    for (int i = 0; i < 3; ++i) point[i] = center[i] - radius * normal[i];
    if (sap_session_step(session, &problem, NULL, NULL, answer) != SAP_OK) {
      fprintf(stderr, "%s\n", sap_answer_error(answer)->message);
      return 1;
    }
    const sap_solution* solution = sap_answer_solution(answer);
    for (int i = 0; i < 6; ++i) velocity[i] = solution->velocity.data[i];
    for (int i = 0; i < 3; ++i) center[i] += time_step * velocity[i];
  }
  // Rolling without slip: v_x = omega_y radius.
  printf("height %.4f m, velocity %.4f m/s, omega x radius %.4f m/s\n", center[2], velocity[0],
         velocity[4] * radius);
  sap_answer_free(answer);
  sap_session_free(session);
  sap_client_free(client);
  return 0;
}
