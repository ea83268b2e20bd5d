#include "solver/newton/interior_start.h"

#include <algorithm>
#include <cmath>

#include "solver/newton/impulse_guess.h"

namespace sap {

namespace {

// Start (interior_point.h): distances from the surface of the cones, in parts of the mean size of
// the least-squares impulses; too small a start has to grow, too large a one falls quickly.
constexpr double kStartImpulse = 100;
constexpr double kStartSpeed = 1;
constexpr double kStartRow = 10;
// All of these distances of a start from guesses, in parts of their mean size.
constexpr double kGuessShare = 0.1;
// A raised start is larger by so much.
constexpr double kRaise = 1e4;

class Start {
 public:
  explicit Start(InteriorSystem* system) : system_(*system) { FindDelassus(); }

  // v := v* + dv of the problem with W^2 = w, and z, u, g inside of their cones and bounds.
  bool Run(InteriorStart* start) {
    ForVelocities(system_.view, [&](int i) { system_.data.v[i] = system_.view.model.v_star()[i]; });
    system_.Evaluate();
    if (!system_.norms->finite) return false;
    system_.ForStates([&](auto& state, auto pool, int i) {
      auto& G = system_.data.pools[pool].G;
      auto& impulses = system_.scratch.pools[pool].impulse_errors;
      state.e = system_.VelocityOf(pool, i, state);
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        const BoxBarrier& row = state.row;
        const double slope = row.is_given() ? 0 : 1 / (row.p.R + state.root_w * state.root_w);
        state.slope = slope;
        G.Set(i, {{slope}});
        impulses.Set(i, {row.is_given() ? row.p.lower : slope * state.e});
      } else {
        const double w = state.root_w * state.root_w;
        const auto slope = [&](int a, int b) { return a == b ? 1 / (state.cone.R(a) + w) : 0; };
        auto z = state.e;
        for (size_t a = 0; a < z.size(); ++a) z[a] *= slope(a, a);
        G.Set(i, state.cone.Hessian(slope));
        impulses.Set(i, state.cone.Impulse(z));
      }
    });
    system_.SetResidual();
    ForVelocities(system_.view,
                  [&](int i) { system_.vectors.residual[i] = -system_.data.gradient[i]; });
    if (!system_.Factor() || !system_.SolveFactored([&](auto& state, auto pool, int i) {
          return system_.TimesG(state, pool, i);
        })) {
      return false;
    }
    ForVelocities(system_.view, [&](int i) { system_.data.v[i] += system_.step.v[i]; });
    system_.Evaluate();
    if (!system_.norms->finite) return false;
    SetLeastSquares();
    return MoveInside({.impulse = kStartImpulse,
                       .speed = kStartSpeed,
                       .row_impulse = kStartRow,
                       .row_speed = kStartSpeed},
                      start);
  }

  // z, u and g near the guesses of impulses, at the v at which data was evaluated last.
  bool RunFromGuess(InteriorStart* start) {
    SetGuess();
    return MoveInside({.impulse = kGuessShare,
                       .speed = kGuessShare,
                       .row_impulse = kGuessShare,
                       .row_speed = kGuessShare},
                      start);
  }

 private:
  // w of each constraint: the mean of diag(B A^-1 B') over its rows that move.
  void FindDelassus() {
    ForInequalities(system_.view, [&](auto pool) {
      const PoolRange range = system_.view.range(pool);
      ForChunks(system_.view.arena, range.unit_begin, range.unit_end, kGatherUnits,
                [&](int begin, int end, int) {
                  for (int unit = begin; unit < end; ++unit) FindDelassusOfUnit(pool, unit);
                });
    });
  }
  template <typename PoolIndexType>
  void FindDelassusOfUnit(PoolIndexType pool, int unit) {
    const auto& [laws, jacobians] = system_.view.model.pools[pool];
    const auto& layout = system_.view.layout(pool);
    if constexpr (pool == kBoundedPool) {
      double w = 0;
      for (const RowPart& part : layout.parts_of_row(unit)) {
        WithTreeScratch(system_.view.graph.dofs()[part.slot],
                        [&, &jacobians = jacobians](double* x) {
                          std::fill_n(x, system_.view.graph.dofs()[part.slot], 0.0);
                          for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
                            x[layout.dof()[e]] = jacobians.at(e);
                          }
                          w += InverseNorm2(part.slot, x);
                        });
      }
      auto& state = system_.StateAt(pool, unit);
      state.root_w = std::sqrt(w > 0 ? w : state.row.p.R);
    } else {
      const ContactGroup& group = layout.groups()[unit];
      constexpr int kRows = PoolAt<pool>::Laws::kRows;
      for (int i = group.contact_begin; i < group.contact_end; ++i) {
        auto& state = system_.StateAt(pool, i);
        double w = 0;
        int moving = 0;
        for (int row = 0; row < kRows; ++row) {
          double of_row = 0;
          for (const ContactPart& part : layout.parts_of(group)) {
            const double* J = jacobians.of(group, i, part) + row * part.dofs;
            WithTreeScratch(part.dofs, [&](double* x) {
              for (int j = 0; j < part.dofs; ++j) x[j] = state.cone.p.mu[row] * J[j];
              of_row += InverseNorm2(part.slot, x);
            });
          }
          w += of_row;
          moving += of_row > 0 ? 1 : 0;
        }
        state.root_w = std::sqrt(w > 0 ? w / moving : state.cone.p.R_n);
      }
    }
  }
  // x' A^-1 x of one tree, of a coupled one by the diagonal of A. Overwrites x.
  double InverseNorm2(int slot, double* x) const {
    const int n = system_.view.graph.dofs()[slot];
    double sum = 0;
    if (system_.view.model.IsCoupled(system_.view.graph, slot)) {
      const double* D = system_.view.model.D().data() + system_.view.graph.velocity_start()[slot];
      for (int i = 0; i < n; ++i) sum += D[i] * x[i] * (D[i] * x[i]);
      return sum;
    }
    const TreeFactor factor = system_.view.model.A_factor(system_.view.graph, slot);
    HalfSolveTree(factor, n, x);
    for (int i = 0; i < n; ++i) sum += x[i] * x[i] * factor.entries[i * n + i];
    return sum;
  }

  // z, u and g of the least-squares problem.
  void SetLeastSquares() {
    system_.ForStates([&](auto& state, auto pool, int i) {
      state.e = system_.VelocityOf(pool, i, state);
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        state.row.g = state.slope * state.e;
      } else {
        const double w = state.root_w * state.root_w;
        for (size_t a = 0; a < state.e.size(); ++a) {
          state.pair.z[a] = state.e[a] / (state.cone.R(a) + w);
          state.pair.u[a] = -w * state.pair.z[a];
        }
      }
    });
  }
  // z and g of the guesses, moved onto the surface of their cones and to their bounds where they
  // are outside; u of them at v.
  void SetGuess() {
    system_.ForStates([&](auto& state, auto pool, int i) {
      const auto guess = ImpulseGuess(system_.view, pool, i);
      state.e = system_.VelocityOf(pool, i, state);
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        state.row.g = std::clamp(guess[0], state.row.p.lower, state.row.p.upper);
      } else {
        auto& z = state.pair.z;
        z = state.cone.Dual(guess);
        z[0] = std::max(z[0], TailNorm(z));
        for (size_t a = 0; a < z.size(); ++a) {
          state.pair.u[a] = state.cone.R(a) * z[a] - state.e[a];
        }
      }
    });
  }

  // Moves z, u and g inside of their cones and bounds, by these parts of their mean sizes.
  struct Distances {
    double impulse, speed, row_impulse, row_speed;
  };
  bool MoveInside(const Distances& parts, InteriorStart* start) {
    const MeanSizes sizes = FindMeanSizes();
    start->size = std::max(sizes.cones, 1e-12 * std::sqrt(StarEnergy()) + 1e-30);
    const double row_size = std::max(start->size, sizes.rows);
    if (!std::isfinite(row_size)) return false;
    start->products = system_.SumOver([&](auto& state, auto, int) {
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        state.row.Start(state.row.g, parts.row_impulse * row_size / state.root_w);
        state.row.StartDuals(state.e, parts.row_speed * row_size * state.root_w);
        return static_cast<double>(state.row.num_bounds());
      } else {
        auto& [z, u, det_z, det_u, product] = state.pair;
        z[0] += std::max(TailNorm(z) - z[0], 0.0) + parts.impulse * start->size / state.root_w;
        u[0] += std::max(TailNorm(u) - u[0], 0.0) + parts.speed * start->size * state.root_w;
        state.pair = state.pair.Make(z, u);
        state.Rescale();
        return 1.0;
      }
    });
    return true;
  }

  // Root mean squares of sqrt(w) |z| over cones, and of sqrt(w) |g| over rows.
  struct MeanSizes {
    double cones{0}, rows{0};
    MeanSizes& operator+=(const MeanSizes& part) {
      cones += part.cones;
      rows += part.rows;
      return *this;
    }
  };
  MeanSizes FindMeanSizes() {
    const auto squares = system_.Reduce<MeanSizes>([&](auto& state, auto, int, MeanSizes* part) {
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        const double size = state.row.is_given() ? 0 : state.row.g * state.root_w;
        part->rows += size * size;
      } else {
        part->cones += state.root_w * state.root_w * FullDot(state.pair.z, state.pair.z);
      }
    });
    int cones = 0, rows = 0;
    ForInequalities(system_.view, [&](auto pool) {
      const PoolRange range = system_.view.range(pool);
      (IsCone(pool) ? cones : rows) += range.end - range.begin;
    });
    return {cones > 0 ? std::sqrt(squares.cones / cones) : 0.0,
            rows > 0 ? std::sqrt(squares.rows / rows) : 0.0};
  }
  // v*' A v, near v* the square of its size.
  double StarEnergy() const {
    const auto& v_star = system_.view.model.v_star();
    double sum = 0;
    for (int i = system_.view.range().velocity_begin; i < system_.view.range().velocity_end; ++i) {
      sum += v_star[i] * (system_.data.momentum[i] - system_.data.momentum_change[i]);
    }
    return std::max(sum, 0.0);
  }

  InteriorSystem& system_;
};

}  // namespace

bool StartInteriorPoint(InteriorSystem* system, InteriorStart* start) {
  return Start(system).Run(start);
}
bool StartFromGuess(InteriorSystem* system, InteriorStart* start) {
  return HasImpulseGuess(system->view) && Start(system).RunFromGuess(start);
}

void RaiseStart(double size, InteriorSystem* system) {
  system->ForStates([&](auto& state, auto, int) {
    if constexpr (!kIsRow<std::remove_cvref_t<decltype(state)>>) {
      auto& [z, u, det_z, det_u, product] = state.pair;
      z[0] += kRaise * kStartImpulse * size / state.root_w;
      u[0] += kStartSpeed * size * state.root_w;
      state.pair = state.pair.Make(z, u);
      state.Rescale();
    }
  });
}

}  // namespace sap
