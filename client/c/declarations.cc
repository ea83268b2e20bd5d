#include "client/c/declarations.h"

const char* sap_declarations() {
  return
#include "sap_declarations.inc"  // made by CMake
      ;
}
