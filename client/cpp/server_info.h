// Version, hardware and limits of a server, or of the solver in this process.
#pragma once

#include <cstdint>
#include <string>

namespace sap::client {

// See GetServerInfoResponse in proto/sap/v1/solver_service.proto. Of this process, "embedded:", a
// limit that is not there is the largest number.
struct ServerInfo {
  std::string version;
  std::string instruction_set;
  std::string boot_id;  // of the process: different after each start
  uint32_t processors{0};
  uint32_t solver_threads{0};
  uint64_t max_message_bytes{0};
  uint32_t max_trees{0};
  uint32_t max_tree_dofs{0};
  uint32_t max_contacts{0};
  uint32_t max_rows{0};
  uint32_t max_row_entries{0};  // of all rows of a problem together
  uint32_t max_row_pairs{0};    // of trees that the rows of a problem join
  uint32_t max_iterations{0};
  uint32_t max_concurrent_calls{0};
  uint32_t max_batch_problems{0};
  uint32_t max_sessions{0};
  uint32_t max_client_sessions{0};
  uint32_t max_steps_in_flight{0};
  uint64_t max_solve_memory_bytes{0};  // of the factorization of one problem
  double max_solve_s{0};               // of this client, as the two below
  double max_client_calls_per_s{0};    // 0: no limit
  bool high_priority{false};           // false: high priority is served as normal
  uint32_t max_derivatives{0};         // cotangents and tangents of one problem
  uint32_t max_client_calls{0};        // of one client at once
  uint64_t max_held_bytes{0};          // of all calls at once
  uint64_t max_client_bytes{0};        // of the calls of one client at once
  double queue_timeout_s{0};           // longest wait for a thread
  double read_timeout_s{0};            // longest time for a message to arrive
  double session_idle_s{0};            // longest pause between steps of a session
  double connection_age_s{0};          // age at which a client is asked to connect again; 0: never
};

}  // namespace sap::client
