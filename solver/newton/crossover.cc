#include "solver/newton/crossover.h"

#include <algorithm>
#include <type_traits>

#include "solver/newton/line_search.h"

namespace sap {

namespace {

// Newton steps of the primal cost that gain less than kPrimalGain, and steps in all.
constexpr int kMaxSlowSteps = 4, kMaxPrimalSteps = 12;
constexpr double kPrimalGain = 0.1;
constexpr double kSmallResidual = 1e-3;

bool TakePrimalStep(InteriorSystem* system) {
  EvaluateHessians(system->view, &system->data);
  ForVelocities(system->view,
                [&](int i) { system->vectors.residual[i] = -system->data.gradient[i]; });
  if (!system->Factor() || !system->SolveFactored([&](auto& state, auto pool, int i) {
        return system->TimesG(state, pool, i);
      })) {
    return false;
  }
  const LineSearchResult search = SearchAlongStep(system->view, kPlainSearchTolerance, system->stop,
                                                  system->data, &system->step, &system->scratch);
  if (system->stop.Requested() || !search.descends || search.alpha == 0) return false;
  ForVelocities(system->view,
                [&](int i) { system->data.v[i] += search.alpha * system->step.v[i]; });
  system->Evaluate();
  return system->norms->finite;
}

}  // namespace

bool CrossOver(InteriorSystem* system) {
  system->Keep(&system->interior.crossed_v);
  system->Restore(system->interior.best_v);
  system->Evaluate();
  const double before = RelativeGradient(*system->norms);
  system->ForStates([&](auto& state, auto pool, int i) {
    auto& G = system->data.pools[pool].G;
    auto& impulses = system->scratch.pools[pool].impulse_errors;
    const auto& y = system->interior.best_velocities[pool].At(i);
    const auto e = system->VelocityOf(pool, i, state);
    if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
      const auto& p = state.row.p;
      const double impulse = y[0] * p.inv_R;
      const bool inside = p.lower < impulse && impulse < p.upper;
      const double slope = inside ? p.inv_R : 0;
      G.Set(i, {{slope}});
      impulses.Set(i, {std::clamp(impulse, p.lower, p.upper) + slope * (e - y[0])});
    } else {
      const auto point = state.cone.Project(y);
      const auto slope = [&](int a, int b) { return point.Slope(a, b); };
      auto z = point.z;
      const auto difference = PlusScaled(e, -1, y);
      const int k = static_cast<int>(z.size());
      for (int a = 0; a < k; ++a) {
        for (int b = 0; b < k; ++b) z[a] += slope(a, b) * difference[b];
      }
      G.Set(i, state.cone.Hessian(slope));
      impulses.Set(i, state.cone.Impulse(z));
    }
  });
  system->SetResidual();
  ForVelocities(system->view,
                [&](int i) { system->vectors.residual[i] = -system->data.gradient[i]; });
  if (!system->Factor() || !system->SolveFactored([&](auto& state, auto pool, int i) {
        return system->TimesG(state, pool, i);
      })) {
    return false;
  }
  ForVelocities(system->view, [&](int i) { system->data.v[i] += system->step.v[i]; });
  system->Evaluate();
  if (!(RelativeGradient(*system->norms) < before)) {
    system->Restore(system->interior.best_v);
    system->Evaluate();
  }
  double last = before;
  int slow_steps = 0;
  for (int steps = 1; !system->Converged(); ++steps) {
    const double residual = RelativeGradient(*system->norms);
    const bool gains = residual < kPrimalGain * last;
    slow_steps += gains ? 0 : 1;
    if (!(gains || residual < kSmallResidual) || slow_steps > kMaxSlowSteps ||
        steps == kMaxPrimalSteps || *system->iterations >= system->options.max_iterations) {
      return false;
    }
    last = residual;
    if (!TakePrimalStep(system)) return false;
  }
  return true;
}

}  // namespace sap
