#include "server/service/derivatives_size.h"

#include "proto/codec/problem_decoder.h"
#include "proto/codec/problem_messages.h"
#include "proto/codec/wanted_inputs.h"
#include "solver/engine/derivatives_request.h"

namespace sap {
namespace {

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
        contacts(CountContacts(problem.contacts()) + problem.body_contacts().body_a_size()),
        rows(problem.rows().entries_size()) {}

  // Arrays of a solution: velocities; impulses, velocities, angular impulses and w of contacts.
  int64_t SolutionBytes() const {
    return kMessage_bytes + kDouble_bytes * (velocities + 10 * contacts + 2 * rows);
  }

  int64_t velocities;
  int64_t trees;
  int64_t contacts;
  int64_t rows;
};

}  // namespace

tl::expected<DerivativesSize, ServiceError> CheckSize(const v1::DifferentiateRequest& request,
                                                      const ServerConfig& config) {
  const auto gradients = static_cast<size_t>(request.cotangents_size());
  const auto tangents = static_cast<size_t>(request.tangents_size());
  if (const auto checked = CheckNumber(gradients, tangents, config); !checked) {
    return tl::unexpected(checked.error());
  }
  const Counts counts(request.problem());
  const ContactProblemView view = DecodeDirection(request.problem());
  const auto wanted =
      InputSelection::Make(NamesIn(request.wanted()), view, GivenIn(request.problem()));
  if (!wanted) return RefuseField(wanted.error());
  const int64_t gradient_bytes =
      kMessage_bytes + MostBytes(*wanted) +
      (wanted->applied_impulse() ? kDouble_bytes * counts.velocities : 0) +
      (wanted->delassus_estimate() ? kDouble_bytes * counts.contacts : 0);
  const DerivativesSize size{
      .answer_bytes = static_cast<int64_t>(gradients) * gradient_bytes +
                      static_cast<int64_t>(tangents + 1) * counts.SolutionBytes() +
                      counts.trees * kIsland_bytes,
      .working_bytes = BytesOfDerivatives(gradients, tangents, view)};
  if (const auto answer = CheckAnswerBytes(size.answer_bytes, config); !answer) {
    return tl::unexpected(answer.error());
  }
  if (const auto memory = CheckMemory(gradients, tangents, view, config); !memory) {
    return tl::unexpected(memory.error());
  }
  return size;
}

ServiceStatus CheckAnswerBytes(int64_t bytes, const ServerConfig& config) {
  if (bytes <= config.max_message_bytes) return {};
  return tl::unexpected(ServiceError{ServiceCode::kResourceExhausted,
                                     "the answer takes up to " + Mebibytes(bytes) +
                                         "; it may take " + Mebibytes(config.max_message_bytes) +
                                         ": ask for fewer derivatives, or name the wanted inputs",
                                     "", "ANSWER_BYTES"});
}

}  // namespace sap
