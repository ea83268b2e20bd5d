/* A program of a user in C: the gear of gear.cc, solved by the C library. */
#include <math.h>
#include <stdio.h>

#include "sap_islands.h"

int main(void) {
  const uint32_t dofs[] = {1, 1}, entries[] = {2}, index[] = {0, 1};
  const double inertia[] = {0.1, 0.4}, free_motion[] = {0.2, 0.0}, coefficient[] = {1, -2};
  sap_trees trees = {sizeof trees};
  trees.dofs = (sap_uint32s){dofs, 2};
  trees.dynamics_matrix = (sap_doubles){inertia, 2};
  trees.free_motion_velocity = (sap_doubles){free_motion, 2};
  sap_rows rows = {sizeof rows};
  rows.entries = (sap_uint32s){entries, 1};
  rows.velocity_index = (sap_uint32s){index, 2};
  rows.coefficient = (sap_doubles){coefficient, 2};
  sap_problem problem = {sizeof problem};
  problem.time_step = 0.01;
  problem.trees = &trees;
  problem.rows = &rows;

  sap_client* client = NULL;
  sap_answer* answer = sap_answer_new();
  if (sap_connect("embedded:", NULL, NULL, &client, answer) != SAP_OK ||
      sap_solve(client, &problem, NULL, NULL, answer) != SAP_OK) {
    fprintf(stderr, "%s\n", sap_answer_error(answer)->message);
    return 1;
  }
  const double speed = sap_answer_solution(answer)->velocity.data[0];
  printf("fast %.3f rad/s\n", speed);
  sap_answer_free(answer);
  sap_client_free(client);
  return fabs(speed - 0.1) < 1e-3 ? 0 : 1;
}
