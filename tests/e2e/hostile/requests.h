// Requests of the service as bytes, and the names of its methods.
#pragma once

#include <string>
#include <vector>

#include "client/cpp/problem.h"
#include "client/cpp/solve_options.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::test::hostile {

inline constexpr char kSolve[] = "/sap.v1.SolverService/Solve";
inline constexpr char kSolveBatch[] = "/sap.v1.SolverService/SolveBatch";
inline constexpr char kStreamBatch[] = "/sap.v1.SolverService/StreamBatch";
inline constexpr char kDifferentiate[] = "/sap.v1.SolverService/Differentiate";
inline constexpr char kDifferentiateBatch[] = "/sap.v1.SolverService/DifferentiateBatch";
inline constexpr char kSolveSession[] = "/sap.v1.SolverService/SolveSession";
inline constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
inline constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";

client::Problem SmallProblem();

// Free bodies that nothing touches: so many bytes, and little to solve.
client::Problem LargeProblem(size_t bytes);

// A solve of thousands of iterations, whose time no count of bodies foretells; minutes for a
// SphereBlock of kEndlessBlock.
v1::SolveOptions ManyIterations();
inline constexpr int kEndlessBlock = 16;

std::string SolveRequest(const client::Problem& problem, const v1::SolveOptions& options = {});
std::string EndlessRequest();
std::string BatchRequest(const client::Problem& problem, int count,
                         const v1::SolveOptions& options = {});
std::string DifferentiateRequest(const client::Problem& problem, int cotangents);
std::string OpenRequest();

// Elements of a field of this number, each with this content, until there are so many bytes; as the
// fields of `within`, one in the other, if there are such numbers.
std::string RepeatedField(int number, const std::string& content, size_t bytes,
                          const std::vector<int>& within = {});
std::string StepRequest(uint64_t step_id, const client::Problem& problem,
                        const v1::SolveOptions& options = {});

}  // namespace sap::test::hostile
