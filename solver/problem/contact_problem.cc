#include "solver/problem/contact_problem.h"

#include <Eigen/Core>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/problem/rigid_bodies.h"

namespace sap {

namespace {

using Checked = tl::expected<void, ProblemError>;
using View = ContactProblemView;

// The wire name of an array, put together only when something is wrong with it.
struct Field {
  Field(const char* whole) : group(whole) {}
  Field(std::string_view group_name, std::string_view array) : group(group_name), name(array) {}
  std::string Text() const { return std::string(group) + std::string(name); }

  std::string_view group;
  std::string_view name;
};

// What a length follows from, as in "100 contacts (see contacts.tree_a)".
struct Needed {
  int64_t count;
  std::string_view noun;
  std::string Text() const { return std::to_string(count) + " " + std::string(noun); }
};

std::string ToText(double value) {
  if (std::isnan(value)) return "NaN";
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end);
}

tl::unexpected<ProblemError> Refuse(const Field& field, int64_t index, std::string reason) {
  return tl::unexpected(ProblemError{field.Text(), index, std::move(reason)});
}

tl::unexpected<ProblemError> RefuseValue(const Field& field, int64_t index, double value,
                                         std::string_view rule) {
  return Refuse(field, index, "is " + ToText(value) + "; it must be " + std::string(rule));
}

enum class Range { kFinite, kNonNegative, kPositive };

bool InRange(double value, Range range) {
  if (!std::isfinite(value)) return false;
  return range == Range::kFinite || (range == Range::kPositive ? value > 0 : value >= 0);
}

std::string_view RuleOf(Range range) {
  if (range == Range::kFinite) return "finite";
  return range == Range::kPositive ? "finite and > 0" : "finite and >= 0";
}

Checked CheckLength(const Field& field, size_t length, int64_t needed, const Needed& why) {
  if (static_cast<int64_t>(length) == needed) return {};
  return Refuse(field, -1,
                "has " + std::to_string(length) + " values; " + std::to_string(needed) +
                    " are needed for " + why.Text());
}

Checked CheckValues(const Field& field, std::span<const double> values, Range range) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!InRange(values[i], range)) return RefuseValue(field, i, values[i], RuleOf(range));
  }
  return {};
}

// An array of the given length whose values are all in range.
Checked CheckArray(const Field& field, std::span<const double> values, int64_t needed, Range range,
                   const Needed& why) {
  if (Checked length = CheckLength(field, values.size(), needed, why); !length) return length;
  return CheckValues(field, values, range);
}

Checked CheckOptional(const Field& field, std::span<const double> values, int64_t needed,
                      Range range, const Needed& why) {
  if (values.empty()) return {};
  return CheckArray(field, values, needed, range, why);
}

// Runs checks in order until one refuses.
template <typename... Checks>
Checked FirstRefusal(Checks&&... checks) {
  Checked result;
  ((result = checks(), result.has_value()) && ...);
  return result;
}

// Index of a partner: in [lowest, count).
Checked CheckIndex(const Field& field, std::span<const int32_t> values, int lowest, int count) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= lowest && values[i] < count) continue;
    return Refuse(field, i,
                  "is " + std::to_string(values[i]) + "; it must be in [" + std::to_string(lowest) +
                      ", " + std::to_string(count) + ")");
  }
  return {};
}

Checked CheckDistinct(const Field& field, std::span<const int32_t> a, std::span<const int32_t> b,
                      std::string_view other) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) continue;
    return Refuse(field, i,
                  "is " + std::to_string(b[i]) + "; it must differ from " + std::string(other));
  }
  return {};
}

}  // namespace

std::string ProblemError::Message() const {
  if (index < 0) return field + " " + reason;
  return field + "[" + std::to_string(index) + "] " + reason;
}

// Reads one view into one problem, field by field in the order of the schema.
class ContactProblemReader {
 public:
  ContactProblemReader(const View& view, const ProblemLimits& limits, ContactProblem* problem)
      : view_(view), limits_(limits), p_(*problem) {}

  Checked Read() {
    p_.Clear();
    Checked read = FirstRefusal([&] { return ReadScalars(); }, [&] { return ReadCounts(); },
                                [&] { return ReadTrees(); }, [&] { return ReadBodies(); },
                                [&] { return CheckNames(); }, [&] { return ReadContacts(); },
                                [&] { return ReadBodyContacts(); });
    if (!read) p_.Clear();
    return read;
  }

 private:
  Checked ReadScalars() {
    if (!InRange(view_.time_step, Range::kPositive)) {
      return RefuseValue("time_step", -1, view_.time_step, RuleOf(Range::kPositive));
    }
    const View::Regularization& r = view_.regularization;
    if (!InRange(r.beta, Range::kNonNegative)) {
      return RefuseValue("regularization.beta", -1, r.beta, RuleOf(Range::kNonNegative));
    }
    if (!InRange(r.sigma, Range::kPositive)) {
      return RefuseValue("regularization.sigma", -1, r.sigma, RuleOf(Range::kPositive));
    }
    p_.time_step_ = view_.time_step;
    p_.regularization_ = r;
    return {};
  }

  Checked ReadCounts() {
    const int64_t trees = static_cast<int64_t>(view_.trees.dofs.size() + view_.bodies.mass.size());
    if (trees > limits_.max_trees) {
      return Refuse(view_.bodies.mass.empty() ? "trees.dofs" : "bodies.mass", -1,
                    "makes " + std::to_string(trees) + " trees and bodies; the limit is " +
                        std::to_string(limits_.max_trees));
    }
    const int64_t contacts =
        static_cast<int64_t>(view_.contacts.tree_a.size() + view_.body_contacts.body_a.size());
    if (contacts > limits_.max_contacts) {
      return Refuse(view_.body_contacts.body_a.empty() ? "contacts.tree_a" : "body_contacts.body_a",
                    -1,
                    "makes " + std::to_string(contacts) + " contacts; the limit is " +
                        std::to_string(limits_.max_contacts));
    }
    num_trees_ = static_cast<int>(view_.trees.dofs.size());
    num_bodies_ = static_cast<int>(view_.bodies.mass.size());
    return {};
  }

  Checked ReadTrees() {
    const View::Trees& t = view_.trees;
    p_.dofs_.reserve(num_trees_ + num_bodies_);
    p_.velocity_start_.assign(1, 0);
    p_.matrix_start_.assign(1, 0);
    for (int i = 0; i < num_trees_; ++i) {
      if (t.dofs[i] < 1 || t.dofs[i] > static_cast<uint32_t>(limits_.max_tree_dofs)) {
        return Refuse("trees.dofs", i,
                      "is " + std::to_string(t.dofs[i]) + "; it must be in [1, " +
                          std::to_string(limits_.max_tree_dofs) + "]");
      }
      AppendTree(static_cast<int>(t.dofs[i]));
    }
    const int64_t n_v = p_.velocity_start_.back();
    const Needed why{num_trees_, "trees (see trees.dofs)"};
    Checked arrays = FirstRefusal(
        [&] {
          return CheckArray("trees.dynamics_matrix", t.dynamics_matrix, p_.matrix_start_.back(),
                            Range::kFinite, why);
        },
        [&] {
          return CheckArray("trees.free_motion_velocity", t.free_motion_velocity, n_v,
                            Range::kFinite, why);
        },
        [&] {
          return CheckOptional("trees.guess_velocity", t.guess_velocity, n_v, Range::kFinite, why);
        },
        [&] {
          return t.tree_id.empty()
                     ? Checked()
                     : CheckLength("trees.tree_id", t.tree_id.size(), num_trees_, why);
        });
    if (!arrays) return arrays;
    p_.dynamics_matrix_.assign(t.dynamics_matrix.begin(), t.dynamics_matrix.end());
    p_.dynamics_factor_.assign(p_.dynamics_matrix_.size(), 0.0);
    for (int i = 0; i < num_trees_; ++i) {
      if (Checked matrix = ReadDynamicsMatrix(i); !matrix) return matrix;
    }
    AppendVelocities(t.free_motion_velocity, t.guess_velocity);
    AppendNames(t.tree_id, num_trees_);
    return {};
  }

  // Symmetrizes block A_t and factors it.
  Checked ReadDynamicsMatrix(int tree) {
    const int n = p_.dofs_[tree];
    const int64_t start = p_.matrix_start_[tree];
    double* A = p_.dynamics_matrix_.data() + start;
    double largest = 0;
    for (int i = 0; i < n * n; ++i) largest = std::max(largest, std::abs(A[i]));
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < i; ++j) {
        if (std::abs(A[i * n + j] - A[j * n + i]) > 1e-12 * largest) {
          return Refuse("trees.dynamics_matrix", start + i * n + j,
                        "is " + ToText(A[i * n + j]) + " but its transpose is " +
                            ToText(A[j * n + i]) + "; the matrix of trees[" + std::to_string(tree) +
                            "] must be symmetric within 1e-12 of its largest entry");
        }
        A[i * n + j] = A[j * n + i] = 0.5 * A[i * n + j] + 0.5 * A[j * n + i];
      }
    }
    double* L = p_.dynamics_factor_.data() + start;
    CopyLower(A, n, L);
    if (FactorTree(L, n) != DenseStatus::kOk) {
      return Refuse(
          "trees.dynamics_matrix", start,
          "starts a matrix that is not positive definite (trees[" + std::to_string(tree) + "])");
    }
    return {};
  }

  Checked ReadBodies() {
    const View::RigidBodies& b = view_.bodies;
    const int64_t n = num_bodies_;
    const Needed why{n, "bodies (see bodies.mass)"};
    Checked arrays = FirstRefusal(
        [&] { return CheckValues("bodies.mass", b.mass, Range::kPositive); },
        [&] { return CheckArray("bodies.inertia", b.inertia, 6 * n, Range::kFinite, why); },
        [&] {
          return CheckArray("bodies.center_of_mass", b.center_of_mass, 3 * n, Range::kFinite, why);
        },
        [&] {
          return CheckArray("bodies.free_motion_velocity", b.free_motion_velocity, 6 * n,
                            Range::kFinite, why);
        },
        [&] {
          return CheckOptional("bodies.guess_velocity", b.guess_velocity, 6 * n, Range::kFinite,
                               why);
        },
        [&] {
          return b.body_id.empty() ? Checked()
                                   : CheckLength("bodies.body_id", b.body_id.size(), n, why);
        });
    if (!arrays) return arrays;
    p_.dynamics_matrix_.resize(p_.dynamics_matrix_.size() + 36 * n);
    p_.dynamics_factor_.resize(p_.dynamics_factor_.size() + 36 * n, 0.0);
    for (int i = 0; i < n; ++i) {
      AppendTree(6);
      const int64_t start = p_.matrix_start_[num_trees_ + i];
      double* A = p_.dynamics_matrix_.data() + start;
      double* L = p_.dynamics_factor_.data() + start;
      WriteBodyDynamicsMatrix(b.mass[i], b.inertia.data() + 6 * i, A);
      CopyLower(A, 6, L);
      if (!FactorDense(L, std::integral_constant<int, 6>())) {
        return Refuse(
            "bodies.inertia", 6 * static_cast<int64_t>(i),
            "starts an inertia that is not positive definite (bodies[" + std::to_string(i) + "])");
      }
    }
    AppendVelocities(b.free_motion_velocity, b.guess_velocity);
    AppendNames(b.body_id, num_bodies_);
    p_.has_guess_ = !view_.trees.guess_velocity.empty() || !b.guess_velocity.empty();
    return {};
  }

  Checked CheckNames() {
    std::vector<int64_t>& sorted = p_.sorted_ids_;
    sorted.clear();
    for (int64_t id : p_.tree_id_) {
      if (id >= 0) sorted.push_back(id);
    }
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice == sorted.end()) return {};
    int last = static_cast<int>(p_.tree_id_.size()) - 1;
    while (p_.tree_id_[last] != *twice) --last;
    const bool is_tree = last < num_trees_;
    return Refuse(is_tree ? "trees.tree_id" : "bodies.body_id", is_tree ? last : last - num_trees_,
                  "is " + std::to_string(*twice) + " a second time; names must be unique");
  }

  Checked ReadContacts() {
    const View::Contacts& c = view_.contacts;
    const int64_t n = static_cast<int64_t>(c.tree_a.size());
    const int trees = num_trees_ + num_bodies_;
    const Needed why{n, "contacts (see contacts.tree_a)"};
    p_.jacobian_start_.assign(1, 0);
    Checked partners = FirstRefusal(
        [&] { return CheckLength("contacts.tree_b", c.tree_b.size(), n, why); },
        [&] { return CheckIndex("contacts.tree_a", c.tree_a, 0, trees); },
        [&] { return CheckIndex("contacts.tree_b", c.tree_b, -1, trees); },
        [&] { return CheckDistinct("contacts.tree_b", c.tree_a, c.tree_b, "contacts.tree_a"); });
    if (!partners) return partners;
    for (int64_t i = 0; i < n; ++i) AppendContact(c.tree_a[i], c.tree_b[i]);
    Checked jacobian =
        CheckArray("contacts.jacobian", c.jacobian, p_.jacobian_start_.back(), Range::kFinite,
                   Needed{n, "contacts (see contacts.tree_a, contacts.tree_b)"});
    if (!jacobian) return jacobian;
    p_.jacobian_.assign(c.jacobian.begin(), c.jacobian.end());
    if (Checked law = ReadLaw("contacts.", c.law, n, why); !law) return law;
    AppendOr(c.law.surface_velocity, 3 * n, 0.0, &p_.surface_velocity_);
    return {};
  }

  Checked ReadBodyContacts() {
    const View::BodyContacts& c = view_.body_contacts;
    const int64_t n = static_cast<int64_t>(c.body_a.size());
    const Needed why{n, "body contacts (see body_contacts.body_a)"};
    Checked arrays = FirstRefusal(
        [&] { return CheckLength("body_contacts.body_b", c.body_b.size(), n, why); },
        [&] { return CheckIndex("body_contacts.body_a", c.body_a, 0, num_bodies_); },
        [&] { return CheckIndex("body_contacts.body_b", c.body_b, -1, num_bodies_); },
        [&] {
          return CheckDistinct("body_contacts.body_b", c.body_a, c.body_b, "body_contacts.body_a");
        },
        [&] { return CheckArray("body_contacts.point", c.point, 3 * n, Range::kFinite, why); },
        [&] { return CheckArray("body_contacts.normal", c.normal, 3 * n, Range::kFinite, why); });
    if (!arrays) return arrays;
    const int first = static_cast<int>(p_.tree_a_.size());
    for (int64_t i = 0; i < n; ++i) {
      AppendContact(num_trees_ + c.body_a[i], c.body_b[i] < 0 ? -1 : num_trees_ + c.body_b[i]);
    }
    p_.jacobian_.resize(p_.jacobian_start_.back());
    if (Checked law = ReadLaw("body_contacts.", c.law, n, why); !law) return law;
    p_.surface_velocity_.resize(p_.surface_velocity_.size() + 3 * n, 0.0);
    for (int64_t i = 0; i < n; ++i) {
      if (Checked contact = ReadBodyContact(i, first + static_cast<int>(i)); !contact) {
        return contact;
      }
    }
    return {};
  }

  // Builds frame and Jacobian of body contact i, contact number `contact` of the problem.
  Checked ReadBodyContact(int64_t i, int contact) {
    const View::BodyContacts& c = view_.body_contacts;
    const Eigen::Map<const Eigen::Vector3d> point(c.point.data() + 3 * i);
    const Eigen::Map<const Eigen::Vector3d> given_normal(c.normal.data() + 3 * i);
    // Eigen sums up in an order that depends on the address; this does not, and never overflows.
    const double length = std::hypot(given_normal.x(), given_normal.y(), given_normal.z());
    if (!(std::abs(length - 1) <= 1e-6)) {
      return Refuse("body_contacts.normal", 3 * i,
                    "starts a vector of length " + ToText(length) + "; it must be 1 within 1e-6");
    }
    const Eigen::Matrix3d R = ContactFrame(given_normal / length);
    double* J = p_.jacobian_.data() + p_.jacobian_start_[contact];
    const auto center = [&](int body) {
      return Eigen::Map<const Eigen::Vector3d>(view_.bodies.center_of_mass.data() + 3 * body);
    };
    WriteBodyJacobian(R, point - center(c.body_a[i]), 1.0, J);
    if (c.body_b[i] >= 0) WriteBodyJacobian(R, point - center(c.body_b[i]), -1.0, J + 18);
    if (!c.law.surface_velocity.empty()) {
      const Eigen::Map<const Eigen::Vector3d> b_W(c.law.surface_velocity.data() + 3 * i);
      Eigen::Map<Eigen::Vector3d>(p_.surface_velocity_.data() + 3 * contact) = R.transpose() * b_W;
    }
    return {};
  }

  Checked ReadLaw(std::string_view group, const View::Law& law, int64_t n, const Needed& why) {
    const bool reads_stiffness = law.regularization_n.empty();
    const auto array = [&](const char* name, std::span<const double> values, Range range) {
      return CheckArray(Field(group, name), values, n, range, why);
    };
    const auto optional = [&](const char* name, std::span<const double> values, Range range) {
      return CheckOptional(Field(group, name), values, n, range, why);
    };
    Checked checked = FirstRefusal(
        [&] { return array("signed_distance", law.signed_distance, Range::kFinite); },
        [&] {
          return reads_stiffness ? array("stiffness", law.stiffness, Range::kPositive) : Checked();
        },
        [&] { return array("relaxation_time", law.relaxation_time, Range::kNonNegative); },
        [&] { return array("friction", law.friction, Range::kNonNegative); },
        [&] { return optional("regularization_t", law.regularization_t, Range::kPositive); },
        [&] { return optional("regularization_n", law.regularization_n, Range::kPositive); },
        [&] { return optional("delassus_estimate", law.delassus_estimate, Range::kPositive); },
        [&] {
          return CheckOptional(Field(group, "surface_velocity"), law.surface_velocity, 3 * n,
                               Range::kFinite, why);
        });
    if (!checked) return checked;
    const double infinity = std::numeric_limits<double>::infinity();
    AppendOr(law.signed_distance, n, 0.0, &p_.phi0_);
    AppendOr(reads_stiffness ? law.stiffness : std::span<const double>(), n, infinity,
             &p_.stiffness_);
    AppendOr(law.relaxation_time, n, 0.0, &p_.tau_d_);
    AppendOr(law.friction, n, 0.0, &p_.mu_);
    AppendOr(law.regularization_t, n, 0.0, &p_.given_R_t_);
    AppendOr(law.regularization_n, n, 0.0, &p_.given_R_n_);
    AppendOr(law.delassus_estimate, n, 0.0, &p_.given_w_);
    return {};
  }

  void AppendTree(int dofs) {
    p_.dofs_.push_back(dofs);
    p_.velocity_start_.push_back(p_.velocity_start_.back() + dofs);
    p_.matrix_start_.push_back(p_.matrix_start_.back() + static_cast<int64_t>(dofs) * dofs);
  }

  void AppendContact(int tree_a, int tree_b) {
    p_.tree_a_.push_back(tree_a);
    p_.tree_b_.push_back(tree_b);
    const int dofs = p_.dofs_[tree_a] + (tree_b < 0 ? 0 : p_.dofs_[tree_b]);
    p_.jacobian_start_.push_back(p_.jacobian_start_.back() + 3 * static_cast<int64_t>(dofs));
  }

  void AppendVelocities(std::span<const double> v_star, std::span<const double> guess) {
    p_.v_star_.insert(p_.v_star_.end(), v_star.begin(), v_star.end());
    const std::span<const double> from = guess.empty() ? v_star : guess;
    p_.v_guess_.insert(p_.v_guess_.end(), from.begin(), from.end());
  }

  void AppendNames(std::span<const uint32_t> names, int count) {
    if (names.empty()) {
      p_.tree_id_.insert(p_.tree_id_.end(), count, -1);
    } else {
      p_.tree_id_.insert(p_.tree_id_.end(), names.begin(), names.end());
    }
  }

  static void AppendOr(std::span<const double> values, int64_t n, double otherwise,
                       std::vector<double>* to) {
    if (values.empty()) {
      to->insert(to->end(), n, otherwise);
    } else {
      to->insert(to->end(), values.begin(), values.end());
    }
  }

  static void CopyLower(const double* A, int n, double* L) {
    for (int i = 0; i < n; ++i) std::copy(A + i * n, A + i * n + i + 1, L + i * n);
  }

  const View& view_;
  const ProblemLimits& limits_;
  ContactProblem& p_;
  int num_trees_{0};
  int num_bodies_{0};
};

tl::expected<ContactProblem, ProblemError> ContactProblem::Make(const ContactProblemView& view,
                                                                const ProblemLimits& limits) {
  ContactProblem problem;
  if (Checked read = problem.Reset(view, limits); !read) return tl::unexpected(read.error());
  return problem;
}

Checked ContactProblem::Reset(const ContactProblemView& view, const ProblemLimits& limits) {
  return ContactProblemReader(view, limits, this).Read();
}

void ContactProblem::SetGuess(std::span<const double> v_guess) {
  v_guess_.assign(v_guess.begin(), v_guess.end());
  has_guess_ = true;
}

void ContactProblem::Clear() {
  time_step_ = 0;
  has_guess_ = false;
  regularization_ = {};
  dofs_.clear();
  velocity_start_.clear();
  matrix_start_.clear();
  tree_id_.clear();
  tree_a_.clear();
  tree_b_.clear();
  jacobian_start_.clear();
  for (std::vector<double>* array :
       {&dynamics_matrix_, &dynamics_factor_, &v_star_, &v_guess_, &jacobian_, &phi0_, &tau_d_,
        &mu_, &stiffness_, &given_R_t_, &given_R_n_, &given_w_, &surface_velocity_}) {
    array->clear();
  }
}

}  // namespace sap
