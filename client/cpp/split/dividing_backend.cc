#include "client/cpp/split/dividing_backend.h"

#include "client/cpp/split/divided_session.h"

namespace sap::client {

void DividingBackend::SolveDivided(const ContactProblemView& problem, const SolveOptions& options,
                                   int count, Timeout deadline, Where where,
                                   Done<SolveOutcome> done) {
  if (!shared_->solver.Divides(count)) {
    return Solve(problem, options, deadline, where, nullptr, std::move(done));
  }
  shared_->solver.Solve(&servers(), problem, options, count, deadline, where, nullptr,
                        std::move(done));
}

tl::expected<std::unique_ptr<StepStream>, Error> DividingBackend::OpenSession(
    const SolveOptions& options, const SessionOptions& session_options, Timeout deadline) {
  auto steps = servers().OpenSession(options, session_options, deadline);
  if (!steps || session_options.background || !shared_->solver.Divides(1)) return steps;
  return std::make_unique<DividedSession>(std::move(*steps),
                                          std::shared_ptr<SplitSolver>(shared_, &shared_->solver),
                                          &servers(), options, deadline);
}

}  // namespace sap::client
