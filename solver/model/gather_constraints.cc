#include "solver/model/gather_constraints.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/model/delassus.h"
#include "solver/pools/jacobian_kernels.h"
#include "solver/pools/loop_costs.h"
#include "solver/pools/tree_scratch.h"

namespace sap {

namespace {

// Whether the law of a friction contact can be evaluated in doubles. The square of mu has to be
// finite as well: mu mu_hat is then good to 1e-15 where R_t / R_n is next to the least double.
bool IsRepresentable(double R_t, double R_n, double mu, double v_hat_n) {
  return R_t > 0 && R_n > 0 && std::isfinite(1 / R_t) && std::isfinite(1 / R_n) &&
         std::isfinite(R_t) && std::isfinite(R_n) && std::isfinite(v_hat_n) &&
         std::isfinite(mu * mu) && std::isfinite(mu * (mu * (R_t / R_n)));
}

// Copies the block of one tree out of the Jacobian of a contact and, where it has one, the rows
// `first_angular` and on of its angular Jacobian.
template <int num_rows>
void CopyBlock(const double* linear, const double* angular, int dofs, double* to) {
  ForSize(dofs, [&](auto n) { std::memcpy(to, linear, 3 * n * sizeof(double)); });
  if constexpr (num_rows > 3) {
    constexpr int kAngular = num_rows - 3;
    std::copy_n(angular + (3 - kAngular) * dofs, kAngular * dofs, to + 3 * dofs);
  }
}

// Gathers into one model from one problem.
class ConstraintGatherer {
 public:
  ConstraintGatherer(const ContactProblem& problem, const ConstraintGraph& graph, int island,
                     SapModel* model)
      : problem_(problem),
        graph_(graph),
        model_(*model),
        mass_unit_(model->constants(island).mass_unit) {}

  // Jacobian and law of contact i of a pool. False if a constant left the range of doubles.
  template <int index>
  bool GatherContact(PoolIndex<index> pool, const ContactPair& pair, int i) {
    constexpr int kRows = NumRows(static_cast<ConstraintKind>(index));
    const ContactLayout& layout = LayoutOf(graph_, pool);
    const int contact = layout.order()[i];
    double* J_low = model_.pools[pool].jacobians.of(pair, i);
    double* J_high = pair.high < 0 ? nullptr : J_low + kRows * pair.dofs_low;
    const bool swapped = layout.swapped(i);
    const int dofs_a = swapped ? pair.dofs_high : pair.dofs_low;
    const double* linear = problem_.jacobian().data() + problem_.jacobian_start()[contact];
    const double* angular = AngularJacobian<kRows>(contact);
    CopyBlock<kRows>(linear, angular, dofs_a, swapped ? J_high : J_low);
    if (J_high != nullptr) {
      if (kRows > 3) angular += 3 * dofs_a;
      CopyBlock<kRows>(linear + 3 * dofs_a, angular, swapped ? pair.dofs_low : pair.dofs_high,
                       swapped ? J_low : J_high);
    }
    return GatherContactLaw(pool, pair, i, contact, J_low, J_high);
  }

  // Jacobian and law of a row of a pool.
  template <int index>
  bool GatherRow(PoolIndex<index> pool, int row) {
    auto& [laws, jacobians] = model_.pools[pool];
    const RowLayout& layout = LayoutOf(graph_, pool);
    const std::span<const RowPart> parts = layout.parts_of_row(row);
    const int number = layout.order()[row];
    const int64_t from = problem_.row_start()[number];
    for (int64_t e = parts.front().entry_begin; e < parts.back().entry_end; ++e) {
      jacobians.at(e) = problem_.row_coefficients()[from + e - parts.front().entry_begin];
    }
    const RowParameters& given = problem_.rows()[number];
    const double R = RowRegularization(given, layout, jacobians, row);
    const double impulse_unit = problem_.time_step() / mass_unit_;
    const double v_hat = given.v_hat - given.offset + R * (impulse_unit * given.force_offset);
    if constexpr (index == kBilateralPool) {
      return Set(pool, row, BilateralRow::Parameters::Make(v_hat, R));
    } else {
      return Set(pool, row,
                 BoundedRow::Parameters::Make(v_hat, R, impulse_unit * given.force_lower,
                                              impulse_unit * given.force_upper));
    }
  }

 private:
  template <int num_rows>
  const double* AngularJacobian(int contact) const {
    if constexpr (num_rows == 3) return nullptr;
    const GeneralFriction& general = problem_.general_friction()[problem_.contact_extra()[contact]];
    return problem_.angular_jacobian().data() + problem_.angular_start()[general.angular_contact];
  }

  template <typename Pool, typename Parameters>
  bool Set(Pool pool, int i, const Parameters& parameters) {
    model_.pools[pool].laws.Set(i, parameters);
    return parameters.IsRepresentable();
  }

  template <int index>
  bool GatherContactLaw(PoolIndex<index> pool, const ContactPair& pair, int i, int contact,
                        const double* J_low, const double* J_high) {
    constexpr auto kKind = static_cast<ConstraintKind>(index);
    const double mu = problem_.mu()[contact];
    const double* given = problem_.v_hat().data() + 3 * contact;
    const double* b = problem_.surface_velocity().data() + 3 * contact;
    double& w_used = model_.w[contact];
    w_used = 0;
    const auto w = [&] { return w_used = DelassusEstimate(contact, pair, J_low, J_high); };
    if constexpr (IsHuntCrossley(kKind)) {
      return Set(pool, i, HuntCrossleyOf<index>(contact, {b[0], b[1], b[2]}, w));
    } else {
      const auto [R_t, R_n] = RegularizationOf(contact, w);
      const ContactVector<double> v_hat{given[0] - b[0], given[1] - b[1], given[2] - b[2]};
      if constexpr (kKind == ConstraintKind::kFriction) {
        model_.pools[pool].laws.Set(i, R_t, R_n, mu, v_hat);
        return IsRepresentable(R_t, R_n, mu, v_hat.n);
      } else {
        return Set(pool, i, ConeOf<NumRows(kKind)>(contact, R_t, R_n, mu, v_hat));
      }
    }
  }

  template <int num_rows>
  typename GeneralCone<num_rows>::Parameters ConeOf(int contact, double R_t, double R_n, double mu,
                                                    const ContactVector<double>& v_hat) const {
    const GeneralFriction& general = problem_.general_friction()[problem_.contact_extra()[contact]];
    LawVector<num_rows> mu_of_row{mu, general.mu_2, 1.0};
    LawVector<num_rows> target{v_hat.x, v_hat.y, v_hat.n};
    for (int row = 3; row < num_rows; ++row) {
      const int axis = row - num_rows + 3;
      mu_of_row[row] = general.angular[axis];
      target[row] = problem_.angular_v_hat()[3 * general.angular_contact + axis];
    }
    const double adhesion_impulse = problem_.time_step() * (general.adhesion / mass_unit_);
    return GeneralCone<num_rows>::Parameters::Make(R_t, R_n, mu_of_row, target, adhesion_impulse);
  }

  template <int index, typename Estimate>
  auto HuntCrossleyOf(int contact, const LawVector<3>& surface_velocity, Estimate&& w) const {
    using Law = std::conditional_t<static_cast<ConstraintKind>(index) ==
                                       ConstraintKind::kHuntCrossleyLagged,
                                   LaggedHuntCrossley, SimilarHuntCrossley>;
    const HuntCrossleyParameters& given =
        problem_.hunt_crossley()[problem_.contact_extra()[contact]];
    const ContactProblemView::Regularization& regularization = problem_.regularization();
    const double mu = problem_.mu()[contact];
    const double n_0 = given.lagged_normal_impulse / mass_unit_;
    double eps = regularization.stiction_speed;
    if (mu * n_0 > 0) eps = std::max(eps, mu * regularization.sigma * w() * n_0);
    return Law::Parameters::Make(surface_velocity, mu, given.elastic_force / mass_unit_,
                                 problem_.stiffness()[contact] / mass_unit_, given.dissipation, n_0,
                                 eps, problem_.time_step());
  }

  struct ConeRegularization {
    double R_t, R_n;  // [1/unit of mass]
  };
  template <typename Estimate>
  ConeRegularization RegularizationOf(int contact, Estimate&& estimate) const {
    const ContactProblemView::Regularization& regularization = problem_.regularization();
    const double near_rigid = NearRigid(regularization.beta);
    const double dt = problem_.time_step();
    double R_t = problem_.given_R_t()[contact] * mass_unit_;
    double R_n = problem_.given_R_n()[contact] * mass_unit_;
    const double w = R_t == 0 || R_n == 0 ? estimate() : 0.0;
    if (R_t == 0) R_t = regularization.sigma * w;
    if (R_n == 0) {
      const double time = dt + problem_.tau_d()[contact];
      const double compliance = mass_unit_ / (dt * problem_.stiffness()[contact] * time);
      R_n = std::max(near_rigid * w, compliance);
    }
    return {R_t, R_n};
  }

  // w of a contact, given or by the three linear rows.
  double DelassusEstimate(int contact, const ContactPair& pair, const double* J_low,
                          const double* J_high) const {
    const double given = problem_.given_w()[contact] * mass_unit_;
    if (given != 0) return given;
    const double norm = Norm(Delassus(problem_, graph_, model_, pair, J_low, J_high));
    // A contact whose Jacobian vanishes moves nothing; any positive w does.
    const double w = norm == 0 ? 1.0 : norm / 3.0;
    if (problem_.regularization().rule != DelassusRule::kLoadPath) return w;
    const auto [by_load, by_squeeze] = model_.load_paths.bounds(contact);
    const double loaded = std::min(w, by_load);
    if (by_squeeze >= loaded) return loaded;
    DelassusColumns low, high;
    AddDelassusOf(problem_, graph_, model_, pair.low, J_low, &low);
    AddDelassusOf(problem_, graph_, model_, pair.high, J_high, &high);
    return std::min(loaded, std::max(by_squeeze, std::min(Norm(low), Norm(high)) / 3.0));
  }

  double RowRegularization(const RowParameters& given, const RowLayout& layout,
                           const RowJacobians& jacobians, int row) const {
    if (given.given_R != 0) return given.given_R * mass_unit_;
    double w = given.given_w * mass_unit_;
    if (w == 0) w = RowDelassusEstimate(layout, jacobians, row);
    if (given.slip_parameter > 0) return given.slip_parameter * w;
    const double dt = problem_.time_step();
    const double compliance = mass_unit_ / (dt * given.stiffness * (dt + given.relaxation_time));
    return std::max(NearRigid(problem_.regularization().row_beta) * w, compliance);
  }

  // w = J A^-1 J' of a row, the sum over its trees.
  double RowDelassusEstimate(const RowLayout& layout, const RowJacobians& jacobians,
                             int row) const {
    double w = 0;
    for (const RowPart& part : layout.parts_of_row(row)) {
      const int n = graph_.dofs()[part.slot];
      const double* D = model_.D().data() + graph_.velocity_start()[part.slot];
      const double* factor = model_.A_factor(graph_, part.slot);
      WithTreeScratch(n, [&](double* x) {
        std::fill_n(x, n, 0.0);
        for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
          x[layout.dof()[e]] = jacobians.at(e);
        }
        if (problem_.regularization().rule == DelassusRule::kDiagonal) {
          for (int i = 0; i < n; ++i) w += x[i] * D[i] * (x[i] * D[i]);
          return;
        }
        SolveUnitLower(factor, n, x);
        for (int i = 0; i < n; ++i) w += x[i] * x[i] * factor[i * n + i];
      });
    }
    return w;
  }

  const ContactProblem& problem_;
  const ConstraintGraph& graph_;
  SapModel& model_;
  const double mass_unit_;
};

// Of units [begin, end) of a pool.
template <int index>
bool GatherUnits(ConstraintGatherer gatherer, const ConstraintGraph& graph, PoolIndex<index> pool,
                 int begin, int end, const StopToken& stop) {
  bool representable = true;
  for (int unit = begin; unit < end; ++unit) {
    if (stop.Cancelled()) return true;
    if constexpr (index < kNumContactKinds) {
      const ContactPair& pair = LayoutOf(graph, pool).pairs()[unit];
      for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
        if (stop.Cancelled()) return true;
        representable &= gatherer.GatherContact(pool, pair, i);
      }
    } else {
      representable &= gatherer.GatherRow(pool, unit);
    }
  }
  return representable;
}

}  // namespace

bool GatherConstraints(const ContactProblem& problem, const ConstraintGraph& graph, int island,
                       const StopToken& stop, TaskArena* arena, SapModel* model) {
  const ConstraintGatherer gatherer(problem, graph, island, model);
  std::atomic<bool> representable{true};
  ForEachPool([&](auto pool) {
    const PoolRange range = RangeOf(LayoutOf(graph, pool).island(island));
    ForChunks(arena, range.unit_begin, range.unit_end, kGatherPairs, [&](int begin, int end, int) {
      if (stop.Cancelled()) return;
      if (!GatherUnits(gatherer, graph, pool, begin, end, stop)) {
        representable.store(false, std::memory_order_relaxed);
      }
    });
  });
  return representable.load(std::memory_order_relaxed);
}

}  // namespace sap
