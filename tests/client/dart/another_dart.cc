// A library that has a DART of its own within it, as the module of PyPI's dartpy: the function that
// the preloaded library replaces, of a class that is none of the DART here.
#include <cstdio>

namespace dart::constraint {

class ConstrainedGroup {};

class BoxedLcpConstraintSolver {
 public:
  virtual ~BoxedLcpConstraintSolver() = default;
  virtual void solveConstrainedGroup(ConstrainedGroup& group);
};

void BoxedLcpConstraintSolver::solveConstrainedGroup(ConstrainedGroup&) {
  std::puts("solved by another DART");
}

}  // namespace dart::constraint

extern "C" void step_another_dart() {
  dart::constraint::BoxedLcpConstraintSolver solver;
  dart::constraint::ConstrainedGroup group;
  dart::constraint::BoxedLcpConstraintSolver* volatile base = &solver;
  base->solveConstrainedGroup(group);
  std::fflush(stdout);
}
