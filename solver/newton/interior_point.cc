#include "solver/newton/interior_point.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "solver/newton/accuracy_certificate.h"
#include "solver/newton/crossover.h"
#include "solver/newton/impulse_guess.h"
#include "solver/newton/interior_start.h"
#include "solver/newton/interior_system.h"

namespace sap {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr int kMaxIterations = 60;
// With exact friction, where they need not end.
constexpr int kMaxExactIterations = 30;
// Share of the largest step that stays inside, and where the centering is weak.
constexpr double kStepShare = 0.99;
constexpr double kStepShareNear = 0.999;
constexpr double kWeakCentering = 1e-2;
constexpr double kLeastCentering = 1e-4;
// A further corrector is tried for steps shorter than this; products go into this range around
// their target, and it is kept where it lengthens the step.
constexpr double kLongStep = 0.9;
constexpr double kLongerBy = 0.3;
constexpr double kLeastProduct = 0.1, kLargestProduct = 10;
constexpr double kLeastGain = 0.05;
// A plain centering step is tried where momentum is balanced and complementarity stays above this
// share of itself: predictor and corrector can cycle.
constexpr double kCycling = 0.7;
constexpr double kBalanced = 1e-6;
constexpr double kCentering = 0.5;
// Where a cone holds steps below this twice running, impulses of the order of 1/R are called for:
// the start is made larger by so much, once.
constexpr double kHeldStep = 0.05;
constexpr int kLastRaise = 12;
constexpr double kFarFromOptimum = 1e-2;
// Crossover (interior_point.h).
constexpr double kCrossover = 1e-5;
// Another one is tried when the bound has come down to this share of itself.
constexpr double kLeastApproach = 0.5;

// Changes of the products of z and u that a solve is to make.
struct Predictor {
  template <int k>
  ConeVector<k> operator()(const InteriorCone<k>& c) const {
    ConeVector<k> d = ConeProduct(c.l(), c.l());
    for (double& component : d) component = -component;
    return d;
  }
  BoxBarrier::Products operator()(const InteriorRow& r) const {
    return {-r.row.u_l * r.row.slack_l, -r.row.u_h * r.row.slack_h};
  }
};
struct Corrector {
  double product;
  bool second_order;

  template <int k>
  ConeVector<k> operator()(const InteriorCone<k>& c) const {
    ConeVector<k> d = Predictor()(c);
    d[0] += product;
    return second_order ? PlusScaled(d, -1, ConeProduct(c.step.scaled_u, c.step.scaled_z)) : d;
  }
  BoxBarrier::Products operator()(const InteriorRow& r) const {
    BoxBarrier::Products d = Predictor()(r);
    d.l += product - (second_order ? r.step.u_l * r.step.g : 0);
    d.h += product + (second_order ? r.step.u_h * r.step.g : 0);
    return d;
  }
};
// Brings products at the end of a step into a range around their target.
struct FurtherCorrector {
  double product;
  double a;

  double Correction(double value) const {
    const double within =
        std::clamp(value, kLeastProduct * product, kLargestProduct * product) - value;
    return std::max(within, -kLargestProduct * product);
  }
  template <int k>
  ConeVector<k> operator()(const InteriorCone<k>& c) const {
    const ConeVector<k> w = ConeProduct(c.ScaledZ(a, c.step), c.ScaledU(a, c.step));
    const double tail = TailNorm(w);
    const double plus = Correction(w[0] + tail), minus = Correction(w[0] - tail);
    ConeVector<k> d;
    d[0] = 0.5 * (plus + minus);
    const double scale = tail > 0 ? 0.5 * (plus - minus) / tail : 0;
    for (int i = 1; i < k; ++i) d[i] = scale * w[i];
    return d;
  }
  BoxBarrier::Products operator()(const InteriorRow& r) const {
    const auto products = r.row.ProductsAfter(a, r.step);
    return {Correction(products.l), Correction(products.h)};
  }
};

// Whether the method solves islands like this one: not those with laws without a cone, nor those
// without inequalities.
bool HasInteriorPoint(const IslandView& view) {
  bool has = false, others = false;
  ForPoolsOf(view, [&](auto pool) {
    has |= HasInequalities(pool);
    others |= !HasInequalities(pool) && !IsQuadratic(pool);
  });
  return has && !others;
}

// Whether the cones of the island have the law of a round of exact friction.
bool IsInRounds(const IslandView& view) {
  bool is = false;
  ForPoolsOf(view, [&](auto pool) {
    if constexpr (IsCone(pool)) is |= view.model.pools[pool].laws.InRounds(view.range(pool).begin);
  });
  return is;
}

double LeastROverW(const IslandView& view) {
  double least = kInf;
  ForPoolsOf(view, [&](auto pool) {
    if constexpr (IsCone(pool)) {
      const PoolRange range = view.range(pool);
      for (int i = range.begin; i < range.end; ++i) {
        const auto& cone = ConeOf(view.model.pools[pool].laws, i);
        const double mu2 = cone.mu[0] * cone.mu[0];
        const double R_t = mu2 > 0 ? cone.rho / mu2 : kInf;
        const double w = view.model.w[view.layout(pool).order()[i]];
        if (w > 0) least = std::min(least, std::min(cone.R_n, R_t) / w);
      }
    }
  });
  return least;
}

}  // namespace

int IterationsBeforeHandOver(double least_R_over_w, const IslandView& view) {
  if (!(least_R_over_w < kLeastOfLargeR)) return kHandOverLargeR;
  return HasImpulseGuess(view) ? kHandOverGuess : kHandOverSmallR;
}

bool HandsOverAfter(int iterations, const SolverOptions& options, const IslandView& view) {
  return MayHandOverAfter(iterations, options, view, [&] { return LeastROverW(view); }) &&
         HasInteriorPoint(view) && !IsInRounds(view);
}

int IterationsBeforeExactHandOver(const SolverOptions& options, const IslandView& view) {
  constexpr int kNever = std::numeric_limits<int>::max();
  if (!MayHandOver(options) || !HasInteriorPoint(view)) return kNever;
  if (options.interior_point == InteriorPoint::kAlways) return 0;
  const int iterations = IterationsBeforeHandOver(LeastROverW(view), view);
  return iterations < kHandOverLargeR ? iterations : kNever;
}

class InteriorPointSolve::Impl {
 public:
  Impl(const IslandView& view, const SolverOptions& options, const StopToken& stop,
       HessianFactor* factor, SapWorkspace* workspace)
      : system_(view, options, stop, factor, workspace) {}

  InteriorPointEnd Run(int* iterations, IslandNorms* norms) {
    system_.iterations = iterations;
    system_.norms = norms;
    InteriorPointEnd end = InteriorPointEnd::kNoProgress;
    if (StartFromGuess(&system_, &start_)) end = Iterate();
    if (end == InteriorPointEnd::kNoProgress) {
      end = StartInteriorPoint(&system_, &start_) ? Iterate() : Failure();
    }
    if (end == InteriorPointEnd::kConverged) return end;
    if (std::isfinite(best_error_) && !system_.stop.Cancelled()) {
      system_.Restore(system_.interior.best_v);
      system_.Evaluate();
    }
    return end;
  }

  double GapBound() {
    if (!std::isfinite(best_error_)) return kInf;
    return PairGapBound(system_.view, system_.interior.best, system_.stop, &system_.data,
                        &system_.scratch);
  }

 private:
  // Everything that follows from the iterate: e, residuals, complementarity, the bound of the pair
  // without allowances, and norms at v.
  bool EvaluatePair() {
    system_.Evaluate();
    if (!system_.norms->finite || system_.stop.Requested()) return false;
    struct Terms {
      double gap{0}, complementarity{0}, residual2{0};
      Terms& operator+=(const Terms& part) {
        gap += part.gap;
        residual2 += part.residual2;
        complementarity += part.complementarity;
        return *this;
      }
    };
    const auto terms = system_.Reduce<Terms>([&](auto& state, auto pool, int i, Terms* part) {
      auto& impulses = system_.scratch.pools[pool].impulse_errors;
      const auto e = system_.VelocityOf(pool, i, state);
      state.e = e;
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        const BoxBarrier& row = state.row;
        state.slope = row.Slope();
        state.residual = row.Residual(state.e);
        impulses.Set(i, {row.g});
        part->gap += BoxBarrier::GapAt(row.p, e, row.g).value;
        part->complementarity += row.Complementarity(0, {});
      } else {
        if (system_.exact_friction) state.ShiftVelocity();
        for (size_t a = 0; a < state.e.size(); ++a) {
          state.residual[a] = state.cone.R(a) * state.pair.z[a] - state.e[a] - state.pair.u[a];
        }
        impulses.Set(i, state.cone.Impulse(state.pair.z));
        part->gap += state.cone.GapAt(state.e, state.pair.z).value;
        if (system_.exact_friction) {
          part->residual2 +=
              FullDot(state.residual, state.residual) / (state.root_w * state.root_w);
        }
        part->complementarity += state.Complementarity();
      }
    });
    complementarity_ = terms.complementarity;
    double v2 = 0, change2 = 0;
    for (int i = system_.view.range().velocity_begin; i < system_.view.range().velocity_end; ++i) {
      v2 += system_.data.v[i] * system_.data.momentum[i];
      change2 +=
          (system_.data.v[i] - system_.view.model.v_star()[i]) * system_.data.momentum_change[i];
    }
    const double scale = std::max({std::sqrt(std::max(v2, 0.0)), std::sqrt(std::max(change2, 0.0)),
                                   1e-9 * std::sqrt(system_.view.constants().trace_A)});
    system_.SetResidual();
    const double unbalanced = NormOfGradient(system_.view, system_.stop, &system_.data);
    balanced_ = unbalanced < kBalanced * scale;
    error_ = (std::sqrt(unbalanced * unbalanced + 2 * std::max(terms.gap, 0.0)) +
              std::sqrt(terms.residual2)) /
             scale;
    return !system_.stop.Requested() && std::isfinite(error_) && std::isfinite(complementarity_);
  }

  void KeepBest() {
    if (!(error_ < best_error_)) return;
    best_error_ = error_;
    system_.Keep(&system_.interior.best_v);
    system_.ForStates([&](auto& state, auto pool, int i) {
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        const BoxBarrier& row = state.row;
        system_.interior.best[pool].At(i) = {row.g};
        system_.interior.best_velocities[pool].At(i) = {row.p.R * row.g - row.u_l + row.u_h};
      } else {
        system_.interior.best[pool].At(i) = state.pair.z;
        system_.interior.best_velocities[pool].At(i) = state.PairVelocity();
      }
    });
  }
  InteriorPointEnd Failure() const {
    return system_.stop.Requested() ? InteriorPointEnd::kStopped : InteriorPointEnd::kNoProgress;
  }

  InteriorPointEnd Iterate() {
    last_step_ = 1;
    double crossover = kCrossover, crossed_error = kInf;
    int wait_until = 0, held = 0, short_steps = 0;
    bool raised = false;
    const bool exact = system_.exact_friction;
    std::vector<double> errors;
    for (int iteration = 0;; ++iteration) {
      if (!EvaluatePair()) return Failure();
      errors.push_back(error_);
      KeepBest();
      if (system_.Converged()) {
        system_.Evaluate();  // the gradient is that of the pair
        return InteriorPointEnd::kConverged;
      }
      if (*system_.iterations >= system_.options.max_iterations)
        return InteriorPointEnd::kIterationLimit;
      if (iteration == (exact ? kMaxExactIterations : kMaxIterations))
        return InteriorPointEnd::kNoProgress;
      const bool stalls = Stalls(errors);
      const bool is_nearer = best_error_ <= kLeastApproach * crossed_error;
      if (!exact && (error_ <= crossover || stalls) && iteration >= wait_until && is_nearer) {
        crossed_error = best_error_;
        const bool arrived = CrossOver(&system_);
        if (arrived) return InteriorPointEnd::kConverged;
        if (system_.stop.Requested()) return InteriorPointEnd::kStopped;
        if (best_error_ <= system_.options.relative_tolerance) {
          system_.Restore(system_.interior.best_v);
          system_.Evaluate();
          return InteriorPointEnd::kConverged;
        }
        if (*system_.iterations >= system_.options.max_iterations)
          return InteriorPointEnd::kIterationLimit;
        wait_until = iteration + 2;
        crossover = std::min(crossover, 0.1 * error_);
        if (!RestoreIterate()) return Failure();
      }
      double a = 0, cones = 0;
      if (!ComputeDirection(&a, &cones)) return Failure();
      held = cones < std::min(kHeldStep, 2 * a) ? held + 1 : 0;
      if (held >= 2 && !raised && iteration < kLastRaise && error_ > kFarFromOptimum) {
        raised = true;
        held = 0;
        RaiseStart(start_.size, &system_);
        continue;
      }
      short_steps = balanced_ && a < kShortStep ? short_steps + 1 : 0;
      if (!exact && short_steps == 2) return InteriorPointEnd::kNoProgress;
      Advance(a);
      last_step_ = a;
    }
  }

  // Whether the bound has come down by less than half in three iterations, near the optimum.
  static bool Stalls(const std::vector<double>& errors) {
    if (errors.size() <= 4 || errors.back() >= kFarFromOptimum) return false;
    return errors.back() > 0.5 * *std::min_element(errors.end() - 4, errors.end() - 1);
  }

  // The direction into `difference` and the steps of the states; the length to take along it, and
  // the largest one that cones allow.
  bool ComputeDirection(double* a, double* cones) {
    system_.ForStates([&](auto& state, auto pool, int i) {
      auto& G = system_.data.pools[pool].G;
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        G.Set(i, {{state.slope}});
      } else {
        G.Set(i, state.cone.Hessian([&](int b, int c) { return state.block(b, c); }));
      }
    });
    if (!system_.Factor()) return false;
    if (!Solve(Predictor(), /*residuals=*/true, StepMember)) return false;
    const double affine = std::min(LargestStep(StepMember).value(), 1.0);
    const double after = ComplementarityAfter(affine, StepMember);
    const double share =
        complementarity_ > 0 ? std::clamp(after / complementarity_, 0.0, 1.0) : 0.0;
    const double centering = std::max(share * share * share, kLeastCentering);
    const double mean = complementarity_ / std::max(start_.products, 1.0);
    // No descent holds exact friction together: after a short step it goes back to the path.
    const bool centers = system_.exact_friction && last_step_ < kShortStep;
    const double product = centers ? mean : centering * mean;
    if (!Solve(Corrector{product, !centers}, true, StepMember)) return false;
    TakeDirection();
    Least largest = LargestStep(StepMember);
    if (largest.value() <= kLongStep) {
      const double reach = std::min(1.0, largest.value() + kLongerBy);
      if (!Solve(FurtherCorrector{product, reach}, false, OtherMember)) return false;
      system_.ForStates([&](auto& state, auto, int) { state.other += state.step; });
      const Least longer = LargestStep(OtherMember);
      if (longer.value() >= largest.value() + kLeastGain) {
        system_.ForStates([&](auto& state, auto, int) { state.step = state.other; });
        ForVelocities(system_.view,
                      [&](int i) { system_.scratch.difference[i] += system_.step.v[i]; });
        largest = longer;
      }
    }
    *a =
        std::min(1.0, (centering > kWeakCentering ? kStepShare : kStepShareNear) * largest.value());
    const double left = ComplementarityAfter(*a, StepMember);
    if (balanced_ && left > kCycling * complementarity_) {
      if (!Solve(Corrector{kCentering * mean, false}, true, OtherMember)) return false;
      const Least centered = LargestStep(OtherMember);
      const double length = std::min(1.0, kStepShare * centered.value());
      if (ComplementarityAfter(length, OtherMember) < left) {
        system_.ForStates([&](auto& state, auto, int) { state.step = state.other; });
        TakeDirection();
        largest = centered;
        *a = length;
      }
    }
    *cones = largest.cones;
    return std::isfinite(*a);
  }
  void TakeDirection() {
    ForVelocities(system_.view, [&](int i) { system_.scratch.difference[i] = system_.step.v[i]; });
  }

  // The member of a state that a solve writes to.
  static constexpr auto StepMember = [](auto& state) -> auto& { return state.step; };
  static constexpr auto OtherMember = [](auto& state) -> auto& { return state.other; };

  // Steps of v, z, u and g for these products, without residuals where they are to be added to
  // another step.
  template <typename Products, typename Member>
  bool Solve(const Products& products, bool residuals, Member member) {
    const double r = residuals ? 1 : 0;
    system_.ForStates([&](auto& state, auto pool, int i) {
      auto& impulses = system_.scratch.pools[pool].impulse_errors;
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        state.products = products(state);
        state.target = state.row.Target(state.products) - r * state.residual;
        impulses.Set(i, {state.slope * state.target});
      } else {
        state.quotient = ConeQuotient(products(state), state.l());
        state.target = PlusScaled(state.scaling.Scale(state.quotient), -r, state.residual);
        impulses.Set(i, state.cone.Unscaled(state.shift.Multiply(state.block, state.target)));
      }
    });
    ForSlots(system_.view, kEvaluateSlots, [&](int slot, auto n, int start) {
      if (system_.stop.Requested()) return;
      double* const b = system_.vectors.residual.data() + start;
      for (int i = 0; i < n; ++i) b[i] = -r * system_.data.gradient[start + i];
      ForInequalities(system_.view, [&](auto pool) {
        AddTreeImpulse(system_.view.arena, system_.view.model.pools[pool].jacobians,
                       system_.view.layout(pool), slot, n,
                       system_.scratch.pools[pool].impulse_errors, b);
      });
    });
    const auto block = [&](auto& state, auto pool, int i) {
      return system_.TimesBlock(state, pool, i);
    };
    if (!(system_.exact_friction ? system_.SolveNonsymmetric(block)
                                 : system_.SolveFactored(block))) {
      return false;
    }
    ConstraintVelocities(system_.view, system_.step.v, system_.stop, &system_.step.pools);
    system_.ForStates([&](auto& state, auto pool, int i) {
      auto& step = member(state);
      const auto dv_c = ToLawVector(system_.step.pools[pool].v_c.At(i));
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        step = state.row.StepOf(state.slope * (state.target - dv_c[0]), state.products);
      } else {
        const auto moved = state.cone.Scaled(dv_c);
        step.z = state.shift.Multiply(state.block,
                                      PlusScaled(state.target, -1, state.shift.Turn(moved)));
        step.scaled_z = state.scaling.Scale(step.z);
        step.scaled_u = PlusScaled(state.quotient, -1, step.scaled_z);
        for (size_t a = 0; a < moved.size(); ++a)
          step.u[a] = state.cone.R(a) * step.z[a] + moved[a];
        step.u = PlusScaled(state.shift.Turn(step.u), r, state.residual);
      }
    });
    return !system_.stop.Requested();
  }

  template <typename Member>
  Least LargestStep(Member member) {
    return system_.Reduce<Least>([&](auto& state, auto, int, Least* least) {
      const auto& step = member(state);
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        least->rows = std::min(least->rows, state.row.LargestStep(step));
      } else {
        least->cones = std::min({least->cones, LargestStepInCone(state.l(), step.scaled_z),
                                 LargestStepInCone(state.l(), step.scaled_u)});
      }
    });
  }
  template <typename Member>
  double ComplementarityAfter(double a, Member member) {
    return system_.SumOver([&](auto& state, auto, int) {
      const auto& step = member(state);
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        return state.row.Complementarity(a, step);
      } else {
        return FullDot(state.ScaledZ(a, step), state.ScaledU(a, step));
      }
    });
  }

  void Advance(double a) {
    ForVelocities(system_.view,
                  [&](int i) { system_.data.v[i] += a * system_.scratch.difference[i]; });
    system_.ForStates([&](auto& state, auto, int) {
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        state.row.Advance(a, state.step);
      } else {
        const auto& s = state.step;
        state.pair = state.scaling.After(state.pair, a, s.z, s.u, s.scaled_z, s.scaled_u);
        state.Rescale();
      }
    });
  }

  // The iterate that a crossover left, evaluated again. False as of EvaluatePair.
  bool RestoreIterate() {
    system_.Restore(system_.interior.crossed_v);
    return EvaluatePair();
  }

  InteriorSystem system_;
  InteriorStart start_;
  double complementarity_{0};
  double last_step_;
  double error_{0};  // sqrt(2 gap) of the pair over |v|_A
  bool balanced_{false};
  double best_error_{kInf};
};

InteriorPointSolve::InteriorPointSolve(const IslandView& view, const SolverOptions& options,
                                       const StopToken& stop, HessianFactor* factor,
                                       SapWorkspace* workspace)
    : impl_(std::make_unique<Impl>(view, options, stop, factor, workspace)) {}
InteriorPointSolve::~InteriorPointSolve() = default;

InteriorPointEnd InteriorPointSolve::Run(int* iterations, IslandNorms* norms) {
  return impl_->Run(iterations, norms);
}
double InteriorPointSolve::GapBound() { return impl_->GapBound(); }

}  // namespace sap
