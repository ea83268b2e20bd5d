#include "client/mujoco/couplings.h"

#include <algorithm>

namespace sap::mujoco {
namespace {

constexpr int64_t kHeader = 2;  // numbers before the entries of a passive contact

void AddPassiveContacts(const Fields& fields, std::vector<MetricTerm>* terms) {
  for (int64_t at = 0; at < fields.nefmcon;) {
    const auto count = static_cast<size_t>(fields.efm_con_ind[at]);
    terms->push_back(
        {{{fields.efm_con_ind + at + kHeader, count}, fields.efm_con_val + at + kHeader},
         fields.efm_con_val[at]});
    at += kHeader + static_cast<int64_t>(count);
  }
}

// The trees below that each tree is joined to.
class Pairs {
 public:
  explicit Pairs(const Trees& trees) : trees_(trees), lower_(static_cast<size_t>(trees.count())) {}

  bool is_any() const { return is_any_; }

  // Joins the trees of a sparse matrix in rows.
  void JoinRows(int64_t rows, const int32_t* begin, const int32_t* count, const int32_t* column) {
    for (int64_t row = 0; row < rows; ++row) {
      Join(trees_.OfDof(row), {column + begin[row], static_cast<size_t>(count[row])});
    }
  }

  void JoinAll(std::span<const int32_t> dofs) {
    for (const int32_t dof : dofs) Join(trees_.OfDof(dof), dofs);
  }

  // Returns the lower trees coupled with one tree, ascending, each once.
  std::vector<int32_t>& Lower(int64_t tree) {
    std::vector<int32_t>& lower = lower_[static_cast<size_t>(tree)];
    std::ranges::sort(lower);
    lower.erase(std::unique(lower.begin(), lower.end()), lower.end());
    return lower;
  }

 private:
  void Join(int64_t tree, std::span<const int32_t> dofs) {
    std::vector<int32_t>& lower = lower_[static_cast<size_t>(tree)];
    for (const int32_t dof : dofs) {
      const auto other = static_cast<int32_t>(trees_.OfDof(dof));
      if (other >= tree || (!lower.empty() && lower.back() == other)) continue;
      lower.push_back(other);
      is_any_ = true;
    }
  }

  const Trees& trees_;
  std::vector<std::vector<int32_t>> lower_;
  bool is_any_ = false;
};

}  // namespace

std::vector<MetricTerm> MetricTermsOf(const Fields& fields) {
  std::vector<MetricTerm> terms;
  for (int64_t i = 0; i < fields.nefmT; ++i) {
    terms.push_back({ArmsOfTendon(fields, fields.efm_tid[i]), fields.efm_ts[i]});
  }
  for (int64_t i = 0; i < fields.nefmA; ++i) {
    const int64_t actuator = fields.efm_aid[i];
    const bool is_single = fields.actuator_outadr == nullptr;
    const int64_t first = is_single ? actuator : fields.actuator_outadr[actuator];
    const int64_t count = is_single ? 1 : fields.actuator_outnum[actuator];
    for (int64_t output = first; output < first + count; ++output) {
      terms.push_back({ArmsOfOutput(fields, output), fields.efm_as[i]});
    }
  }
  if (fields.efm_con_ind != nullptr) AddPassiveContacts(fields, &terms);
  return terms;
}

namespace {

bool IsStiff(const Fields& fields) { return IsDiscrete(fields) && fields.nefmK > 0; }

// Writes all that couplings depend on.
void WritePattern(const Fields& fields, const Trees& trees, std::vector<int32_t>* pattern) {
  pattern->assign(1, static_cast<int32_t>(trees.count()));
  for (int64_t tree = 1; tree <= trees.count(); ++tree) {
    pattern->push_back(static_cast<int32_t>(trees.FirstDof(tree)));
  }
  pattern->push_back(IsStiff(fields) ? 1 : 0);
  if (!IsStiff(fields) && !trees.is_apart()) return;
  const auto append = [&](const int32_t* values, int64_t count) {
    pattern->push_back(static_cast<int32_t>(count));
    pattern->insert(pattern->end(), values, values + count);
  };
  for (int64_t row = 0; row < fields.nv; ++row) {
    if (trees.is_apart()) append(fields.M_colind + fields.M_rowadr[row], fields.M_rownnz[row]);
    if (IsStiff(fields)) {
      append(fields.efm_K_colind + fields.efm_K_rowadr[row], fields.efm_K_rownnz[row]);
    }
  }
  if (!IsDiscrete(fields)) return;
  for (const MetricTerm& term : MetricTermsOf(fields)) {
    append(term.arms.dofs.data(), static_cast<int64_t>(term.arms.dofs.size()));
  }
}

}  // namespace

Couplings::Couplings(const Fields& fields, const Trees& trees)
    : first_(static_cast<size_t>(trees.count()) + 1), block_start_(1) {
  const bool is_stiff = IsStiff(fields);
  if (is_stiff || trees.is_apart()) JoinTrees(fields, trees, is_stiff);
  if (is_stiff) PlaceStiffness(fields, trees);
}

void KeptCouplings::Update(const Fields& fields, const Trees& trees) {
  WritePattern(fields, trees, &next_);
  if (kept_ && next_ == pattern_) return;
  kept_.emplace(fields, trees);
  pattern_.swap(next_);
}

void Couplings::JoinTrees(const Fields& fields, const Trees& trees, bool is_stiff) {
  Pairs pairs(trees);
  if (trees.is_apart()) {
    pairs.JoinRows(fields.nv, fields.M_rowadr, fields.M_rownnz, fields.M_colind);
  }
  if (is_stiff) {
    pairs.JoinRows(fields.nv, fields.efm_K_rowadr, fields.efm_K_rownnz, fields.efm_K_colind);
  }
  if (IsDiscrete(fields) && pairs.is_any()) {
    for (const MetricTerm& term : MetricTermsOf(fields)) pairs.JoinAll(term.arms.dofs);
  }
  for (int64_t a = 0; a < trees.count(); ++a) {
    for (const int32_t b : pairs.Lower(a)) {
      lower_.push_back(b);
      block_start_.push_back(block_start_.back() + trees.Size(a) * trees.Size(b));
    }
    first_[static_cast<size_t>(a) + 1] = count();
  }
}

void Couplings::PlaceStiffness(const Fields& fields, const Trees& trees) {
  for (int64_t row = 0; row < fields.nv; ++row) {
    const int64_t a = trees.OfDof(row);
    const int64_t begin = fields.efm_K_rowadr[row];
    int64_t b = -1;
    int64_t block = 0;
    for (int64_t k = begin; k < begin + fields.efm_K_rownnz[row]; ++k) {
      const int64_t column = fields.efm_K_colind[k];
      const int64_t other = trees.OfDof(column);
      if (other < a && other != b) {
        b = other;
        block = trees.block_values() + BlockStart(a, b) + (row - trees.FirstDof(a)) * trees.Size(b);
      }
      int64_t place = -1;
      if (other == a) place = trees.Place(row, column);
      if (other < a) place = block + column - trees.FirstDof(b);
      stiffness_places_.push_back(place);
    }
  }
}

void Couplings::WriteTrees(int32_t* trees) const {
  for (size_t a = 0; a + 1 < first_.size(); ++a) {
    std::fill(trees + first_[a], trees + first_[a + 1], static_cast<int32_t>(a));
  }
  std::ranges::copy(lower_, trees + count());
}

int64_t Couplings::BlockStart(int64_t a, int64_t b) const {
  const auto begin = lower_.begin() + first_[static_cast<size_t>(a)];
  const auto end = lower_.begin() + first_[static_cast<size_t>(a) + 1];
  return block_start_[static_cast<size_t>(std::lower_bound(begin, end, b) - lower_.begin())];
}

void MatrixBlocks::Clear() {
  std::fill_n(blocks_, trees_.block_values(), 0.0);
  std::fill_n(coupling_, couplings_.values(), 0.0);
}

void MatrixBlocks::AddStiffness(const Fields& fields) {
  const int64_t of_trees = trees_.block_values();
  const int64_t* place = couplings_.stiffness_places().data();
  for (int64_t row = 0; row < fields.nv; ++row) {
    const double* value = fields.efm_K_val + fields.efm_K_rowadr[row];
    for (int32_t k = 0; k < fields.efm_K_rownnz[row]; ++k, ++place) {
      if (*place < 0) continue;
      *(*place < of_trees ? blocks_ + *place : coupling_ + (*place - of_trees)) += value[k];
    }
  }
}

double* MatrixBlocks::FindBetween(int64_t a, int64_t b, int64_t row, int64_t column) {
  if (a != a_ || b != b_) {
    a_ = a;
    b_ = b;
    block_ = coupling_ + couplings_.BlockStart(a, b);
  }
  return block_ + (row - trees_.FirstDof(a)) * trees_.Size(b) + column - trees_.FirstDof(b);
}

}  // namespace sap::mujoco
