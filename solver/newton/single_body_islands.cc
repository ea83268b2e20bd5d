#include "solver/newton/single_body_islands.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "solver/newton/accuracy_certificate.h"
#include "solver/newton/line_search.h"
#include "solver/newton/newton_control.h"

namespace sap {

namespace {

constexpr SixDofs kDofs;
constexpr int kLanes = kMaxSingleBodyIslands;
constexpr int kMaxContacts = 16;

using Vector6 = std::array<Lanes4, kDofs>;
using Matrix6 = std::array<Lanes4, kDofs * kDofs>;
using Vector3 = ContactVector<Lanes4>;
using Mask = decltype(Lanes4{} < Lanes4{});

Mask AllLanes() { return Lanes4{} == Lanes4{}; }

struct LoneContact {
  std::array<Lanes4, 3 * kDofs> J;
  ConeParameters<Lanes4> law;
  Vector3 v_c;              // J v
  Vector3 dv_c;             // J dv
  ConePoint<Lanes4> point;  // at v_c
  Lanes4 s_x, s_y;          // dual direction
};

// Copies arrays of the islands into lanes.
template <typename From, size_t size>
void Interleave(const std::array<From, kLanes>& from, std::array<Lanes4, size>* to) {
  for (size_t i = 0; i < size; ++i) {
    (*to)[i] = Lanes4{from[0][i], from[1][i], from[2][i], from[3][i]};
  }
}

// The lower triangle of H += J' G J.
void AddJtGJ(const std::array<Lanes4, 3 * kDofs>& J, const SymmetricMatrix3<Lanes4>& G,
             Matrix6* H) {
  for (int i = 0; i < kDofs; ++i) {
    const Lanes4& x = J[i];
    const Lanes4& y = J[kDofs + i];
    const Lanes4& n = J[2 * kDofs + i];
    const Lanes4 g_x = x * G.xx + y * G.xy + n * G.xn;
    const Lanes4 g_y = x * G.xy + y * G.yy + n * G.yn;
    const Lanes4 g_n = x * G.xn + y * G.yn + n * G.nn;
    for (int j = 0; j <= i; ++j) {
      (*H)[i * kDofs + j] += g_x * J[j] + g_y * J[kDofs + j] + g_n * J[2 * kDofs + j];
    }
  }
}

// L D L' in place, as FactorDense; false in lanes where a pivot is not a positive finite number.
Mask Factor(Matrix6* matrix) {
  Matrix6& A = *matrix;
  constexpr double kLargest = std::numeric_limits<double>::max();
  Mask positive = AllLanes();
  for (int i = 0; i < kDofs; ++i) {
    Lanes4 pivot = A[i * kDofs + i];
    for (int j = 0; j < i; ++j) {
      Lanes4 u = A[i * kDofs + j];
      for (int k = 0; k < j; ++k) u -= A[i * kDofs + k] * A[j * kDofs + k];
      A[i * kDofs + j] = u;  // L_ij d_j until the row is done
    }
    for (int j = 0; j < i; ++j) {
      const Lanes4 u = A[i * kDofs + j];
      A[i * kDofs + j] = u * A[j * kDofs + j];
      pivot -= u * A[i * kDofs + j];
    }
    positive &= (pivot > 0.0) & (pivot <= kLargest);
    const Lanes4 inverse = 1.0 / pivot;
    A[i * kDofs + i] = inverse < kLargest ? inverse : Lanes4{} + kLargest;
  }
  return positive;
}

void SolveUnitLower(const Matrix6& L, Vector6* x) {
  for (int i = 1; i < kDofs; ++i) {
    for (int k = 0; k < i; ++k) (*x)[i] -= L[i * kDofs + k] * (*x)[k];
  }
}

void SolveFactored(const Matrix6& L, Vector6* x) {
  SolveUnitLower(L, x);
  for (int i = kDofs - 1; i >= 0; --i) {
    (*x)[i] *= L[i * kDofs + i];
    for (int k = i + 1; k < kDofs; ++k) (*x)[i] -= L[k * kDofs + i] * (*x)[k];
  }
}

// What decides of one lane.
struct Lane {
  Lane(const IslandView& of, const SolverOptions& options, bool starts)
      : view(of),
        absolute_tolerance(AbsoluteTolerance(of, options)),
        guard(of, options),
        active(starts) {}

  const IslandView view;
  const double absolute_tolerance;
  SweepGuard guard;
  std::optional<StallDetector> stall;
  IslandNorms norms;
  IslandReport report;
  bool active;

  void Finish(SolveStatus status) {
    report.status = status;
    active = false;
  }
};

class SingleBodyIslands {
 public:
  SingleBodyIslands(const ConstraintGraph& graph, const SapModel& model,
                    std::span<const int> islands, const SolverOptions& options,
                    const StopToken& stop, SapData* data)
      : options_(options), stop_(stop), data_(*data), count_(static_cast<int>(islands.size())) {
    for (int lane = 0; lane < kLanes; ++lane) {
      // A lane without an island repeats the last one.
      const int island = islands[std::min(lane, count_ - 1)];
      const IslandView view{graph, model, island, nullptr};
      lanes_[lane].emplace(view, options, lane < count_);
    }
    Gather();
  }

  void Run(std::span<IslandReport> reports) {
    Evaluate();
    ForActive([&](Lane& lane, int) {
      if (!lane.norms.finite || !lane.view.constants().representable) {
        lane.Finish(SolveStatus::kNumericalFailure);
      } else {
        lane.stall.emplace(lane.norms);
      }
    });
    for (LoneContact& contact : Contacts()) {
      DualDirectionOf(contact.law, contact.point.gamma, &contact.s_x, &contact.s_y);
    }
    while (AnyGoesOn()) Iterate();
    Certify();
    Scatter(reports);
  }

 private:
  std::span<LoneContact> Contacts() {
    return {contacts_.data(), static_cast<size_t>(num_contacts_)};
  }

  template <typename Body>
  void ForActive(Body&& body) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (lanes_[lane]->active) body(*lanes_[lane], lane);
    }
  }

  PoolRange RangeOf(int lane) const { return lanes_[lane]->view.range(kFrictionPool); }

  void Gather() {
    const ConstraintGraph& graph = lanes_[0]->view.graph;
    const SapModel& model = lanes_[0]->view.model;
    const auto& [laws, jacobians] = model.pools[kFrictionPool];
    std::array<const double*, kLanes> A, L, D, v_star, v, J;
    for (int lane = 0; lane < kLanes; ++lane) {
      const int slot = lanes_[lane]->view.range().slot_begin;
      const int start = graph.velocity_start()[slot];
      A[lane] = model.A(graph, slot);
      L[lane] = model.A_factor(graph, slot);
      D[lane] = model.D().data() + start;
      v_star[lane] = model.v_star().data() + start;
      v[lane] = data_.v.data() + start;
      const PoolRange range = RangeOf(lane);
      num_contacts_ = range.end - range.begin;
      const ContactPair& pair = lanes_[lane]->view.layout(kFrictionPool).pairs()[range.unit_begin];
      J[lane] = jacobians.of(pair, range.begin);
    }
    Interleave(A, &A_);
    Interleave(L, &L_);
    Interleave(D, &D_);
    Interleave(v_star, &v_star_);
    Interleave(v, &v_);
    for (int c = 0; c < num_contacts_; ++c) {
      LoneContact& contact = contacts_[c];
      Interleave(J, &contact.J);
      for (int lane = 0; lane < kLanes; ++lane) {
        SetLane(laws.At(RangeOf(lane).begin + c, double{}), lane, &contact.law);
        J[lane] += 3 * kDofs;
      }
    }
  }

  // Everything that follows from v, in all lanes: where v has not changed, the same bits.
  void Evaluate() {
    Lanes4 cost_of_contacts{};
    impulse_ = {};
    for (LoneContact& contact : Contacts()) {
      contact.v_c = Vector3();
      AddJv(contact.J.data(), kDofs, v_.data(), &contact.v_c);
      contact.point = ProjectOnCone(contact.law, contact.v_c);
      cost_of_contacts += ConeCost(contact.law, contact.point.gamma);
      AddJtGamma(contact.J.data(), kDofs, contact.point.gamma, impulse_.data());
    }
    ComputeGradient();
    Vector6 momentum;
    MultiplySymmetric(A_.data(), kDofs, v_.data(), momentum.data());
    Lanes4 gradient2{}, momentum2{}, impulse2{}, cost{};
    for (int i = 0; i < kDofs; ++i) {
      const Lanes4 gradient = D_[i] * gradient_[i];
      const Lanes4 of_momentum = D_[i] * momentum[i];
      const Lanes4 of_impulse = D_[i] * impulse_[i];
      gradient2 += gradient * gradient;
      momentum2 += of_momentum * of_momentum;
      impulse2 += of_impulse * of_impulse;
      cost += 0.5 * (v_[i] - v_star_[i]) * change_[i];
    }
    cost += cost_of_contacts;  // no term is negative
    const Lanes4 gradient_norm = Sqrt(gradient2);
    const Lanes4 momentum_norm = Sqrt(momentum2);
    const Lanes4 impulse_norm = Sqrt(impulse2);
    for (int lane = 0; lane < kLanes; ++lane) {
      IslandNorms& norms = lanes_[lane]->norms;
      norms = {gradient_norm[lane], momentum_norm[lane], impulse_norm[lane], cost[lane],
               cost[lane]};
      norms.finite = std::isfinite(norms.gradient + norms.momentum + norms.impulse + norms.cost);
    }
  }

  // From v and the impulse.
  void ComputeGradient() {
    Vector6 difference;
    for (int i = 0; i < kDofs; ++i) difference[i] = v_[i] - v_star_[i];
    MultiplySymmetric(A_.data(), kDofs, difference.data(), change_.data());
    for (int i = 0; i < kDofs; ++i) gradient_[i] = change_[i] - impulse_[i];
  }

  bool Converged(const Lane& lane) const {
    return MeetsTolerance(lane.norms, lane.absolute_tolerance, options_);
  }

  bool AnyGoesOn() {
    const bool stopped = stop_.Requested();
    bool any = false;
    ForActive([&](Lane& lane, int) {
      if (Converged(lane)) {
        lane.Finish(SolveStatus::kConverged);
      } else if (lane.report.iterations >= options_.max_iterations) {
        lane.Finish(SolveStatus::kIterationLimit);
      } else if (stopped) {
        lane.Finish(stop_.Reason() == StopReason::kCancelled ? SolveStatus::kCancelled
                                                             : SolveStatus::kDeadline);
      } else {
        any = true;
      }
    });
    return any;
  }

  void Iterate() {
    const Mask positive = ComputeStep(/*dual=*/true);
    std::array<bool, kLanes> wanted{};
    ForActive([&](Lane& lane, int number) {
      ++lane.report.factorizations;
      if (positive[number] == 0) {
        lane.Finish(SolveStatus::kNumericalFailure);
      } else {
        ++lane.report.iterations;
        wanted[number] = true;
      }
    });
    const Lanes4 alpha = SearchAlongStep(wanted, /*beyond_roundoff=*/false);
    std::array<bool, kLanes> sweeps{};
    bool any_swept = false;
    bool any_evaluated = false;
    Mask evaluated = AllLanes();
    ForActive([&](Lane& lane, int number) {
      if (alpha[number] == 0) {
        lane.Finish(SolveStatus::kStalledAtRoundoff);
        return;
      }
      sweeps[number] = lane.guard.ShouldSweep(RelativeGradient(lane.norms), alpha[number]);
      // A step of length one may have arrived. Any other has met a kink on its way and has not.
      if (sweeps[number] && alpha[number] != 1) {
        evaluated[number] = 0;
        any_swept = true;
      } else {
        any_evaluated = true;
      }
    });
    Advance(alpha);
    if (any_evaluated) {
      EvaluateOrGoBack(evaluated & (alpha != 0.0));
      ForActive([&](Lane& lane, int number) {
        if (evaluated[number] == 0) return;
        sweeps[number] = sweeps[number] && !Converged(lane);
        any_swept |= sweeps[number];
      });
    }
    if (any_swept) {
      Sweep(sweeps, evaluated);
      EvaluateOrGoBack(alpha != 0.0);
    }
    ForActive([&](Lane& lane, int) {
      if (!Converged(lane) && lane.stall->Stalled(lane.norms)) {
        lane.Finish(SolveStatus::kStalledAtRoundoff);
      }
    });
  }

  // Lanes in which the step can be used. H with dual directions, or that of the cost itself.
  Mask ComputeStep(bool dual) {
    Matrix6 H = A_;
    for (LoneContact& contact : Contacts()) {
      const Lanes4& s_x = dual ? contact.s_x : contact.point.t_hat_x;
      const Lanes4& s_y = dual ? contact.s_y : contact.point.t_hat_y;
      AddJtGJ(contact.J, ConeHessian(contact.law, contact.point, s_x, s_y), &H);
    }
    const Mask positive = Factor(&H);
    for (int i = 0; i < kDofs; ++i) step_[i] = -gradient_[i];
    SolveFactored(H, &step_);
    return positive;
  }

  // Step lengths; 0 in lanes that are not wanted or do not descend (by more than rounding errors
  // explain).
  Lanes4 SearchAlongStep(const std::array<bool, kLanes>& wanted, bool beyond_roundoff) {
    Vector6 momentum;
    MultiplySymmetric(A_.data(), kDofs, step_.data(), momentum.data());
    Lanes4 f_zero{}, sizes{}, first{}, second{};
    for (int i = 0; i < kDofs; ++i) {
      f_zero += gradient_[i] * step_[i];
      sizes += Abs(step_[i]) * (Abs(change_[i]) + Abs(impulse_[i]));
      first += step_[i] * change_[i];
      second += step_[i] * momentum[i];
    }
    for (LoneContact& contact : Contacts()) {
      contact.dv_c = Vector3();
      AddJv(contact.J.data(), kDofs, step_.data(), &contact.dv_c);
    }
    std::array<std::optional<SlopeRootSearch>, kLanes> searches;
    Lanes4 alpha{};
    for (int lane = 0; lane < kLanes; ++lane) {
      const double roundoff = RoundoffOf(sizes[lane]);
      if (!wanted[lane] || !(f_zero[lane] < (beyond_roundoff ? -roundoff : 0.0))) continue;
      const double start = f_zero[lane];  // clang cannot refer to a lane
      searches[lane].emplace(start, kAcceleratedSearchTolerance, roundoff);
      alpha[lane] = searches[lane]->alpha();
    }
    for (bool any = true; any;) {
      any = false;
      Lanes4 f = first + alpha * second;
      Lanes4 df = second;
      for (const LoneContact& contact : Contacts()) {
        const Vector3 v_c{contact.v_c.x + alpha * contact.dv_c.x,
                          contact.v_c.y + alpha * contact.dv_c.y,
                          contact.v_c.n + alpha * contact.dv_c.n};
        const auto slope =
            ConeAlongLine(contact.law, ProjectOnCone(contact.law, v_c), contact.dv_c);
        f += slope.first;
        df += slope.second;
      }
      for (int lane = 0; lane < kLanes; ++lane) {
        if (!searches[lane]) continue;
        const bool ended = searches[lane]->EndsWith({f[lane], df[lane]});
        alpha[lane] = searches[lane]->alpha();
        if (ended) searches[lane].reset();
        any |= !ended;
      }
    }
    return alpha;
  }

  // Moves v where alpha is not 0; leaves v_c + alpha J dv in dv_c.
  void Advance(const Lanes4& alpha) {
    for (LoneContact& contact : Contacts()) {
      UpdateDualDirection(contact.law, contact.point, contact.dv_c, &contact.s_x, &contact.s_y);
      contact.dv_c =
          Vector3{contact.v_c.x + alpha * contact.dv_c.x, contact.v_c.y + alpha * contact.dv_c.y,
                  contact.v_c.n + alpha * contact.dv_c.n};
    }
    v_before_ = v_;
    Move(alpha);
  }

  void Move(const Lanes4& alpha) {
    for (int i = 0; i < kDofs; ++i) v_[i] = alpha != 0.0 ? v_[i] + alpha * step_[i] : v_[i];
  }

  // Lanes that have moved out of the range of doubles go back to where they were.
  void EvaluateOrGoBack(const Mask& moved) {
    Evaluate();
    bool any = false;
    ForActive([&](Lane& lane, int number) {
      if (lane.norms.finite || moved[number] == 0) return;
      for (int i = 0; i < kDofs; ++i) v_[i][number] = v_before_[i][number];
      lane.Finish(SolveStatus::kNumericalFailure);
      any = true;
    });
    if (any) Evaluate();
  }

  // An exact Newton step with a search, from what Advance left where nothing was evaluated since.
  void Sweep(const std::array<bool, kLanes>& wanted, const Mask& evaluated) {
    impulse_ = {};
    for (LoneContact& contact : Contacts()) {
      contact.v_c = Vector3{evaluated ? contact.v_c.x : contact.dv_c.x,
                            evaluated ? contact.v_c.y : contact.dv_c.y,
                            evaluated ? contact.v_c.n : contact.dv_c.n};
      contact.point = ProjectOnCone(contact.law, contact.v_c);
      AddJtGamma(contact.J.data(), kDofs, contact.point.gamma, impulse_.data());
    }
    ComputeGradient();
    const Mask positive = ComputeStep(/*dual=*/false);
    std::array<bool, kLanes> searched = wanted;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!wanted[lane]) continue;
      ++lanes_[lane]->report.factorizations;
      searched[lane] = positive[lane] != 0;
    }
    Move(SearchAlongStep(searched, /*beyond_roundoff=*/true));
  }

  // The bound of accuracy_certificate.h, term by term.
  void Certify() {
    constexpr int kVelocityTerms = kDofs + kVelocitySteps;
    const double sum_steps = (4 + 3 * num_contacts_) * kUnitRoundoff;
    Vector6 error{};
    for (int k = 0; k < kDofs; ++k) {
      const Lanes4 size = (kDofs + 4) * kUnitRoundoff * (Abs(v_[k]) + Abs(v_star_[k]));
      for (int i = 0; i < kDofs; ++i) error[i] += Abs(A_[k * kDofs + i]) * size;
    }
    for (const LoneContact& contact : Contacts()) {
      Vector3 size{Abs(contact.law.v_hat_x), Abs(contact.law.v_hat_y), Abs(contact.law.v_hat_n)};
      AddAbsoluteJv(contact.J.data(), kDofs, v_.data(), &size);
      constexpr double kSteps = kVelocityTerms * kUnitRoundoff;
      size = Vector3{kSteps * size.x, kSteps * size.y, kSteps * size.n};
      AddAbsoluteJtGamma(contact.J.data(), kDofs,
                         ConeImpulseError(contact.law, contact.point.gamma, size), sum_steps,
                         contact.point.gamma, error.data());
    }
    Vector6 sum{};
    Lanes4 weighted_trace{};
    for (int k = 0; k < kDofs; ++k) {
      Vector6 column{};
      column[k] += 1.0;
      Lanes4 inverse_diagonal{};
      for (int i = k; i < kDofs; ++i) {
        for (int j = k; j < i; ++j) column[i] -= L_[i * kDofs + j] * column[j];
        const Lanes4 size = Abs(column[i]);
        sum[i] += size * error[k];
        inverse_diagonal += size * size * L_[i * kDofs + i];
      }
      weighted_trace += inverse_diagonal * A_[k * kDofs + k];
    }
    Vector6 x = gradient_;
    SolveUnitLower(L_, &x);
    Lanes4 gradient2{}, error2{};
    for (int i = 0; i < kDofs; ++i) {
      gradient2 += x[i] * x[i] * L_[i * kDofs + i];
      error2 += sum[i] * sum[i] * L_[i * kDofs + i];
    }
    const Lanes4 norm = Sqrt(gradient2) + Sqrt(error2);
    const Lanes4 rho = (3.0 * kDofs + 1) * kDofs * kUnitRoundoff * weighted_trace;
    const Lanes4 bound = 0.5 * norm * norm / (1.0 - rho);
    for (int lane = 0; lane < kLanes; ++lane) {
      const bool known = rho[lane] < 1 && std::isfinite(bound[lane]);
      Lane& of = *lanes_[lane];
      const double unit = of.view.constants().mass_unit;
      of.report.optimality_gap_bound =
          known ? bound[lane] * unit : std::numeric_limits<double>::infinity();
      of.report.momentum_residual = RelativeGradient(of.norms);
      of.report.cost = of.norms.cost * unit;
      // A cancellation cuts off anything that it meets, so that none of it means anything.
      if (stop_.Cancelled()) of.report.status = SolveStatus::kCancelled;
    }
  }

  void Scatter(std::span<IslandReport> reports) {
    auto& state = data_.pools[kFrictionPool];
    for (int lane = 0; lane < count_; ++lane) {
      const IslandView& view = lanes_[lane]->view;
      const int start = view.range().velocity_begin;
      for (int i = 0; i < kDofs; ++i) {
        data_.v[start + i] = v_[i][lane];
        data_.momentum_change[start + i] = change_[i][lane];
        data_.gradient[start + i] = gradient_[i][lane];
      }
      const int first = RangeOf(lane).begin;
      for (int c = 0; c < num_contacts_; ++c) {
        state.v_c.Set(first + c, LaneOf(contacts_[c].v_c, lane));
        state.gamma.Set(first + c, LaneOf(contacts_[c].point.gamma, lane));
      }
      reports[view.island] = lanes_[lane]->report;
    }
  }

  const SolverOptions& options_;
  const StopToken& stop_;
  SapData& data_;
  const int count_;
  int num_contacts_{0};
  std::array<std::optional<Lane>, kLanes> lanes_;
  Matrix6 A_, L_;
  Vector6 D_, v_star_;
  Vector6 v_, v_before_;
  Vector6 change_;    // A (v - v*)
  Vector6 impulse_;   // J' gamma
  Vector6 gradient_;  // change - impulse
  Vector6 step_;      // dv
  std::array<LoneContact, kMaxContacts> contacts_;
};

}  // namespace

bool IsSingleBodyIsland(const IslandRange& range, const SolverOptions& options) {
  return options.newton == NewtonMethod::kAccelerated && range.num_trees() == 1 &&
         range.num_velocities() == kDofs && range.kinds == 1U << kFrictionPool &&
         range.num_contacts <= kMaxContacts;
}

void SolveSingleBodyIslands(const ConstraintGraph& graph, const SapModel& model,
                            std::span<const int> islands, const SolverOptions& options,
                            const StopToken& stop, SapData* data, std::span<IslandReport> reports) {
  SingleBodyIslands(graph, model, islands, options, stop, data).Run(reports);
}

}  // namespace sap
