// SapModel::Gather for islands of one body, four at a time: the same bits, written to the lanes
// that the solver reads.
#include <algorithm>
#include <array>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/cholesky/power_of_two.h"
#include "solver/model/constraint_inputs.h"
#include "solver/model/sap_model.h"
#include "solver/model/scaled_tree.h"
#include "solver/model/single_bodies.h"

namespace sap {

namespace {

constexpr SixDofs kDofs;
constexpr int kLanes = SingleBodies::kLanes;

using Pointers = std::array<const double*, kLanes>;
using Mask = decltype(Lanes4{} < Lanes4{});

struct Units {
  Lanes4 mass_unit, trace_A{};
  Mask representable;
};

// A, its factor and D with the mass unit of each island at 1.
Units ScaleTrees(const ContactProblem& problem, const std::array<int, kLanes>& trees,
                 SingleBodies* bodies) {
  Pointers A, factor, v_star;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int64_t from = problem.matrix_start()[trees[lane]];
    A[lane] = problem.dynamics_matrix().data() + from;
    factor[lane] = problem.dynamics_factor().data() + from;
    v_star[lane] = problem.v_star().data() + problem.velocity_start()[trees[lane]];
  }
  Interleave(A, &bodies->A);
  Interleave(factor, &bodies->A_factor);
  Interleave(v_star, &bodies->v_star);
  Lanes4 largest{};
  for (int i = 0; i < kDofs; ++i) {
    const Lanes4& entry = bodies->A[i * kDofs + i];
    largest = largest < entry ? entry : largest;
  }
  Units units;
  for (int lane = 0; lane < kLanes; ++lane) units.mass_unit[lane] = PowerOfTwoBelow(largest[lane]);
  units.representable = ScaleTree(bodies->A.data(), bodies->A_factor.data(), kDofs, units.mass_unit,
                                  bodies->A.data(), bodies->A_factor.data(), bodies->D.data());
  for (int i = 0; i < kDofs; ++i) units.trace_A += bodies->A[i * kDofs + i];
  return units;
}

// The estimate w of delassus.h for a contact of each body, by A or by its diagonal.
Lanes4 EstimateDelassus(const SingleBodies& bodies, const SingleBodies::Contact& contact,
                        bool is_diagonal) {
  std::array<std::array<Lanes4, kDofs>, 3> X;  // of the rows of J
  std::array<std::array<Lanes4, 3>, 3> W{};
  for (int row = 0; row < 3; ++row) {
    std::copy_n(contact.J.data() + row * kDofs, static_cast<int>(kDofs), X[row].data());
    if (!is_diagonal) SolveUnitLower(bodies.A_factor.data(), kDofs, X[row].data());
  }
  for (int i = 0; i < kDofs; ++i) {
    if (is_diagonal) {
      for (auto& row : X) row[i] *= bodies.D[i];
    }
    for (int r = 0; r < 3; ++r) {
      const Lanes4 scaled = is_diagonal ? X[r][i] : X[r][i] * bodies.A_factor[i * kDofs + i];
      for (int column = 0; column < 3; ++column) W[r][column] += scaled * X[column][i];
    }
  }
  std::array<Lanes4, 3> squares;
  for (int r = 0; r < 3; ++r) {
    squares[r] = W[r][0] * W[r][0] + W[r][1] * W[r][1] + W[r][2] * W[r][2];
  }
  return Sqrt((squares[0] + squares[1]) + squares[2]) / 3.0;
}

FrictionParameters<Lanes4> InLanes(
    const std::array<FrictionParameters<double>, kLanes>& parameters) {
  const auto& [a, b, c, d] = parameters;
  const auto vector = [](const auto& a, const auto& b, const auto& c, const auto& d) {
    return ContactVector<Lanes4>{Lanes4{a.x, b.x, c.x, d.x}, Lanes4{a.y, b.y, c.y, d.y},
                                 Lanes4{a.n, b.n, c.n, d.n}};
  };
  return {Lanes4{a.R_t, b.R_t, c.R_t, d.R_t}, Lanes4{a.R_n, b.R_n, c.R_n, d.R_n},
          Lanes4{a.mu, b.mu, c.mu, d.mu}, vector(a.v_hat, b.v_hat, c.v_hat, d.v_hat),
          vector(a.target_size, b.target_size, c.target_size, d.target_size)};
}

}  // namespace

void SapModel::GatherSingleBodies(const ContactProblem& problem, const ConstraintGraph& graph,
                                  std::span<const int> islands, bool gathered,
                                  SingleBodies* bodies) {
  const ContactLayout& layout = LayoutOf(graph, kFrictionPool);
  std::array<int, kLanes> trees;
  std::array<const int*, kLanes> contacts;  // their numbers in the problem
  for (int lane = 0; lane < kLanes; ++lane) {
    const int island = islands[std::min<size_t>(lane, islands.size() - 1)];
    const PoolRange range = RangeOf(layout.island(island));
    trees[lane] = graph.islands().tree_of_slot()[graph.island_ranges()[island].slot_begin];
    contacts[lane] = layout.order().data() + range.begin;
    bodies->num_contacts = range.end - range.begin;
  }
  Units units = ScaleTrees(problem, trees, bodies);
  const bool is_diagonal = problem.regularization().rule == DelassusRule::kDiagonal;
  for (int c = 0; c < bodies->num_contacts; ++c) {
    SingleBodies::Contact& contact = bodies->contacts[c];
    const auto inputs_of = [&](int lane) {
      return InputsOf<ConeInputs>(problem, contacts[lane][c], units.mass_unit[lane]);
    };
    Pointers J;
    Lanes4 given_w{};
    bool is_estimated = false;
    for (int lane = 0; lane < kLanes; ++lane) {
      const int number = contacts[lane][c];
      J[lane] = problem.jacobian().data() + problem.jacobian_start()[number];
      if (!inputs_of(lane).NeedsDelassus()) continue;
      const double given = gathered ? w[number] : problem.given_w()[number] * units.mass_unit[lane];
      given_w[lane] = given;
      is_estimated |= given == 0;
    }
    Interleave(J, &contact.J);
    Lanes4 estimate{};
    if (is_estimated) estimate = EstimateDelassus(*bodies, contact, is_diagonal);
    std::array<FrictionParameters<double>, kLanes> parameters;
    for (int lane = 0; lane < kLanes; ++lane) {
      // Read again, so that they stay in registers.
      ConeInputs inputs = inputs_of(lane);
      if (inputs.NeedsDelassus()) inputs.w = given_w[lane] != 0 ? given_w[lane] : estimate[lane];
      w[contacts[lane][c]] = inputs.w;
      parameters[lane] = FrictionContacts::Make(inputs, inputs, NoPartials());
    }
    const FrictionParameters<Lanes4> in_lanes = InLanes(parameters);
    contact.law = in_lanes.Cone();
    contact.target_size = in_lanes.target_size;
    units.representable &= in_lanes.IsRepresentable();
  }
  for (size_t lane = 0; lane < islands.size(); ++lane) {
    constants_[islands[lane]] = {units.mass_unit[lane], units.trace_A[lane],
                                 units.representable[lane] != 0};
  }
}

}  // namespace sap
