// Batches of problems of different sizes, and their expected outcomes.
#pragma once

#include <vector>

#include "client/cpp/transport/message_conversion.h"
#include "tests/support/blocking_handler.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"

namespace sap::test {

inline ServerConfig BatchConfig(int threads = 2) {
  ServerConfig config;
  config.listen = "127.0.0.1:0";
  config.threads = threads;
  config.max_batch_problems = 40;
  return config;
}

inline v1::ContactProblem Block(int count) {
  v1::ContactProblem problem;
  client::ToMessage(SphereBlock(count), &problem);
  return problem;
}

// 21 problems; number 10 has a fault.
template <typename Request>
Request MixedBatch() {
  Request request;
  for (int i = 0; i < 21; ++i) {
    v1::ContactProblem* problem = request.add_problems();
    *problem = i % 7 == 3 && i != 10 ? Block(4) : MixedProblem();
    problem->set_time_step(0.01 + 0.001 * i);
  }
  request.mutable_problems(10)->mutable_body_contacts()->clear_body_a();
  request.mutable_options()->set_relative_tolerance(1e-8);
  return request;
}

// The outcomes of unary calls: bits of the solution, or what is wrong.
inline std::vector<AnswerBits> OneByOne(BlockingHandler* handler,
                                        const v1::SolveBatchRequest& batch) {
  std::vector<AnswerBits> outcomes;
  for (const v1::ContactProblem& problem : batch.problems()) {
    v1::SolveRequest request;
    *request.mutable_problem() = problem;
    *request.mutable_options() = batch.options();
    v1::SolveResponse response;
    const ServiceStatus status = handler->Solve(request, CallContext(), &response);
    outcomes.push_back(status ? Bits(response.solution()) : AnswerBits{status.error().message});
  }
  return outcomes;
}

inline AnswerBits BitsOf(const v1::Outcome& outcome) {
  return outcome.has_solution() ? Bits(outcome.solution())
                                : AnswerBits{outcome.failure().message()};
}

inline std::vector<AnswerBits> AllBits(const v1::SolveBatchResponse& response) {
  std::vector<AnswerBits> outcomes;
  for (const v1::Outcome& outcome : response.outcomes()) outcomes.push_back(BitsOf(outcome));
  return outcomes;
}

}  // namespace sap::test
