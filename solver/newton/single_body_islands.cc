#include "solver/newton/single_body_islands.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "solver/newton/dual_norm.h"
#include "solver/newton/interior_point.h"
#include "solver/newton/line_search.h"
#include "solver/newton/newton_control.h"
#include "solver/newton/rest_certificate.h"

namespace sap {

namespace {

constexpr SixDofs kDofs;
constexpr int kLanes = kMaxSingleBodyIslands;

using Vector6 = std::array<Lanes4, kDofs>;
using Matrix6 = std::array<Lanes4, kDofs * kDofs>;
using Vector3 = ContactVector<Lanes4>;
using Mask = decltype(Lanes4{} < Lanes4{});

Mask AllLanes() { return Lanes4{} == Lanes4{}; }

struct ContactInLanes {
  Vector3 v_c;              // J v
  Vector3 dv_c;             // J dv
  ConePoint<Lanes4> point;  // at v_c
  Lanes4 s_x, s_y;          // dual direction
};

// The lower triangle of H += J' G J.
void AddJtGJ(const std::array<Lanes4, 3 * kDofs>& J, const SymmetricMatrix3<Lanes4>& G,
             Matrix6* H) {
  for (int i = 0; i < kDofs; ++i) {
    const Lanes4& x = J[i];
    const Lanes4& y = J[kDofs + i];
    const Lanes4& n = J[2 * kDofs + i];
    const Lanes4 g_x = MultiplyAdd(n, G.xn, MultiplyAdd(y, G.xy, x * G.xx));
    const Lanes4 g_y = MultiplyAdd(n, G.yn, MultiplyAdd(y, G.yy, x * G.xy));
    const Lanes4 g_n = MultiplyAdd(n, G.nn, MultiplyAdd(y, G.yn, x * G.xn));
    for (int j = 0; j <= i; ++j) {
      Lanes4& sum = (*H)[i * kDofs + j];
      sum = MultiplyAdd(g_x, J[j], sum);
      sum = MultiplyAdd(g_y, J[kDofs + j], sum);
      sum = MultiplyAdd(g_n, J[2 * kDofs + j], sum);
    }
  }
}

struct Lane {
  Lane(const IslandView& of, const SolverOptions& options) : view(of), control(of, options) {}

  const IslandView view;
  NewtonControl control;
};

class SingleBodyIslands {
 public:
  SingleBodyIslands(const ConstraintGraph& graph, const SapModel& model, const SingleBodies& bodies,
                    std::span<const int> islands, const SolverOptions& options,
                    const StopToken& stop, SapData* data)
      : bodies_(bodies),
        options_(options),
        stop_(stop),
        data_(*data),
        count_(static_cast<int>(islands.size())) {
    for (int lane = 0; lane < kLanes; ++lane) {
      // A lane without an island repeats the last one.
      const int island = islands[std::min(lane, count_ - 1)];
      const IslandView view{graph, model, island, nullptr};
      lanes_[lane].emplace(view, options);
    }
    ReadGuess();
  }

  std::bitset<kLanes> Run(std::span<IslandReport> reports) {
    Evaluate();
    ForActive([](NewtonControl& island, int) { island.Starts(); });
    ForContacts([&](const SingleBodies::Contact& given, ContactInLanes& contact) {
      DualDirectionOf(given.law, contact.point.gamma, &contact.s_x, &contact.s_y);
    });
    while (AnyGoesOn()) Iterate();
    Certify();
    Scatter(reports);
    return unsolved_;
  }

 private:
  // Calls body(constants, contact) for the contacts.
  template <typename Body>
  void ForContacts(Body&& body) {
    for (int c = 0; c < bodies_.num_contacts; ++c) body(bodies_.contacts[c], contacts_[c]);
  }

  // Calls body(island, lane) for the islands that go on.
  template <typename Body>
  void ForActive(Body&& body) {
    for (int lane = 0; lane < count_; ++lane) {
      NewtonControl& island = lanes_[lane]->control;
      if (!island.ended()) body(island, lane);
    }
  }

  PoolRange RangeOf(int lane) const { return lanes_[lane]->view.range(kFrictionPool); }

  void ReadGuess() { Read(data_.v, &v_); }

  // Reads velocities in the order of the graph.
  void Read(const std::vector<double>& velocities, Vector6* to) const {
    std::array<const double*, kLanes> from;
    for (int lane = 0; lane < kLanes; ++lane) {
      from[lane] = velocities.data() + lanes_[lane]->view.range().velocity_begin;
    }
    Interleave(from, to);
  }

  // Everything that follows from v, in all lanes: where v has not changed, the same bits.
  void Evaluate() {
    Lanes4 cost_of_contacts{};
    impulse_ = {};
    ForContacts([&](const SingleBodies::Contact& given, ContactInLanes& contact) {
      contact.v_c = Vector3();
      AddJv(given.J.data(), kDofs, v_.data(), &contact.v_c);
      contact.point = ProjectOnCone(given.law, contact.v_c);
      cost_of_contacts += ConeCost(given.law, contact.point.gamma);
      AddJtGamma(given.J.data(), kDofs, contact.point.gamma, impulse_.data());
    });
    ComputeGradient();
    Vector6 momentum;
    MultiplySymmetric(bodies_.A.data(), kDofs, v_.data(), momentum.data());
    Lanes4 gradient2{}, momentum2{}, impulse2{}, cost{};
    for (int i = 0; i < kDofs; ++i) {
      const Lanes4 gradient = bodies_.D[i] * gradient_[i];
      const Lanes4 of_momentum = bodies_.D[i] * momentum[i];
      const Lanes4 of_impulse = bodies_.D[i] * impulse_[i];
      gradient2 += gradient * gradient;
      momentum2 += of_momentum * of_momentum;
      impulse2 += of_impulse * of_impulse;
      cost += 0.5 * (v_[i] - bodies_.v_star[i]) * change_[i];
    }
    cost_ = cost + cost_of_contacts;  // no term is negative
    const Lanes4 gradient_norm = Sqrt(gradient2);
    const Lanes4 momentum_norm = Sqrt(momentum2);
    const Lanes4 impulse_norm = Sqrt(impulse2);
    for (int lane = 0; lane < kLanes; ++lane) {
      IslandNorms& norms = lanes_[lane]->control.norms;
      norms = {gradient_norm[lane], momentum_norm[lane], impulse_norm[lane], cost_[lane],
               cost_[lane]};
      norms.finite = std::isfinite(norms.gradient + norms.momentum + norms.impulse + norms.cost);
    }
  }

  // From v and the impulse.
  void ComputeGradient() {
    Vector6 difference;
    for (int i = 0; i < kDofs; ++i) difference[i] = v_[i] - bodies_.v_star[i];
    MultiplySymmetric(bodies_.A.data(), kDofs, difference.data(), change_.data());
    for (int i = 0; i < kDofs; ++i) gradient_[i] = change_[i] - impulse_[i];
  }

  bool AnyGoesOn() {
    std::optional<StopReason> stop;
    if (stop_.Requested()) stop = stop_.Reason();
    bool any = false;
    ForActive([&](NewtonControl& island, int lane) {
      if (!island.GoesOn(stop)) return;
      if (MayHandOverAfter(island.report.iterations, options_, lanes_[lane]->view,
                           [&] { return LeastROverW(lane); })) {
        unsolved_[lane] = true;
        island.End(SolveStatus::kIterationLimit);
        return;
      }
      any = true;
    });
    return any;
  }

  double LeastROverW(int lane) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const IslandView& view = lanes_[lane]->view;
    double least = kInfinity;
    for (int c = 0; c < bodies_.num_contacts; ++c) {
      const auto& law = bodies_.contacts[c].law;
      const double w = view.model.w[view.layout(kFrictionPool).order()[RangeOf(lane).begin + c]];
      const double R_t = law.mu[lane] > 0 ? law.R_t[lane] : kInfinity;
      const double R_n = law.R_n[lane];
      if (w > 0) least = std::min(least, std::min(R_n, R_t) / w);
    }
    return least;
  }

  void Iterate() {
    const Mask positive = ComputeStep(/*dual=*/true);
    std::array<bool, kLanes> wanted{};
    ForActive([&](NewtonControl& island, int lane) {
      ++island.report.factorizations;
      wanted[lane] = positive[lane] != 0;
      if (wanted[lane]) {
        ++island.report.iterations;
      } else {
        unsolved_[lane] = true;
        island.End(SolveStatus::kNumericalFailure);
      }
    });
    const Lanes4 alpha = SearchAlongStep(wanted, /*beyond_roundoff=*/false);
    std::array<bool, kLanes> sweeps{};
    bool any_swept = false;
    bool any_evaluated = false;
    Mask evaluated = AllLanes();
    ForActive([&](NewtonControl& island, int lane) {
      if (alpha[lane] == 0) {
        island.End(SolveStatus::kStalledAtRoundoff);
        return;
      }
      sweeps[lane] = island.ShouldSweep(alpha[lane]);
      // A step of length one may have arrived. Any other has met a kink on its way and has not.
      if (sweeps[lane] && alpha[lane] != 1) {
        evaluated[lane] = 0;
        any_swept = true;
      } else {
        any_evaluated = true;
      }
    });
    Advance(alpha);
    if (any_evaluated) {
      EvaluateOrGoBack(evaluated & (alpha != 0.0));
      ForActive([&](NewtonControl& island, int lane) {
        if (evaluated[lane] == 0) return;
        sweeps[lane] = sweeps[lane] && !island.Converged();
        any_swept |= sweeps[lane];
      });
    }
    if (any_swept) {
      Sweep(sweeps, evaluated);
      EvaluateOrGoBack(alpha != 0.0);
    }
    ForActive([](NewtonControl& island, int) { island.Stalls(); });
  }

  // Lanes in which the step can be used. H with dual directions, or that of the cost itself.
  Mask ComputeStep(bool dual) {
    Matrix6 H = bodies_.A;
    ForContacts([&](const SingleBodies::Contact& given, ContactInLanes& contact) {
      const Lanes4& s_x = dual ? contact.s_x : contact.point.t_hat_x;
      const Lanes4& s_y = dual ? contact.s_y : contact.point.t_hat_y;
      AddJtGJ(given.J, ConeHessian(given.law, contact.point, s_x, s_y), &H);
    });
    const Mask positive = FactorDense(H.data(), kDofs);
    for (int i = 0; i < kDofs; ++i) step_[i] = -gradient_[i];
    SolveDense(H.data(), kDofs, step_.data());
    return positive;
  }

  // Step lengths; 0 in lanes that are not wanted or do not descend (by more than rounding errors
  // explain).
  Lanes4 SearchAlongStep(const std::array<bool, kLanes>& wanted, bool beyond_roundoff) {
    Vector6 momentum;
    MultiplySymmetric(bodies_.A.data(), kDofs, step_.data(), momentum.data());
    Lanes4 f_zero{}, sizes{}, first{}, second{};
    for (int i = 0; i < kDofs; ++i) {
      f_zero += gradient_[i] * step_[i];
      sizes += Abs(step_[i]) * (Abs(change_[i]) + Abs(impulse_[i]));
      first += step_[i] * change_[i];
      second += step_[i] * momentum[i];
    }
    ForContacts([&](const SingleBodies::Contact& given, ContactInLanes& contact) {
      contact.dv_c = Vector3();
      AddJv(given.J.data(), kDofs, step_.data(), &contact.dv_c);
    });
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
      ForContacts([&](const SingleBodies::Contact& given, const ContactInLanes& contact) {
        const Vector3 v_c{MultiplyAdd(alpha, contact.dv_c.x, contact.v_c.x),
                          MultiplyAdd(alpha, contact.dv_c.y, contact.v_c.y),
                          MultiplyAdd(alpha, contact.dv_c.n, contact.v_c.n)};
        const auto slope = ConeAlongLine(given.law, ProjectOnCone(given.law, v_c), contact.dv_c);
        f += slope.first;
        df += slope.second;
      });
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
    ForContacts([&](const SingleBodies::Contact& given, ContactInLanes& contact) {
      UpdateDualDirection(given.law, contact.point, contact.dv_c, &contact.s_x, &contact.s_y);
      contact.dv_c = Vector3{MultiplyAdd(alpha, contact.dv_c.x, contact.v_c.x),
                             MultiplyAdd(alpha, contact.dv_c.y, contact.v_c.y),
                             MultiplyAdd(alpha, contact.dv_c.n, contact.v_c.n)};
    });
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
    ForActive([&](NewtonControl& island, int lane) {
      if (island.norms.finite || moved[lane] == 0) return;
      for (int i = 0; i < kDofs; ++i) v_[i][lane] = v_before_[i][lane];
      island.End(SolveStatus::kNumericalFailure);
      any = true;
    });
    if (any) Evaluate();
  }

  // An exact Newton step with a search, from what Advance left where nothing was evaluated since.
  void Sweep(const std::array<bool, kLanes>& wanted, const Mask& evaluated) {
    impulse_ = {};
    ForContacts([&](const SingleBodies::Contact& given, ContactInLanes& contact) {
      contact.v_c = Vector3{evaluated ? contact.v_c.x : contact.dv_c.x,
                            evaluated ? contact.v_c.y : contact.dv_c.y,
                            evaluated ? contact.v_c.n : contact.dv_c.n};
      contact.point = ProjectOnCone(given.law, contact.v_c);
      AddJtGamma(given.J.data(), kDofs, contact.point.gamma, impulse_.data());
    });
    ComputeGradient();
    const Mask positive = ComputeStep(/*dual=*/false);
    std::array<bool, kLanes> searched = wanted;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!wanted[lane]) continue;
      ++lanes_[lane]->control.report.factorizations;
      searched[lane] = positive[lane] != 0;
    }
    Move(SearchAlongStep(searched, /*beyond_roundoff=*/true));
  }

  // The bounds of accuracy_certificate.h and, if asked for, of rest_certificate.h.
  void Certify() {
    Vector6 inverse_diagonal;
    const auto sums = SumCertificate(options_.rest ? inverse_diagonal.data() : nullptr);
    const Lanes4 bound = GapBound(sums, cost_, kDofs + bodies_.num_contacts);
    if (options_.rest) CertifyRest(Sqrt(sums.error2), inverse_diagonal.data());
    for (int lane = 0; lane < kLanes; ++lane) {
      auto& [view, island] = *lanes_[lane];
      const bool known = std::isfinite(bound[lane]) && view.constants().representable;
      island.Certify(known ? bound[lane] : std::numeric_limits<double>::infinity(),
                     stop_.Cancelled());
    }
  }

  void CertifyRest(const Lanes4& gradient_error, Lanes4* inverse_diagonal) {
    const FactoredTree<Lanes4, SixDofs> tree{bodies_.A.data(), bodies_.A_factor.data(), kDofs};
    const double horizon = options_.rest->horizon;
    const RestConstants& rest = lanes_[0]->view.model.rest();
    Vector6 v_0, difference, change, momentum;
    Read(rest.v_0, &v_0);
    for (int i = 0; i < kDofs; ++i) difference[i] = v_[i] - v_0[i];
    MultiplySymmetric(bodies_.A.data(), kDofs, difference.data(), change.data());
    MultiplySymmetric(bodies_.A.data(), kDofs, v_.data(), momentum.data());
    Vector6 scratch;
    RestSums<Lanes4> sums;
    AddRest(tree, bodies_.D.data(), v_.data(), v_0.data(), change.data(), gradient_.data(),
            inverse_diagonal, scratch.data(), &sums);
    const Lanes4 reach = RestReach(sums, gradient_error, horizon, rest.time_step, kDofs);
    const Lanes4 of_body =
        DriftOfBody(bodies_.A.data(), kDofs, v_.data(), momentum.data(), horizon, reach);
    const Lanes4 of_dofs = DriftOfDofs(kDofs, v_.data(), inverse_diagonal, horizon, reach);
    for (int lane = 0; lane < kLanes; ++lane) {
      auto& [view, island] = *lanes_[lane];
      const bool is_body = view.model.IsBody(view.graph, view.range().slot_begin);
      const double drift = is_body ? of_body[lane] : of_dofs[lane];
      const bool known = std::isfinite(reach[lane]) && std::isfinite(drift) &&
                         view.constants().representable &&
                         island.report.status != SolveStatus::kNumericalFailure;
      island.report.rest_drift = known ? drift : std::numeric_limits<double>::infinity();
    }
  }

  CertificateSums<Lanes4> SumCertificate(Lanes4* inverse_diagonal) const {
    constexpr double kSteps = (kDofs + kVelocitySteps) * kUnitRoundoff;
    const double sum_steps = (4 + 3 * bodies_.num_contacts) * kUnitRoundoff;
    const FactoredTree<Lanes4, SixDofs> tree{bodies_.A.data(), bodies_.A_factor.data(), kDofs};
    CertificateSums<Lanes4> sums;
    Vector6 error;
    sums.cost_error = MomentumErrors(tree, v_.data(), bodies_.v_star.data(), error.data());
    for (int c = 0; c < bodies_.num_contacts; ++c) {
      const SingleBodies::Contact& given = bodies_.contacts[c];
      const Vector3& gamma = contacts_[c].point.gamma;
      Vector3 size = given.target_size;
      AddAbsoluteJv(given.J.data(), kDofs, v_.data(), &size);
      size = Vector3{kSteps * size.x, kSteps * size.y, kSteps * size.n};
      const Vector3 impulse_error = ConeImpulseError(given.law, gamma, size);
      sums.cost_error += CostError(gamma, impulse_error, size);
      AddAbsoluteJtGamma(given.J.data(), kDofs, impulse_error, sum_steps, gamma, error.data());
    }
    std::array<Lanes4, 3 * kDofs> scratch;
    AddDualNorms(tree, gradient_.data(), error.data(), stop_, scratch.data(), &sums,
                 inverse_diagonal);
    return sums;
  }

  void Scatter(std::span<IslandReport> reports) {
    auto& state = data_.pools[kFrictionPool];
    for (int lane = 0; lane < count_; ++lane) {
      if (unsolved_[lane]) continue;
      const IslandView& view = lanes_[lane]->view;
      const int start = view.range().velocity_begin;
      for (int i = 0; i < kDofs; ++i) {
        data_.v[start + i] = v_[i][lane];
        data_.momentum_change[start + i] = change_[i][lane];
        data_.gradient[start + i] = gradient_[i][lane];
      }
      const int first = RangeOf(lane).begin;
      for (int c = 0; c < bodies_.num_contacts; ++c) {
        state.v_c.Set(first + c, LaneOf(contacts_[c].v_c, lane));
        state.gamma.Set(first + c, LaneOf(contacts_[c].point.gamma, lane));
      }
      reports[view.island] = lanes_[lane]->control.report;
    }
  }

  const SingleBodies& bodies_;
  const SolverOptions& options_;
  const StopToken& stop_;
  SapData& data_;
  const int count_;
  std::bitset<kLanes> unsolved_;  // lanes that are left unsolved
  std::array<std::optional<Lane>, kLanes> lanes_;
  Vector6 v_, v_before_;
  Vector6 change_;    // A (v - v*)
  Vector6 impulse_;   // J' gamma
  Vector6 gradient_;  // change - impulse
  Lanes4 cost_;       // l(v)
  Vector6 step_;      // dv
  std::array<ContactInLanes, SingleBodies::kMaxContacts> contacts_;
};

}  // namespace

bool IsSingleBodyIsland(const IslandRange& range, const SolverOptions& options) {
  return options.newton == NewtonMethod::kAccelerated &&
         options.interior_point != InteriorPoint::kAlways && range.num_trees() == 1 &&
         range.num_velocities() == kDofs && range.kinds == 1U << kFrictionPool &&
         range.num_contacts <= SingleBodies::kMaxContacts;
}

std::bitset<kMaxSingleBodyIslands> SolveSingleBodyIslands(
    const ConstraintGraph& graph, const SapModel& model, const SingleBodies& bodies,
    std::span<const int> islands, const SolverOptions& options, const StopToken& stop,
    SapData* data, std::span<IslandReport> reports) {
  return SingleBodyIslands(graph, model, bodies, islands, options, stop, data).Run(reports);
}

}  // namespace sap
