// print_pile NUM_BLOCKS: the solution of SolvePile on standard output, in the bytes of its doubles.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/solver/cholesky/solve_pile.h"

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const int num_blocks = static_cast<int>(std::strtol(argv[1], nullptr, 10));
  std::vector<double> x(6 * static_cast<size_t>(num_blocks));
  SolvePile(num_blocks, sap::Ordering::kAuto, x.data());
  return std::fwrite(x.data(), sizeof(double), x.size(), stdout) == x.size() ? 0 : 1;
}
