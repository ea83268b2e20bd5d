// Factorization of pile-like matrices (6 rows per body, 5.5 neighbors per body) against CHOLMOD,
// and its ordering against METIS_NodeND.
//
//   block_cholesky_benchmark [--benchmark_filter=Factor]      for figures, alone on one core
//
// Arguments are the number of bodies; of threads where there are two.
#include <benchmark/benchmark.h>
#include <cholmod.h>

#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "solver/cholesky/block_cholesky.h"
#include "solver/cholesky/elimination_tree.h"
#include "solver/cholesky/nested_dissection.h"
#include "solver/cholesky/supernodes.h"
#include "tests/solver/cholesky/block_systems.h"

namespace sap {
namespace {

struct System {
  test::PatternData data;
  test::BlockValues values;
};

const System& PileOf(int num_bodies) {
  static std::map<int, System> systems;
  System& system = systems[num_bodies];
  if (system.data.block_size.empty()) {
    system.data = test::Pile(num_bodies, 5.5, 1);
    system.values = test::RandomValues(system.data, 2);
  }
  return system;
}

void Report(benchmark::State& state, const EliminationPlan& plan) {
  state.counters["Mflop"] = plan.factor_flops() * 1e-6;
  state.counters["MB"] = static_cast<double>(plan.factor_entries()) * 8e-6;
  state.counters["fronts"] = plan.num_fronts();
}

void Plan(benchmark::State& state, Ordering ordering) {
  const System& system = PileOf(static_cast<int>(state.range(0)));
  TaskArena arena(static_cast<int>(state.range(1)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        EliminationPlan::Make(system.data.pattern(), ordering, StopToken(), &arena));
  }
  Report(state, EliminationPlan::Make(system.data.pattern(), ordering));
}
BENCHMARK_CAPTURE(Plan, minimum_degree, Ordering::kMinimumDegree)
    ->ArgsProduct({{20, 100, 1000, 3000, 10000}, {1}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(Plan, nested_dissection, Ordering::kNestedDissection)
    ->ArgsProduct({{300, 1000, 3000, 10000}, {1, 2}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(Plan, automatic, Ordering::kAuto)
    ->ArgsProduct({{100, 150, 200, 300, 1000, 3000}, {1, 2}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

// The order of METIS_NodeND, by way of CHOLMOD.
std::vector<int> MetisOrder(const BlockGraph& graph) {
  cholmod_common common;
  cholmod_start(&common);
  std::vector<int> start(graph.start), neighbor(graph.neighbor);
  cholmod_sparse pattern{};
  pattern.nrow = pattern.ncol = graph.num_blocks();
  pattern.nzmax = neighbor.size();
  pattern.p = start.data();
  pattern.i = neighbor.data();
  pattern.stype = 1;  // symmetric, of which the upper triangle is read
  pattern.itype = CHOLMOD_INT;
  pattern.xtype = CHOLMOD_PATTERN;
  pattern.sorted = pattern.packed = 1;
  std::vector<int> order(graph.num_blocks());
  cholmod_metis(&pattern, nullptr, 0, /*postorder=*/0, order.data(), &common);
  cholmod_finish(&common);
  return order;
}

double Cycles(const BlockGraph& graph, std::vector<int> order) {
  const Supernodes nodes = Supernodes::Make(graph, EliminationTree::Make(graph, std::move(order)));
  return std::accumulate(nodes.cost.begin(), nodes.cost.end(), 0.0);
}

// Times METIS_NodeND; `cycles` is what a factorization takes by our order, of what it takes by that
// of METIS: by the model of supernodes.h, the geometric mean of twelve piles.
void NodeND(benchmark::State& state) {
  constexpr unsigned kPiles = 12;
  const int num_bodies = static_cast<int>(state.range(0));
  double log_ratio = 0;
  for (unsigned seed = 1; seed <= kPiles; ++seed) {
    const test::PatternData data = test::Pile(num_bodies, 5.5, seed);
    const BlockGraph graph = BlockGraph::FromPattern(data.pattern());
    const double ours = Cycles(graph, *NestedDissectionOrder(graph, StopToken(), nullptr));
    log_ratio += std::log(ours / Cycles(graph, MetisOrder(graph))) / kPiles;
  }
  const BlockGraph graph = BlockGraph::FromPattern(PileOf(num_bodies).data.pattern());
  for (auto _ : state) benchmark::DoNotOptimize(MetisOrder(graph));
  state.counters["cycles"] = std::exp(log_ratio);
}
BENCHMARK(NodeND)
    ->ArgsProduct({{300, 500, 1000, 2000, 3000, 10000}})
    ->Unit(benchmark::kMicrosecond);

// Our order alone.
void NestedDissection(benchmark::State& state) {
  TaskArena arena(static_cast<int>(state.range(1)));
  const BlockGraph graph =
      BlockGraph::FromPattern(PileOf(static_cast<int>(state.range(0))).data.pattern());
  for (auto _ : state) {
    benchmark::DoNotOptimize(NestedDissectionOrder(graph, StopToken(), &arena));
  }
}
BENCHMARK(NestedDissection)
    ->ArgsProduct({{300, 500, 1000, 2000, 3000, 10000}, {1, 2}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

template <typename Scalar>
void Factor(benchmark::State& state, Ordering ordering) {
  const System& system = PileOf(static_cast<int>(state.range(0)));
  const int num_threads = static_cast<int>(state.range(1));
  const EliminationPlan plan = EliminationPlan::Make(system.data.pattern(), ordering);
  TaskArena arena(num_threads);
  BlockCholesky<Scalar> cholesky;
  for (auto _ : state) {
    benchmark::DoNotOptimize(cholesky.Factor(plan, system.values.diagonal,
                                             system.values.off_diagonal, StopToken(),
                                             num_threads == 1 ? nullptr : &arena));
  }
  Report(state, plan);
  state.counters["GFLOP/s"] =
      benchmark::Counter(plan.factor_flops() * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}
void FactorDouble(benchmark::State& state) { Factor<double>(state, Ordering::kAuto); }
void FactorFloat(benchmark::State& state) { Factor<float>(state, Ordering::kAuto); }
void FactorByMinimumDegree(benchmark::State& state) {
  Factor<double>(state, Ordering::kMinimumDegree);
}
BENCHMARK(FactorDouble)
    ->ArgsProduct({{10, 20, 100, 1000, 3000, 10000}, {1, 2}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(FactorFloat)
    ->ArgsProduct({{100, 1000, 3000, 10000}, {1, 2}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(FactorByMinimumDegree)
    ->ArgsProduct({{100, 1000}, {1}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

template <typename Scalar>
void Solve(benchmark::State& state) {
  const System& system = PileOf(static_cast<int>(state.range(0)));
  const EliminationPlan plan = EliminationPlan::Make(system.data.pattern());
  BlockCholesky<Scalar> cholesky;
  cholesky.Factor(plan, system.values.diagonal, system.values.off_diagonal, StopToken(), nullptr);
  const std::vector<double> rhs(plan.num_rows(), 1.0);
  std::vector<double> x(plan.num_rows());
  for (auto _ : state) {
    cholesky.Solve(plan, rhs, x, StopToken(), nullptr);
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] =
      benchmark::Counter(2.0 * sizeof(Scalar) * 1e-9 * static_cast<double>(plan.factor_entries()),
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(Solve<double>)->Arg(100)->Arg(1000)->Arg(3000)->Arg(10000)->Unit(benchmark::kMicrosecond);
BENCHMARK(Solve<float>)->Arg(100)->Arg(1000)->Arg(3000)->Arg(10000)->Unit(benchmark::kMicrosecond);

// The same matrix for CHOLMOD, ordered by METIS, supernodal.
class Cholmod {
 public:
  explicit Cholmod(const System& system) {
    cholmod_start(&common_);
    common_.nmethods = 1;
    common_.method[0].ordering = CHOLMOD_METIS;
    common_.supernodal = CHOLMOD_SUPERNODAL;
    const test::PatternData& data = system.data;
    std::vector<int> start{0};
    for (const int size : data.block_size) start.push_back(start.back() + size);
    const size_t n = start.back();
    const size_t max_entries = system.values.diagonal.size() + system.values.off_diagonal.size();
    cholmod_triplet* triplet =
        cholmod_allocate_triplet(n, n, max_entries, -1, CHOLMOD_REAL, &common_);
    const auto add = [&](int i, int j, double value) {
      static_cast<int*>(triplet->i)[triplet->nnz] = std::max(i, j);
      static_cast<int*>(triplet->j)[triplet->nnz] = std::min(i, j);
      static_cast<double*>(triplet->x)[triplet->nnz++] = value;
    };
    const double* next = system.values.diagonal.data();
    for (int b = 0; b < data.num_blocks(); ++b) {
      const int size = data.block_size[b];
      for (int i = 0; i < size; ++i) {
        for (int j = 0; j <= i; ++j) add(start[b] + i, start[b] + j, next[i * size + j]);
      }
      next += size * size;
    }
    next = system.values.off_diagonal.data();
    for (size_t e = 0; e < data.edge_a.size(); ++e) {
      for (int i = 0; i < data.block_size[data.edge_a[e]]; ++i) {
        for (int j = 0; j < data.block_size[data.edge_b[e]]; ++j) {
          add(start[data.edge_a[e]] + i, start[data.edge_b[e]] + j, *next++);
        }
      }
    }
    matrix_ = cholmod_triplet_to_sparse(triplet, 0, &common_);
    cholmod_free_triplet(&triplet, &common_);
  }
  ~Cholmod() {
    cholmod_free_factor(&factor_, &common_);
    cholmod_free_sparse(&matrix_, &common_);
    cholmod_finish(&common_);
  }
  void Analyze() {
    cholmod_free_factor(&factor_, &common_);
    factor_ = cholmod_analyze(matrix_, &common_);
  }
  void Factorize() { cholmod_factorize(matrix_, factor_, &common_); }

 private:
  cholmod_common common_;
  cholmod_sparse* matrix_{nullptr};
  cholmod_factor* factor_{nullptr};
};

void CholmodAnalyze(benchmark::State& state) {
  Cholmod cholmod(PileOf(static_cast<int>(state.range(0))));
  for (auto _ : state) cholmod.Analyze();
}
BENCHMARK(CholmodAnalyze)
    ->Arg(100)
    ->Arg(1000)
    ->Arg(3000)
    ->Arg(10000)
    ->Unit(benchmark::kMicrosecond);

void CholmodFactor(benchmark::State& state) {
  Cholmod cholmod(PileOf(static_cast<int>(state.range(0))));
  cholmod.Analyze();
  for (auto _ : state) cholmod.Factorize();
}
BENCHMARK(CholmodFactor)->Arg(100)->Arg(1000)->Arg(3000)->Arg(10000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace sap
