#include <algorithm>
#include <limits>

#include "solver/problem/problem_reader.h"

namespace sap {

namespace {

void AppendOr(std::span<const double> values, int64_t n, double otherwise,
              std::vector<double>* to) {
  if (values.empty()) {
    to->insert(to->end(), n, otherwise);
  } else {
    to->insert(to->end(), values.begin(), values.end());
  }
}

// Appends the `n` values of a message to those of the first `before`: zeros where only others have
// any, nothing where none have.
void AppendGuess(std::span<const double> values, int64_t before, int64_t n,
                 std::vector<double>* to) {
  if (values.empty() && to->empty()) return;
  to->resize(before, 0.0);
  AppendOr(values, n, 0.0, to);
}

bool IsHuntCrossleyLaw(int32_t law) {
  return law == static_cast<int32_t>(ContactLaw::kHuntCrossleyLagged) ||
         law == static_cast<int32_t>(ContactLaw::kHuntCrossleySimilar);
}

ConstraintKind KindOf(const GeneralFriction& g, double mu) {
  if (g.angular[0] > 0 || g.angular[1] > 0) return ConstraintKind::kRollingCone;
  if (g.angular[2] > 0) return ConstraintKind::kSpinCone;
  return g.mu_2 != mu || g.adhesion > 0 ? ConstraintKind::kCone : ConstraintKind::kFriction;
}

}  // namespace

bool LawMessage::IsHuntCrossley(int64_t i) const {
  return i < static_cast<int64_t>(law.law.size()) && IsHuntCrossleyLaw(law.law[i]);
}

bool LawMessage::HasHuntCrossley() const {
  return std::any_of(law.law.begin(), law.law.end(), IsHuntCrossleyLaw);
}

bool LawMessage::IsAngular(int64_t i) const {
  return ValueOr(law.torsional_friction, i, 0) > 0 || ValueOr(law.rolling_friction, 2 * i, 0) > 0 ||
         ValueOr(law.rolling_friction, 2 * i + 1, 0) > 0;
}

LawMessage ContactProblemReader::MessageOf(std::string_view group,
                                           const ContactProblemView::Law& law,
                                           const Needed& why) const {
  return {group, law, why, p_.num_contacts(), p_.num_angular()};
}

void ContactProblemReader::CheckCompliance(const LawMessage& m) {
  const ContactProblemView::Law& law = m.law;
  const int64_t n = m.why.count;
  if (law.target_velocity.empty()) {
    check_.Array(m.Field("signed_distance"), law.signed_distance, n, Range::kFinite, m.why);
  }
  CheckStiffness(m);
  check_.Array(m.Field("relaxation_time"), law.relaxation_time, n, Range::kNonNegative, m.why);
  check_.Array(m.Field("friction"), law.friction, n, Range::kNonNegative, m.why);
  check_.Optional(m.Field("regularization_t"), law.regularization_t, n, Range::kPositive, m.why);
  check_.Optional(m.Field("regularization_n"), law.regularization_n, n, Range::kPositive, m.why);
  check_.Optional(m.Field("delassus_estimate"), law.delassus_estimate, n, Range::kPositive, m.why);
  check_.Optional(m.Field("surface_velocity"), law.surface_velocity, 3 * n, Range::kFinite, m.why);
}

void ContactProblemReader::CheckStiffness(const LawMessage& m) {
  const std::span<const double> k = m.law.stiffness;
  const FieldName field = m.Field("stiffness");
  if (!m.HasHuntCrossley()) {
    if (!m.law.regularization_n.empty()) return;
    return check_.Array(field, k, m.why.count, Range::kPositive, m.why);
  }
  check_.Length(field, k.size(), m.why.count, m.why);
  if (!check_.ok()) return;
  for (int64_t i = 0; i < m.why.count; ++i) {
    check_.ValueAt(field, i, k[i], m.IsHuntCrossley(i) ? Range::kNonNegative : Range::kPositive);
  }
}

void ContactProblemReader::CheckFriction(const LawMessage& m) {
  CheckCoefficients(m, "friction_2", m.law.friction_2, 1, m.law.friction);
  CheckCoefficients(m, "torsional_friction", m.law.torsional_friction, 1, {});
  CheckCoefficients(m, "rolling_friction", m.law.rolling_friction, 2, {});
}

// Checks coefficients other than `friction`. A law of Hunt & Crossley is isotropic: there they must
// be those of `isotropic`, one per contact, or 0 where this is empty.
void ContactProblemReader::CheckCoefficients(const LawMessage& m, std::string_view array,
                                             std::span<const double> values, int per_contact,
                                             std::span<const double> isotropic) {
  const FieldName field = m.Field(array);
  check_.Optional(field, values, per_contact * m.why.count, Range::kNonNegative, m.why);
  if (!check_.ok()) return;
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    const int64_t contact = i / per_contact;
    const double friction = m.law.friction[contact];
    if (friction == 0 && values[i] != 0) {
      return check_.Refuse(field, i,
                           "is " + ToText(values[i]) + "; it must be 0 where " +
                               m.Field("friction").Text() + " is 0");
    }
    const double needed = ValueOr(isotropic, contact, 0);
    if (m.IsHuntCrossley(contact) && values[i] != needed) {
      return check_.Refuse(field, i,
                           "is " + ToText(values[i]) + "; it must be " + ToText(needed) +
                               " for a law of Hunt & Crossley");
    }
  }
}

void ContactProblemReader::AppendAngular(const LawMessage& m) {
  if (!check_.ok()) return;
  if (m.law.torsional_friction.empty() && m.law.rolling_friction.empty()) return;
  for (int64_t i = 0; i < m.why.count; ++i) {
    if (!m.IsAngular(i)) continue;
    const int64_t* start = p_.jacobian_start_.data() + m.first_contact + i;
    p_.angular_start_.push_back(p_.angular_start_.back() + start[1] - start[0]);
  }
}

void ContactProblemReader::CheckTargets(const LawMessage& m) {
  const ContactProblemView::Law& law = m.law;
  const int64_t n = m.why.count;
  const int64_t num_angular = p_.num_angular() - m.first_angular;
  check_.Optional(m.Field("target_velocity"), law.target_velocity, 3 * n, Range::kFinite, m.why);
  check_.Optional(m.Field("target_angular_velocity"), law.target_angular_velocity, 3 * num_angular,
                  Range::kFinite, {num_angular, kAngularContacts});
  check_.Optional(m.Field("adhesion"), law.adhesion, n, Range::kNonNegative, m.why);
  if (!law.law.empty()) CheckLaws(m);
  check_.Optional(m.Field("guess_impulse"), law.guess_impulse, 3 * n, Range::kFinite, m.why);
  check_.Optional(m.Field("guess_angular_impulse"), law.guess_angular_impulse, 3 * num_angular,
                  Range::kFinite, {num_angular, kAngularContacts});
}

void ContactProblemReader::CheckLaws(const LawMessage& m) {
  const ContactProblemView::Law& law = m.law;
  check_.Length(m.Field("law"), law.law.size(), m.why.count, m.why);
  if (!check_.ok()) return;
  for (int64_t i = 0; i < m.why.count; ++i) {
    if (law.law[i] < 0 || law.law[i] > static_cast<int32_t>(ContactLaw::kHuntCrossleySimilar)) {
      return check_.Refuse(
          m.Field("law"), i,
          "is " + std::to_string(law.law[i]) + "; this version knows 0, 1, 2 and 3");
    }
  }
  if (m.HasHuntCrossley()) CheckHuntCrossley(m);
}

void ContactProblemReader::CheckHuntCrossley(const LawMessage& m) {
  const ContactProblemView::Law& law = m.law;
  for (int64_t i = 0; i < m.why.count; ++i) {
    if (!m.IsHuntCrossley(i) || ValueOr(law.adhesion, i, 0) == 0) continue;
    return check_.Refuse(
        m.Field("adhesion"), i,
        "is " + ToText(law.adhesion[i]) + "; it must be 0 for a law of Hunt & Crossley");
  }
  const auto check = [&](std::string_view array, std::span<const double> values, Range range) {
    check_.Length(m.Field(array), values.size(), m.why.count, m.why);
    if (!check_.ok()) return;
    for (int64_t i = 0; i < m.why.count; ++i) {
      if (m.IsHuntCrossley(i)) check_.ValueAt(m.Field(array), i, values[i], range);
    }
  };
  const ContactProblemView::HuntCrossley& h = law.hunt_crossley;
  check("hunt_crossley.elastic_force", h.elastic_force, Range::kFinite);
  check("hunt_crossley.dissipation", h.dissipation, Range::kNonNegative);
  check("hunt_crossley.lagged_normal_impulse", h.lagged_normal_impulse, Range::kNonNegative);
}

// Velocities in the axes of the message.
void ContactProblemReader::AppendLaw(const LawMessage& m) {
  const ContactProblemView::Law& law = m.law;
  const int64_t n = m.why.count;
  if (law.target_velocity.empty()) {
    p_.v_hat_.resize(p_.v_hat_.size() + 3 * n, -0.0);  // -0 - b is -b also for b = 0
    double* v_hat = p_.v_hat_.data() + 3 * static_cast<int64_t>(m.first_contact);
    for (int64_t i = 0; i < n; ++i) {
      v_hat[3 * i + 2] = -law.signed_distance[i] / (p_.time_step_ + law.relaxation_time[i]);
    }
  } else {
    AppendOr(law.target_velocity, 3 * n, 0.0, &p_.v_hat_);
  }
  const bool has_R_n = !law.regularization_n.empty();
  AppendOr(has_R_n ? std::span<const double>() : law.stiffness, n,
           std::numeric_limits<double>::infinity(), &p_.stiffness_);
  AppendOr(law.relaxation_time, n, 0.0, &p_.tau_d_);
  AppendOr(law.friction, n, 0.0, &p_.mu_);
  AppendOr(law.regularization_t, n, 0.0, &p_.given_R_t_);
  AppendOr(law.regularization_n, n, 0.0, &p_.given_R_n_);
  AppendOr(law.delassus_estimate, n, 0.0, &p_.given_w_);
  AppendOr(law.surface_velocity, 3 * n, 0.0, &p_.surface_velocity_);
  const int64_t num_angular = p_.num_angular() - m.first_angular;
  AppendOr(law.target_angular_velocity, 3 * num_angular, 0.0, &p_.angular_v_hat_);
  AppendGuess(law.guess_impulse, 3 * int64_t{m.first_contact}, 3 * n, &p_.guess_impulse_);
  AppendGuess(law.guess_angular_impulse, 3 * int64_t{m.first_angular}, 3 * num_angular,
              &p_.guess_angular_impulse_);
  p_.contact_kind_.insert(p_.contact_kind_.end(), n, ConstraintKind::kFriction);
  p_.contact_extra_.insert(p_.contact_extra_.end(), n, -1);
  if (!law.friction_2.empty() || !law.torsional_friction.empty() || !law.rolling_friction.empty() ||
      !law.adhesion.empty() || !law.law.empty()) {
    AppendKinds(m);
  }
}

void ContactProblemReader::AppendKinds(const LawMessage& m) {
  const ContactProblemView::Law& law = m.law;
  int angular = m.first_angular;
  for (int64_t i = 0; i < m.why.count; ++i) {
    if (m.IsHuntCrossley(i)) {
      AppendHuntCrossley(m, i);
      continue;
    }
    const double mu = law.friction[i];
    GeneralFriction general{.mu_2 = ValueOr(law.friction_2, i, mu),
                            .angular = {ValueOr(law.rolling_friction, 2 * i, 0),
                                        ValueOr(law.rolling_friction, 2 * i + 1, 0),
                                        ValueOr(law.torsional_friction, i, 0)},
                            .adhesion = ValueOr(law.adhesion, i, 0)};
    const ConstraintKind kind = KindOf(general, mu);
    if (kind == ConstraintKind::kFriction) continue;
    if (HasAngularRows(kind)) general.angular_contact = angular++;
    p_.contact_kind_[m.first_contact + i] = kind;
    p_.contact_extra_[m.first_contact + i] = static_cast<int>(p_.general_friction_.size());
    p_.general_friction_.push_back(general);
  }
}

void ContactProblemReader::AppendHuntCrossley(const LawMessage& m, int64_t i) {
  const ContactProblemView::Law& law = m.law;
  const ContactProblemView::HuntCrossley& h = law.hunt_crossley;
  const int64_t contact = m.first_contact + i;
  const bool lagged = law.law[i] == static_cast<int32_t>(ContactLaw::kHuntCrossleyLagged);
  p_.contact_kind_[contact] =
      lagged ? ConstraintKind::kHuntCrossleyLagged : ConstraintKind::kHuntCrossleySimilar;
  p_.contact_extra_[contact] = static_cast<int>(p_.hunt_crossley_.size());
  p_.hunt_crossley_.push_back({h.elastic_force[i], h.dissipation[i], h.lagged_normal_impulse[i]});
  p_.stiffness_[contact] = law.stiffness[i];
  std::fill_n(p_.v_hat_.begin() + 3 * contact, 3, 0.0);  // not read
}

}  // namespace sap
