#include "solver/problem/input_arrays.h"

#include "solver/problem/problem_reader.h"

namespace sap {

namespace {

int64_t CountAngular(const ContactProblemView::Law& law, int64_t contacts) {
  const LawMessage message{{}, law, {contacts, {}}, 0, 0};
  int64_t count = 0;
  for (int64_t i = 0; i < contacts; ++i) count += message.IsAngular(i);
  return count;
}

// Sets the sizes of one group with `entries` entries, `angular` of them with angular Jacobians.
template <typename Sizes, typename Arrays>
void SetSizes(int64_t entries, int64_t angular, const Arrays& arrays, Sizes* sizes) {
  Sizes::ForEach(
      [=](const auto& field, int64_t& size, const auto& array) {
        if (!field.input) return;
        size = static_cast<int64_t>(array.size());
        if (field.per != Per::kEntry && field.per != Per::kAngularContact) return;
        if (array.empty() && field.absent != Absent::kNumber) return;
        size = field.columns * (field.per == Per::kEntry ? entries : angular);
      },
      *sizes, arrays);
}

void SetSizesOfLaw(const ContactProblemView::Law& law, int64_t contacts, InputSizes::Law* sizes) {
  SetSizes(contacts, CountAngular(law, contacts), law, sizes);
  SetSizes(contacts, 0, law.hunt_crossley, &sizes->hunt_crossley);
}

}  // namespace

InputSizes SizesOfInputs(const ContactProblemView& problem) {
  const auto count = [](const auto& array) { return static_cast<int64_t>(array.size()); };
  const int64_t contacts = CountContacts(problem.contacts);
  const int64_t body_contacts = count(problem.body_contacts.body_a);
  InputSizes sizes;
  SetSizes(count(problem.trees.dofs), 0, problem.trees, &sizes.trees);
  SetSizes(count(problem.bodies.mass), 0, problem.bodies, &sizes.bodies);
  SetSizes(contacts, 0, problem.contacts, &sizes.contacts);
  SetSizesOfLaw(problem.contacts.law, contacts, &sizes.contacts.law);
  SetSizes(body_contacts, 0, problem.body_contacts, &sizes.body_contacts);
  SetSizesOfLaw(problem.body_contacts.law, body_contacts, &sizes.body_contacts.law);
  SetSizes(count(problem.rows.entries), 0, problem.rows, &sizes.rows);
  // Absent, it stands for 0 unless a target takes its place.
  if (!problem.rows.target_velocity.empty() && problem.rows.position_error.empty()) {
    sizes.rows.position_error = 0;
  }
  return sizes;
}

}  // namespace sap
