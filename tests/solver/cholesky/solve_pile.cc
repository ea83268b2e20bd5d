#include "tests/solver/cholesky/solve_pile.h"

#include <algorithm>
#include <span>

#include "solver/cholesky/block_cholesky.h"
#include "tests/solver/cholesky/block_systems.h"

extern "C" void SolvePile(int num_blocks, sap::Ordering ordering, double* x) {
  const sap::test::PatternData data = sap::test::Pile(num_blocks, 5.5, 1);
  const sap::test::BlockValues values = sap::test::RandomValues(data, 2);
  const sap::EliminationPlan plan = sap::EliminationPlan::Make(data.pattern(), ordering);
  sap::BlockCholesky<double> cholesky;
  cholesky.Factor(plan, values.diagonal, values.off_diagonal, sap::StopToken(), nullptr);
  const std::span<double> solution(x, plan.num_rows());
  std::ranges::fill(solution, 1.0);
  cholesky.Solve(plan, solution, solution, sap::StopToken(), nullptr);
}
