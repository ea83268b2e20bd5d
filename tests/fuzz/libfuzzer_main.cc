// One target for libFuzzer: SAP_FUZZ_TARGET names its function.
#include "tests/fuzz/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sap::test::SAP_FUZZ_TARGET({data, size});
  return 0;
}
