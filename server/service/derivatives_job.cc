#include "server/service/derivatives_job.h"

#include <span>
#include <string>
#include <utility>

#include "server/service/problem_decoder.h"

namespace sap {
namespace {

using google::protobuf::RepeatedField;

constexpr int64_t kDouble_bytes = sizeof(double);
// Above what tags, lengths and numbers of a gradient or tangent take in addition to its arrays.
constexpr int64_t kMessage_bytes = 256;
// Above what an island takes in the reports and, per tree, in island_of_tree.
constexpr int64_t kIsland_bytes = 160;

// Counts of a problem, which need not be valid.
struct Counts {
  explicit Counts(const v1::ContactProblem& problem)
      : velocities(problem.trees().free_motion_velocity_size() +
                   problem.bodies().free_motion_velocity_size()),
        trees(problem.trees().dofs_size() + problem.bodies().mass_size()),
        contacts(problem.contacts().tree_a_size() + problem.body_contacts().body_a_size()),
        rows(problem.rows().entries_size()) {}

  // Size of the arrays of a solution: impulses, velocities, angular impulses and w of contacts.
  int64_t SolutionBytes() const {
    return kMessage_bytes + kDouble_bytes * (velocities + 10 * contacts + 2 * rows);
  }

  int64_t velocities;
  int64_t trees;
  int64_t contacts;
  int64_t rows;
};

// Size of a derivative with respect to everything in a ContactProblem (ProblemDifferential), with
// the sums of its islands, of which there are no more than trees. Bodies and their contacts have
// matrices and Jacobians there.
int64_t DifferentialBytes(const v1::ContactProblem& problem, const Counts& counts) {
  constexpr int64_t kBodyMatrix = 36, kBodyJacobian = 36;
  constexpr int64_t kPerTree = 6, kPerContact = 24,
                    kPerRow = sizeof(RowParameters) / sizeof(double);
  const int64_t bodies = problem.bodies().mass_size();
  const int64_t body_contacts = problem.body_contacts().body_a_size();
  const int64_t matrices = problem.trees().dynamics_matrix_size() + kBodyMatrix * bodies;
  const int64_t jacobians = problem.contacts().jacobian_size() +
                            problem.contacts().angular_jacobian_size() +
                            2 * kBodyJacobian * body_contacts;
  return kDouble_bytes * (matrices + jacobians + counts.velocities + kPerTree * counts.trees +
                          kPerContact * counts.contacts + kPerRow * counts.rows +
                          problem.rows().coefficient_size());
}

std::string Mebibytes(int64_t bytes) {
  constexpr int64_t kMebibyte = int64_t{1} << 20;
  return std::to_string((bytes + kMebibyte - 1) / kMebibyte) + " MiB";
}

tl::unexpected<ServiceError> RefuseSize(const std::string& message, const char* reason) {
  return tl::unexpected(ServiceError{ServiceCode::kResourceExhausted, message, "", reason});
}

std::span<const double> Values(const RepeatedField<double>& field) {
  return {field.data(), static_cast<size_t>(field.size())};
}

Cotangent DecodeCotangent(const v1::Cotangent& message) {
  return {.velocity = Values(message.velocity()),
          .impulse = Values(message.impulse()),
          .contact_velocity = Values(message.contact_velocity()),
          .row_impulse = Values(message.row_impulse()),
          .row_velocity = Values(message.row_velocity()),
          .angular_impulse = Values(message.angular_impulse()),
          .cost = message.cost()};
}

void Assign(const std::vector<double>& values, RepeatedField<double>* field) {
  field->Assign(values.begin(), values.end());
}

void EncodeTangent(const Tangent& tangent, v1::Tangent* message) {
  Assign(tangent.velocity, message->mutable_velocity());
  Assign(tangent.impulse, message->mutable_impulse());
  Assign(tangent.contact_velocity, message->mutable_contact_velocity());
  Assign(tangent.row_impulse, message->mutable_row_impulse());
  Assign(tangent.row_velocity, message->mutable_row_velocity());
  Assign(tangent.angular_impulse, message->mutable_angular_impulse());
  message->set_cost(tangent.cost);
}

v1::AdjointStatus EncodeAdjointStatus(AdjointStatus status) {
  switch (status) {
    case AdjointStatus::kDifferentiated:
      return v1::ADJOINT_STATUS_DIFFERENTIATED;
    case AdjointStatus::kInaccurate:
      return v1::ADJOINT_STATUS_INACCURATE;
    case AdjointStatus::kDeadline:
      return v1::ADJOINT_STATUS_DEADLINE;
    case AdjointStatus::kNumericalFailure:
      return v1::ADJOINT_STATUS_NUMERICAL_FAILURE;
  }
  return v1::ADJOINT_STATUS_UNSPECIFIED;
}

}  // namespace

tl::expected<DerivativesSize, ServiceError> CheckSize(const v1::DifferentiateRequest& request,
                                                      const ServerConfig& config) {
  const int64_t gradients = request.cotangents_size();
  const int64_t tangents = request.tangents_size();
  if (gradients + tangents > config.max_derivatives) {
    return RefuseField(gradients > 0 ? "cotangents" : "tangents",
                       "and tangents are " + std::to_string(gradients + tangents) + "; at most " +
                           std::to_string(config.max_derivatives) + " are accepted together");
  }
  const Counts counts(request.problem());
  const auto wanted = WantedInputs::Decode(request.wanted(), request.problem());
  if (!wanted) return tl::unexpected(wanted.error());
  const int64_t gradient_bytes =
      kMessage_bytes + wanted->most_bytes() +
      (wanted->applied_impulse() ? kDouble_bytes * counts.velocities : 0) +
      (wanted->delassus_estimate() ? kDouble_bytes * counts.contacts : 0);
  DerivativesSize size;
  size.answer_bytes = gradients * gradient_bytes + (tangents + 1) * counts.SolutionBytes() +
                      counts.trees * kIsland_bytes;
  size.working_bytes = (gradients + tangents) * (DifferentialBytes(request.problem(), counts) +
                                                 kDouble_bytes * counts.velocities) +
                       tangents * counts.SolutionBytes();
  if (const auto answer = CheckAnswerBytes(size.answer_bytes, config); !answer) {
    return tl::unexpected(answer.error());
  }
  const int64_t allowed = config.max_solve_memory_mib << 20;
  if (size.working_bytes > allowed) {
    return RefuseSize("these derivatives take up to " + Mebibytes(size.working_bytes) +
                          "; a solve may take " + Mebibytes(allowed),
                      "SOLVE_MEMORY");
  }
  return size;
}

ServiceStatus CheckAnswerBytes(int64_t bytes, const ServerConfig& config) {
  if (bytes <= config.max_message_bytes) return {};
  return RefuseSize("the answer takes up to " + Mebibytes(bytes) + "; it may take " +
                        Mebibytes(config.max_message_bytes) +
                        ": ask for fewer derivatives, or name the wanted inputs",
                    "ANSWER_BYTES");
}

double RelativeWork(const v1::DifferentiateRequest& request) {
  // The polishing step with its factorization; the solve and the chain of each derivative.
  constexpr double kFactorization = 0.4;
  constexpr double kPerDerivative = 0.1;
  return 1 + kFactorization +
         kPerDerivative * (request.cotangents_size() + request.tangents_size());
}

ServiceStatus DerivativesJob::Decode(const ServerConfig& config, const ContactProblemView& view,
                                     ContactProblem* problem) {
  const auto size = CheckSize(*request_, config);
  if (!size) return tl::unexpected(size.error());
  size_ = *size;
  view_ = view;
  wanted_ =
      *WantedInputs::Decode(request_->wanted(), request_->problem());  // CheckSize has seen it
  if (const auto held = CheckHeldDelassus(request_->hold_delassus(), *problem); !held) {
    return RefuseField(held.error());
  }
  return DecodeVelocity(problem).and_then([&] { return DecodeCotangents(*problem); }).and_then([&] {
    return DecodeTangents();
  });
}

ServiceStatus DerivativesJob::DecodeVelocity(ContactProblem* problem) const {
  const std::span<const double> velocity = Values(request_->velocity());
  if (const auto checked = CheckVelocity(velocity, *problem); !checked) {
    return RefuseField(checked.error());
  }
  if (!velocity.empty()) problem->SetGuess(velocity);
  return {};
}

ServiceStatus DerivativesJob::DecodeCotangents(const ContactProblem& problem) {
  for (int i = 0; i < request_->cotangents_size(); ++i) {
    cotangents_.push_back(DecodeCotangent(request_->cotangents(i)));
    if (const auto checked = CheckCotangent(cotangents_.back(), problem); !checked) {
      return RefuseField(checked.error(), "cotangents[" + std::to_string(i) + "].");
    }
  }
  return {};
}

ServiceStatus DerivativesJob::DecodeTangents() {
  for (int i = 0; i < request_->tangents_size(); ++i) {
    directions_.push_back(DecodeDirection(request_->tangents(i)));
    if (const auto checked = CheckDirection(view_, directions_.back()); !checked) {
      return RefuseField(checked.error(), "tangents[" + std::to_string(i) + "].");
    }
  }
  return {};
}

tl::expected<void, MemoryLimitExceeded> DerivativesJob::Differentiate(Solver* solver,
                                                                      const ContactProblem& problem,
                                                                      const SolverOptions& options,
                                                                      const StopToken& stop,
                                                                      ContactSolution* solution) {
  std::vector<ProblemDifferential> changes(directions_.size());
  for (size_t i = 0; i < directions_.size(); ++i) {
    FromInputs(view_, problem, directions_[i], &changes[i]);
  }
  return solver->Differentiate(problem, options, cotangents_, changes,
                               {.hold_delassus = request_->hold_delassus()}, stop, solution,
                               &derivatives_);
}

void DerivativesJob::Encode(const ContactProblem& problem) {
  InputDifferential inputs;
  for (size_t k = 0; k < derivatives_.gradients.size(); ++k) {
    GradientToInputs(view_, problem, k, &derivatives_, &inputs);
    const Gradient gradient = std::move(derivatives_.gradients[k]);  // freed once it is encoded
    v1::Gradient* message = response_->add_gradients();
    wanted_.Encode(inputs, message->mutable_gradient());
    if (wanted_.applied_impulse()) {
      Assign(gradient.applied_impulse, message->mutable_applied_impulse());
    }
    if (wanted_.delassus_estimate()) {
      Assign(gradient.problem.w, message->mutable_delassus_estimate());
    }
  }
  for (const Tangent& tangent : derivatives_.tangents) {
    EncodeTangent(tangent, response_->add_tangents());
  }
  Assign(derivatives_.kink_margin, response_->mutable_kink_margin());
  for (const AdjointStatus status : derivatives_.adjoint_status) {
    response_->add_adjoint_status(EncodeAdjointStatus(status));
  }
  derivatives_ = {};
}

}  // namespace sap
