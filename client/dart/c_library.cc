#include "client/dart/c_library.h"

#include <dlfcn.h>

#include <stdexcept>

namespace sap_islands::dart {
namespace {

template <typename Function>
void Bind(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr) throw std::runtime_error(dlerror());
}

// The library stays loaded: its threads and those who hold its objects outlive any owner here.
CLibrary Load(const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  decltype(&sap_abi_version) abi_version;
  Bind(library, "sap_abi_version", &abi_version);
  if (abi_version() != SAP_ABI_VERSION) {
    throw std::runtime_error(std::string(file) + " has ABI " + std::to_string(abi_version()) +
                             "; " + std::to_string(SAP_ABI_VERSION) + " is needed");
  }
  CLibrary functions;
  Bind(library, "sap_answer_new", &functions.answer_new);
  Bind(library, "sap_answer_free", &functions.answer_free);
  Bind(library, "sap_answer_error", &functions.answer_error);
  Bind(library, "sap_answer_solution", &functions.answer_solution);
  Bind(library, "sap_connect", &functions.connect);
  Bind(library, "sap_client_free", &functions.client_free);
  Bind(library, "sap_solve", &functions.solve);
  Bind(library, "sap_session_open", &functions.session_open);
  Bind(library, "sap_session_step", &functions.session_step);
  Bind(library, "sap_session_free", &functions.session_free);
  return functions;
}

}  // namespace

const CLibrary& CLibrary::For(const std::string& address) {
  if (address == "embedded:") {
    static const CLibrary in_process = Load("libsap_islands.so.0");
    return in_process;
  }
  static const CLibrary with_servers = Load("libsap_islands_client.so.0");
  return with_servers;
}

}  // namespace sap_islands::dart
