#include "client/c/drake/contacts.h"

#include <algorithm>
#include <cmath>

#include "client/c/drake/plant.h"
#include "client/c/drake/vector3.h"

namespace sap::drake {
namespace {

constexpr double kLargestNormalX = 0.6;  // |n_x| with which the tangents are made from the x axis

// Axes t1, t2, n.
struct Frame {
  Vector3 axes[3];
};

// Rows t1, t2, n of the velocities of one tree in a contact's Jacobian.
struct Block {
  int64_t size;  // n_t
  double* values;
  const int64_t* order;    // [n_t] indices in the plant's v
  const double* diagonal;  // [n_t] of A
};

// t1 is normal to n and to the x axis, or to the y axis if n is near the x axis. The solution does
// not depend on the choice.
Frame FrameWithNormal(const Vector3& n) {
  // n x e_x or n x e_y
  const Vector3 across =
      std::abs(n.x) <= kLargestNormalX ? Vector3{0.0, n.z, -n.y} : Vector3{-n.z, 0.0, n.x};
  const Vector3 t1 = across / Norm(across);
  return {{t1, Cross(n, t1), n}};
}

// Adds the Jacobian of a free body, whose velocities are (omega, V): f . (V + omega x arm).
void AddFreeBody(const Frame& frame, double sign, const Vector3& arm, const Block& block) {
  for (int k = 0; k < 3; ++k) {
    const Vector3 f = sign * frame.axes[k];
    double* row = block.values + 6 * k;
    Store(Load(row) + Cross(arm, f), row);
    Store(Load(row + 3) + f, row + 3);
  }
}

// As AddFreeBody, for a body whose (omega, V) depends on the plant's v by the Jacobian `axes`
// [6, nv].
void AddJointedBody(const Frame& frame, double sign, const Vector3& arm, const double* axes,
                    int64_t nv, const Block& block) {
  for (int64_t j = 0; j < block.size; ++j) {
    const double* column = axes + block.order[j];
    const Vector3 omega = {column[0], column[nv], column[2 * nv]};
    const Vector3 V = {column[3 * nv], column[4 * nv], column[5 * nv]};
    const Vector3 velocity = V + Cross(omega, arm);
    for (int k = 0; k < 3; ++k) {
      block.values[k * block.size + j] += sign * Dot(frame.axes[k], velocity);
    }
  }
}

// Adds J diag(A)^-1 J' of one tree.
void AddDelassus(const Block& block, double (&delassus)[3][3]) {
  for (int64_t j = 0; j < block.size; ++j) {
    for (int k = 0; k < 3; ++k) {
      const double weighted = block.values[k * block.size + j] / block.diagonal[j];
      for (int m = 0; m < 3; ++m) delassus[k][m] += weighted * block.values[m * block.size + j];
    }
  }
}

// w, a third of the Frobenius norm of J diag(A)^-1 J'.
double DelassusEstimate(const Block& a, const Block& b) {
  double delassus[3][3] = {};
  AddDelassus(a, delassus);
  AddDelassus(b, delassus);
  double sum = 0.0;
  for (const auto& row : delassus) {
    for (const double value : row) sum += value * value;
  }
  return std::sqrt(sum) / 3.0;
}

// The part of one tree in the normal velocity at v_0.
double NormalVelocity(const Block& block, const double* v_0) {
  const double* row = block.values + 2 * block.size;
  double sum = 0.0;
  for (int64_t j = 0; j < block.size; ++j) sum += row[j] * v_0[block.order[j]];
  return sum;
}

// Writes contacts one after the other.
class Writer {
 public:
  Writer(const sap_drake_plant& plant, const sap_drake_state& state, const ContactArrays& arrays)
      : plant_(plant), state_(state), arrays_(arrays), next_value_(arrays.jacobian) {}

  void Write(int64_t i, const sap_drake_point& point, const int32_t* bodies) {
    const auto [tree_a, tree_b] = BlockTrees(plant_, bodies);
    const Block a = TakeBlock(tree_a);
    const Block b = TakeBlock(tree_b);
    const Frame frame = FrameWithNormal(Load(point.normal));
    for (int k = 0; k < 3; ++k) Store(frame.axes[k], arrays_.frames + 9 * i + 3 * k);
    for (int side = 0; side < 2; ++side) {
      const int32_t tree = plant_.tree_of_body[bodies[side]];
      if (tree == kWorld) continue;
      AddBody(frame, side == 0 ? -1.0 : 1.0, Load(point.position), bodies[side],
              tree == tree_a ? a : b);
    }
    arrays_.tree_a[i] = tree_a;
    arrays_.tree_b[i] = tree_b;
    arrays_.delassus_estimate[i] = DelassusEstimate(a, b);
    WriteNormalForce(i, point, NormalVelocity(a, state_.v_0) + NormalVelocity(b, state_.v_0));
  }

 private:
  Block TakeBlock(int32_t tree) {
    if (tree == kWorld) return {0, next_value_, nullptr, nullptr};
    const int64_t size = TreeSize(plant_, tree);
    const int64_t first = plant_.first[tree];
    const Block block = {size, next_value_, plant_.order + first, state_.diagonal + first};
    std::fill_n(next_value_, 3 * size, 0.0);
    next_value_ += 3 * size;
    return block;
  }

  void AddBody(const Frame& frame, double sign, const Vector3& position, int32_t body,
               const Block& block) const {
    const int64_t origin = plant_.position_of_free[body];
    if (origin >= 0) {
      AddFreeBody(frame, sign, position - Load(state_.position + origin), block);
      return;
    }
    const auto place =
        std::lower_bound(state_.bodies, state_.bodies + state_.count, body) - state_.bodies;
    const double* row = state_.jacobians + place * (3 + 6 * plant_.velocities);
    AddJointedBody(frame, sign, position - Load(row), row + 3, plant_.velocities, block);
  }

  void WriteNormalForce(int64_t i, const sap_drake_point& point, double v_n) const {
    const double force = -point.stiffness * point.signed_distance;
    arrays_.signed_distance[i] = point.signed_distance;
    arrays_.stiffness[i] = point.stiffness;
    arrays_.relaxation_time[i] = point.relaxation_time;
    arrays_.friction[i] = point.friction;
    arrays_.elastic_force[i] = force;
    arrays_.dissipation[i] = point.dissipation;
    arrays_.lagged_normal_impulse[i] =
        plant_.time_step * std::max(0.0, force) * std::max(0.0, 1.0 - point.dissipation * v_n);
  }

  const sap_drake_plant& plant_;
  const sap_drake_state& state_;
  const ContactArrays& arrays_;
  double* next_value_;  // of the Jacobian
};

}  // namespace

int64_t MeasureContacts(const sap_drake_plant& plant, const ContactPoints& contacts,
                        uint8_t* needs_jacobian) {
  int64_t values = 0;
  for (int64_t i = 0; i < contacts.count; ++i) {
    const int32_t* bodies = contacts.bodies + 2 * i;
    const auto [tree_a, tree_b] = BlockTrees(plant, bodies);
    values += 3 * TreeSize(plant, tree_a);
    if (tree_b != kWorld) values += 3 * TreeSize(plant, tree_b);
    for (int side = 0; side < 2; ++side) {
      const int32_t body = bodies[side];
      const bool moves = plant.tree_of_body[body] != kWorld;
      if (moves && plant.position_of_free[body] < 0) needs_jacobian[body] = 1;
    }
  }
  return values;
}

void WriteContacts(const sap_drake_plant& plant, const ContactPoints& contacts,
                   const sap_drake_state& state, const ContactArrays& arrays) {
  Writer writer(plant, state, arrays);
  for (int64_t i = 0; i < contacts.count; ++i) {
    writer.Write(i, contacts.points[i], contacts.bodies + 2 * i);
  }
}

}  // namespace sap::drake
