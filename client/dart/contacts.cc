#include "client/dart/contacts.h"

#include <algorithm>
#include <cmath>
#include <dart/collision/CollisionObject.hpp>
#include <dart/constraint/ContactConstraint.hpp>
#include <dart/dynamics/ShapeNode.hpp>
#include <functional>
#include <numeric>

namespace sap_islands::dart {
namespace {

using ::dart::collision::Contact;
using ::dart::constraint::ConstraintBase;
using ::dart::constraint::ContactConstraint;
using ::dart::dynamics::BodyNode;
using ::dart::dynamics::DynamicsAspect;
using ::dart::dynamics::ShapeNode;
using Eigen::Matrix3d;
using Eigen::Vector3d;

// As ContactConstraint: friction and restitution above these coefficients, rebounds between these
// speeds.
constexpr double kLeastFriction = 1e-3;
constexpr double kLeastRestitution = 1e-3;
constexpr double kLeastRebound = 0.1;
constexpr double kLargestRebound = 100;
// A rebound is as high as its coefficient says only with beta of at most this.
constexpr double kLargestBetaOfRebound = 0.1;
// A speed of separation by the last term of v_hat_n that is too small to be seen: a hop of 50 nm.
constexpr double kShiftSpeed = 1e-3;  // [m/s]
constexpr double kShiftChange = 0.05;
// |J_n| over |J_t|, in the norm of diag(A)^-1, of a normal that does not move, as under a drawer or
// a turntable. The cone would hold what slips there. The normal impulse v_hat_n / R_n is known;
// both are multiplied by one large number, which leaves it and takes what slip would add from it.
constexpr double kGuided = 1e-6;
constexpr double kGuidedScale = 1e8;
// [N/m] Leaves R_n to the rule.
constexpr double kRigid = 1e12;

const ShapeNode& ShapeOf(const ::dart::collision::CollisionObject& object) {
  return *object.getShapeFrame()->asShapeNode();
}

struct Material {
  double friction_1 = 1, friction_2 = 1, restitution = 0, slip_1 = 0, slip_2 = 0;
};

// As ContactConstraint: defaults for shapes without an aspect; a slip below 0 is none.
Material MaterialOf(const ShapeNode& shape) {
  const DynamicsAspect* aspect = shape.getDynamicsAspect();
  if (aspect == nullptr) return Material();
  return {aspect->getPrimaryFrictionCoeff(), aspect->getSecondaryFrictionCoeff(),
          aspect->getRestitutionCoeff(), std::max(aspect->getPrimarySlipCompliance(), 0.0),
          std::max(aspect->getSecondarySlipCompliance(), 0.0)};
}

Material MaterialOf(const Contact& contact) {
  const Material a = MaterialOf(ShapeOf(*contact.collisionObject1));
  const Material b = MaterialOf(ShapeOf(*contact.collisionObject2));
  Material both{std::min(a.friction_1, b.friction_1), std::min(a.friction_2, b.friction_2),
                a.restitution * b.restitution, a.slip_1 + b.slip_1, a.slip_2 + b.slip_2};
  if (both.friction_1 <= kLeastFriction && both.friction_2 <= kLeastFriction) {
    both.friction_1 = both.friction_2 = 0;
  }
  if (both.restitution <= kLeastRestitution) both.restitution = 0;
  return both;
}

// ContactConstraint exists for these alone.
bool HasConstraint(const Contact& contact) {
  return Contact::isNonZeroNormal(contact.normal) && contact.penetrationDepth >= 0;
}

// The objects of a contact in the order of their pair, and whether that is not its own.
std::pair<Contacts::ObjectPair, bool> PairOf(const Contact& contact) {
  const void* first = contact.collisionObject1;
  const void* second = contact.collisionObject2;
  const bool swapped = std::less<>()(second, first);
  if (swapped) std::swap(first, second);
  return {{first, second}, swapped};
}

// Columns t1, t2, n, as ContactConstraint has them. A direction along the normal gives way to x,
// then y.
Matrix3d FrameOf(const Vector3d& n, const Vector3d& friction_direction) {
  Vector3d t2 = n.cross(friction_direction);
  if (t2.squaredNorm() < 1e-12) t2 = n.cross(Vector3d::UnitX());
  if (t2.squaredNorm() < 1e-12) t2 = n.cross(Vector3d::UnitY());
  t2.normalize();
  Matrix3d frame;
  frame << n.cross(t2), t2, n;
  return frame;
}

// Velocity of a body's point along the axes of the frame, per twist in the axes of the body.
Eigen::Matrix<double, 3, 6> PointVelocity(const BodyNode& body, const Vector3d& point,
                                          const Matrix3d& frame) {
  const Eigen::Isometry3d& X = body.getTransform();
  const Matrix3d axes = frame.transpose() * X.linear();  // rows are the axes, in the body
  const Vector3d p = X.linear().transpose() * (point - X.translation());
  Eigen::Matrix<double, 3, 6> S;
  for (int i = 0; i < 3; ++i) S.row(i) << p.cross(axes.row(i).transpose()).transpose(), axes.row(i);
  return S;
}

}  // namespace

void Contacts::Clear() {
  constraint_.clear();
  swapped_.clear();
  for (auto* array : {&tree_a_, &tree_b_}) array->clear();
  for (auto* array :
       {&jacobian_, &relaxation_time_, &stiffness_, &friction_, &friction_2_, &target_velocity_,
        &surface_velocity_, &regularization_t_, &regularization_n_, &unshifted_}) {
    array->clear();
  }
  pairs_.clear();
  slip_regularization_.clear();
  parts_.clear();
  part_tree_.clear();
  bounces_.clear();
  guided_.clear();
  needs_regularization_ = false;
}

void Contacts::Read(const Constraints& constraints, const Options& options, Trees* trees) {
  Clear();
  FindPairs(constraints);
  size_t next = 0;
  for (const Contact& contact : constraints.collisions.getContacts()) {
    if (!HasConstraint(contact) || next == constraints.contacts.size()) continue;
    ContactConstraint* constraint = constraints.contacts[next++].get();
    if (static_cast<ConstraintBase*>(constraint)->isActive()) {
      Add(constraints.time_step, contact, constraint, options, trees);
    }
  }
}

void Contacts::FindPairs(const Constraints& constraints) {
  for (const Contact& contact : constraints.collisions.getContacts()) {
    if (!HasConstraint(contact)) continue;
    const auto [objects, swapped] = PairOf(contact);
    Pair& pair = pairs_[objects];
    ++pair.contacts;
    pair.way_out += (swapped ? -1 : 1) * contact.penetrationDepth * contact.normal;
  }
}

double Contacts::PushOutSpeed(const Contact& contact, double reaction_time,
                              const Options& options) const {
  const auto [objects, swapped] = PairOf(contact);
  const Vector3d way_out = (swapped ? -1 : 1) * pairs_.at(objects).way_out;
  const double length = way_out.norm();
  if (length == 0) return 0;
  const double along = std::max(0.0, contact.normal.dot(way_out) / length);
  return along * std::min(contact.penetrationDepth / reaction_time, options.max_push_out_speed);
}

void Contacts::Add(double dt, const Contact& contact, ContactConstraint* constraint,
                   const Options& options, Trees* trees) {
  const double tau =
      options.relaxation_time_s > 0 ? options.relaxation_time_s : std::max(0.02, 4 * dt);
  const Material material = MaterialOf(contact);
  const bool swapped = material.friction_2 > material.friction_1;
  Matrix3d frame = FrameOf(contact.normal, constraint->getFrictionDirection1());
  if (swapped) frame.col(0).swap(frame.col(1));

  constraint_.push_back(constraint);
  swapped_.push_back(swapped);
  const size_t blocks = jacobian_.size();
  const Vector3d v_c = AddJacobian(contact, frame, trees);
  friction_.push_back(swapped ? material.friction_2 : material.friction_1);
  friction_2_.push_back(swapped ? material.friction_1 : material.friction_2);
  guided_.push_back(IsGuided(&jacobian_[blocks], *trees));

  const double rebound = std::min(-material.restitution * v_c.z(), kLargestRebound);
  const double push_out = PushOutSpeed(contact, dt + tau, options);
  bounces_.push_back(rebound > kLeastRebound);
  unshifted_.push_back(bounces_.back() ? std::max(push_out, rebound) : push_out);
  Eigen::Vector2d slip(material.slip_1, material.slip_2);
  if (swapped) slip.reverseInPlace();
  const bool slips = !slip.isZero(0);
  // Together the contacts of a pair slip as one with its compliance.
  if (slips) slip *= pairs_.at(PairOf(contact).first).contacts / dt;
  slip_regularization_.push_back(slip);
  needs_regularization_ = needs_regularization_ || bounces_.back() || slips || guided_.back();
  relaxation_time_.push_back(tau);
  stiffness_.push_back(kRigid);
}

Vector3d Contacts::AddJacobian(const Contact& contact, const Matrix3d& frame, Trees* trees) {
  Vector3d v_c = Vector3d::Zero();    // in all
  Vector3d moved = Vector3d::Zero();  // by velocities of the problem
  int tree[2] = {-1, -1};
  size_t block = 0;
  double sign = 1;
  const ::dart::collision::CollisionObject* objects[] = {contact.collisionObject1,
                                                         contact.collisionObject2};
  for (int side = 0; side < 2; ++side, sign = -1) {
    const BodyNode& body = *ShapeOf(*objects[side]).getBodyNodePtr();
    const Eigen::Matrix<double, 3, 6> S = sign * PointVelocity(body, contact.point, frame);
    const Vector3d v_side = S * body.getSpatialVelocity();
    v_c += v_side;
    if (!body.isReactive()) continue;
    const SkeletonTrees& skeleton =
        trees->Add(const_cast<::dart::dynamics::Skeleton&>(*body.getSkeleton()));
    tree[side] = skeleton.tree[body.getTreeIndex()];
    const int n = trees->dofs(tree[side]);
    // Both sides of a contact within a tree share its block.
    if (side == 0 || tree[0] != tree[1]) {
      block = jacobian_.size();
      jacobian_.resize(block + 3 * n, 0.0);
    }
    if (!skeleton.has_kinematic_dofs) {
      trees->AddJacobian(skeleton, body, S, &jacobian_[block]);
      moved += v_side;
      continue;
    }
    std::vector<double> own(3 * n, 0.0);
    trees->AddJacobian(skeleton, body, S, own.data());
    for (int i = 0; i < 3 * n; ++i) {
      jacobian_[block + i] += own[i];
      moved[i / n] += own[i] * trees->v_star(trees->first_velocity(tree[side]) + i % n);
    }
  }
  if (tree[0] < 0) std::swap(tree[0], tree[1]);
  if (tree[0] == tree[1]) tree[1] = -1;
  tree_a_.push_back(tree[0]);
  tree_b_.push_back(tree[1]);
  const Vector3d surface = v_c - moved;
  surface_velocity_.insert(surface_velocity_.end(), surface.data(), surface.data() + 3);
  return v_c;
}

bool Contacts::IsGuided(const double* blocks, const Trees& trees) const {
  double moved[3] = {0, 0, 0};
  for (const int tree : {tree_a_.back(), tree_b_.back()}) {
    if (tree < 0) continue;
    const int n = trees.dofs(tree);
    for (int i = 0; i < 3 * n; ++i) {
      moved[i / n] += blocks[i] * blocks[i] / trees.mass(tree, i % n);
    }
    blocks += 3 * n;
  }
  return friction_.back() > 0 && moved[2] <= kGuided * kGuided * (moved[0] + moved[1]);
}

double Contacts::Target(int contact, double shift) const {
  const double v_hat = unshifted_[contact];
  if (guided_[contact]) return v_hat > 0 ? kGuidedScale * v_hat : -kGuidedScale;
  return v_hat - shift;
}

void Contacts::Regularize(double beta, double sigma, const double* w, Trees* trees) {
  std::vector<int> slip_tree(size(), -1);
  std::vector<int> slip_axis(size());
  for (int i = 0; i < size(); ++i) {
    const double by_rule = sigma * w[i];
    const Eigen::Vector2d& slip = slip_regularization_[i];
    const double ratio = friction_2_[i] > 0 ? friction_[i] / friction_2_[i] : 0;
    const double R_1 = slip[0] > 0 ? slip[0] : by_rule;
    const double R_2 = slip[1] > 0 ? slip[1] : ratio * ratio * by_rule;
    // The larger R that keeps both below what they are to be; the rest is the tree's.
    double R_t = R_1;
    double rest = R_2 - ratio * ratio * R_1;
    slip_axis[i] = 1;
    if (ratio > 0 && rest < 0) {
      R_t = R_2 / (ratio * ratio);
      rest = R_1 - R_t;
      slip_axis[i] = 0;
    }
    regularization_t_.push_back(R_t);
    const double own_beta = bounces_[i] ? std::min(beta, kLargestBetaOfRebound) : beta;
    regularization_n_.push_back(own_beta * own_beta / (4 * M_PI * M_PI) * w[i] *
                                (guided_[i] ? kGuidedScale : 1));
    if (ratio > 0 && rest > 0) slip_tree[i] = trees->AddSlip(1 / rest);
  }
  if (std::any_of(slip_tree.begin(), slip_tree.end(), [](int tree) { return tree >= 0; })) {
    AddSlipTrees(*trees, slip_tree, slip_axis);
  }
}

void Contacts::AddSlipTrees(const Trees& trees, const std::vector<int>& slip_tree,
                            const std::vector<int>& slip_axis) {
  std::vector<double> jacobian;
  const double* J = jacobian_.data();
  for (int i = 0; i < size(); ++i) {
    parts_.push_back(0);
    for (const int tree : {tree_a_[i], tree_b_[i]}) {
      if (tree < 0) continue;
      const double* end = J + 3 * trees.dofs(tree);
      jacobian.insert(jacobian.end(), J, end);
      J = end;
      part_tree_.push_back(tree);
      ++parts_.back();
    }
    if (slip_tree[i] < 0) continue;
    for (int axis = 0; axis < 3; ++axis) jacobian.push_back(axis == slip_axis[i] ? 1 : 0);
    part_tree_.push_back(slip_tree[i]);
    ++parts_.back();
  }
  jacobian_.swap(jacobian);
}

double Contacts::Shift(int contact, double v_1, double v_2) const {
  return std::hypot(friction_[contact] * v_1, friction_2_[contact] * v_2);
}

void Contacts::ShiftTargets(const Trees& trees, const std::vector<double>& v) {
  target_velocity_.assign(3 * size(), 0.0);
  const double* J = jacobian_.data();
  for (int i = 0; i < size(); ++i) {
    double v_t[2] = {surface_velocity_[3 * i], surface_velocity_[3 * i + 1]};
    for (const int tree : {tree_a_[i], tree_b_[i]}) {
      if (tree < 0) continue;
      const int n = trees.dofs(tree);
      const double* v_tree = &v[trees.first_velocity(tree)];
      for (int axis = 0; axis < 2; ++axis) {
        v_t[axis] = std::inner_product(v_tree, v_tree + n, J + axis * n, v_t[axis]);
      }
      J += 3 * n;
    }
    // A contact that slips under load sticks where R_t gamma_t is all of its velocity.
    const bool slips = !slip_regularization_[i].isZero(0);
    target_velocity_[3 * i + 2] = Target(i, slips ? 0 : Shift(i, v_t[0], v_t[1]));
  }
}

bool Contacts::ShiftTargets(const sap_solution& solution, double sigma) {
  bool changed = false;
  for (int i = 0; i < size(); ++i) {
    const double* gamma = solution.impulse.data + 3 * i;
    if (gamma[2] == 0 || guided_[i]) continue;
    const double* v_c = solution.contact_velocity.data + 3 * i;
    const double R_1 = regularization_t_.empty() ? sigma * solution.delassus_estimate.data[i]
                                                 : regularization_t_[i];
    const double ratio = friction_2_[i] > 0 ? friction_[i] / friction_2_[i] : 0;
    const double shift = Shift(i, v_c[0] + R_1 * gamma[0], v_c[1] + R_1 * ratio * ratio * gamma[1]);
    double& v_hat = target_velocity_[3 * i + 2];
    const double change = std::abs(unshifted_[i] - shift - v_hat);
    changed = changed || change > kShiftSpeed + kShiftChange * shift;
    v_hat = unshifted_[i] - shift;
  }
  return changed;
}

sap_contact_laws Contacts::laws() const {
  const auto view = [](const std::vector<double>& array) {
    return sap_doubles{array.data(), static_cast<int64_t>(array.size())};
  };
  sap_contact_laws laws{};
  laws.struct_size = sizeof laws;
  laws.relaxation_time = view(relaxation_time_);
  laws.stiffness = view(stiffness_);
  laws.friction = view(friction_);
  if (friction_2_ != friction_) laws.friction_2 = view(friction_2_);
  laws.target_velocity = view(target_velocity_);
  if (std::any_of(surface_velocity_.begin(), surface_velocity_.end(),
                  [](double speed) { return speed != 0; })) {
    laws.surface_velocity = view(surface_velocity_);
  }
  laws.regularization_t = view(regularization_t_);
  laws.regularization_n = view(regularization_n_);
  return laws;
}

sap_contacts Contacts::contacts(const sap_contact_laws* laws) const {
  sap_contacts contacts{};
  contacts.struct_size = sizeof contacts;
  if (HasSlipTrees()) {
    contacts.parts = {parts_.data(), size()};
    contacts.part_tree = {part_tree_.data(), static_cast<int64_t>(part_tree_.size())};
  } else {
    contacts.tree_a = {tree_a_.data(), size()};
    contacts.tree_b = {tree_b_.data(), size()};
  }
  contacts.jacobian = {jacobian_.data(), static_cast<int64_t>(jacobian_.size())};
  contacts.laws = laws;
  return contacts;
}

void Contacts::Apply(const double* impulse) const {
  for (int i = 0; i < size(); ++i, impulse += 3) {
    const int first = swapped_[i] ? 1 : 0;
    // DART's order.
    double normal_first[] = {impulse[2], impulse[first], impulse[1 - first]};
    constraint_[i]->applyImpulse(normal_first);
  }
}

}  // namespace sap_islands::dart
