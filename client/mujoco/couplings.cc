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

  // Returns those of one tree, ascending, each once.
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

Couplings::Couplings(const Fields& fields, const Trees& trees)
    : first_(static_cast<size_t>(trees.count()) + 1), block_start_(1) {
  const bool is_stiff = IsDiscrete(fields) && fields.nefmK > 0;
  if (!is_stiff && !trees.is_apart()) return;
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

double* MatrixBlocks::FindBetween(int64_t a, int64_t b, int64_t row, int64_t column) {
  if (a != a_ || b != b_) {
    a_ = a;
    b_ = b;
    block_ = coupling_ + couplings_.BlockStart(a, b);
  }
  return block_ + (row - trees_.FirstDof(a)) * trees_.Size(b) + column - trees_.FirstDof(b);
}

}  // namespace sap::mujoco
