#include "solver/problem/coupled_trees.h"

#include <algorithm>
#include <numeric>

#include "solver/problem/counting_sort.h"

namespace sap {

void CoupledTrees::Clear() {
  if (empty()) return;
  pairs_.clear();
  blocks_.clear();
  components_.Find(JoinedTrees(), true);
}

void CoupledTrees::Assign(std::span<const int32_t> a, std::span<const int32_t> b,
                          std::span<const double> blocks, std::span<const int> dofs) {
  Clear();
  if (a.empty()) return;
  int64_t start = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    pairs_.push_back({a[k], b[k], start});
    start += static_cast<int64_t>(dofs[a[k]]) * dofs[b[k]];
  }
  blocks_.assign(blocks.begin(), blocks.end());
  components_.Find({.num_trees = static_cast<int>(dofs.size()), .coupled = pairs_}, true);
  FindPairsOfComponents();
}

void CoupledTrees::FindPairsOfComponents() {
  std::vector<int>& numbers = edge_a_;
  numbers.resize(pairs_.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  SortByKey(
      numbers, num_components(), [this](int pair) { return component_of(pairs_[pair].a); },
      &first_pair_, &pairs_by_component_);
  // The sort leaves the end of each component.
  first_pair_.insert(first_pair_.begin(), 0);
  first_pair_.resize(num_components() + 1);
}

size_t CoupledTrees::Plan(std::span<const int> dofs) {
  if (empty()) return 0;
  if (plans_ == nullptr || plans_.use_count() > 1) plans_ = std::make_shared<PlanCache>();
  if (factors_.size() < static_cast<size_t>(num_components())) factors_.resize(num_components());
  plans_->BeginProblem();
  for (int component = 0; component < num_components(); ++component) {
    sizes_.clear();
    edge_a_.clear();
    edge_b_.clear();
    for (const int tree : trees_of(component)) sizes_.push_back(dofs[tree]);
    for (int k = first_pair_[component]; k < first_pair_[component + 1]; ++k) {
      edge_a_.push_back(place_of(pairs_[pairs_by_component_[k]].a));
      edge_b_.push_back(place_of(pairs_[pairs_by_component_[k]].b));
    }
    factors_[component].plan = plans_->Request({sizes_, edge_a_, edge_b_});
  }
  plans_->MakePlans(StopToken(), nullptr);
  size_t bytes = 0;
  for (int component = 0; component < num_components(); ++component) {
    bytes += BlockCholesky<double>::StorageBytes(**factors_[component].plan, nullptr);
  }
  return bytes;
}

int CoupledTrees::FactorAll(std::span<const double> matrix, std::span<const int64_t> matrix_start) {
  const auto append = [](std::span<const double> from, int64_t begin, int64_t size,
                         std::vector<double>* to) {
    to->insert(to->end(), from.begin() + begin, from.begin() + begin + size);
  };
  for (int component = 0; component < num_components(); ++component) {
    diagonal_.clear();
    off_diagonal_.clear();
    for (const int tree : trees_of(component)) {
      append(matrix, matrix_start[tree], matrix_start[tree + 1] - matrix_start[tree], &diagonal_);
    }
    for (int k = first_pair_[component]; k < first_pair_[component + 1]; ++k) {
      const int pair = pairs_by_component_[k];
      const int64_t end = pair + 1 < static_cast<int>(pairs_.size())
                              ? pairs_[pair + 1].block_start
                              : static_cast<int64_t>(blocks_.size());
      append(blocks_, pairs_[pair].block_start, end - pairs_[pair].block_start, &off_diagonal_);
    }
    Factor& factor = factors_[component];
    if (factor.cholesky == nullptr || factor.cholesky.use_count() > 1) {
      factor.cholesky = std::make_shared<BlockCholesky<double>>();
    }
    const EliminationPlan& plan = **factor.plan;
    factor.places.Find(plan);
    if (factor.cholesky->Factor(plan, diagonal_, off_diagonal_, StopToken(), nullptr) !=
        BlockCholesky<double>::FactorStatus::kOk) {
      return component;
    }
  }
  return -1;
}

}  // namespace sap
