// The functions of sap_islands.h that a step needs, bound at run time: from libsap_islands, or, for
// addresses of servers, from libsap_islands_client, so that gRPC enters a process only where asked
// for.
#pragma once

#include <memory>
#include <string>

#include "client/c/sap_islands.h"

namespace sap_islands::dart {

struct CLibrary {
  // Throws std::runtime_error if the library cannot be loaded or is of another ABI.
  static const CLibrary& For(const std::string& address);

  decltype(&sap_answer_new) answer_new;
  decltype(&sap_answer_free) answer_free;
  decltype(&sap_answer_error) answer_error;
  decltype(&sap_answer_solution) answer_solution;
  decltype(&sap_connect) connect;
  decltype(&sap_client_free) client_free;
  decltype(&sap_solve) solve;
  decltype(&sap_session_open) session_open;
  decltype(&sap_session_step) session_step;
  decltype(&sap_session_free) session_free;
};

using Answer = std::unique_ptr<sap_answer, decltype(&sap_answer_free)>;
using Client = std::unique_ptr<sap_client, decltype(&sap_client_free)>;
using Session = std::unique_ptr<sap_session, decltype(&sap_session_free)>;

}  // namespace sap_islands::dart
