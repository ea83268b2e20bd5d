// The factorization behind a C interface, for an executable and for a library opened by dlopen.
#pragma once

#include "solver/cholesky/elimination_plan.h"

// x [6 num_blocks] = H^-1 (1, ..., 1) for a random pile of free bodies, always the same.
extern "C" void SolvePile(int num_blocks, sap::Ordering ordering, double* x);
