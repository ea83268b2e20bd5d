#include "client/mujoco/solver_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "client/mujoco/constraints.h"

namespace sap::mujoco {
namespace {

constexpr int64_t kBits = 64;

// Times of an iteration on one core [s], fitted by tests/bench/solver_choice.py to MuJoCo 4.0.0.
double TimeOfMujoco(const sap_mujoco_work& work) {
  return 4.0e-8 * work.rows + 1.7e-10 * work.entries_squared + 1.1e-10 * work.flops +
         7e-12 * work.cones * work.fill;
}

double TimeOfSap(const sap_mujoco_work& work) {
  return 2.1e-7 * work.cones + 1.0e-7 * (work.rows - 3.0 * work.cones) +
         3.3e-10 * work.dofs_squared + 2.7e-10 * work.tree_cubes;
}

}  // namespace

sap_mujoco_work NewtonWork::Count(const Fields& fields, const Trees& trees, bool is_sparse) {
  sap_mujoco_work work = {};
  const bool is_counted = trees.count() <= kMostTrees;
  words_ = is_counted ? (trees.count() + kBits - 1) / kBits : 0;
  lower_.assign(static_cast<size_t>(trees.count() * words_), 0);
  Connect(fields, trees, is_sparse, &work);
  Eliminate(trees, &work);
  if (is_counted) return work;
  const auto nv = static_cast<double>(fields.nv);
  work.flops = nv * nv * nv / 3.0;
  work.fill = 0.5 * nv * nv;
  return work;
}

bool IsSapFaster(const Fields& fields, const Trees& trees, const sap_mujoco_work& work) {
  constexpr double kClearly = 0.8;
  // The count takes MuJoCo's work on flexes to be more than it is. As measured by
  // tests/bench/flex_steps.py, only steps with elliptic cones take less time here.
  const bool is_counted = fields.nflex == 0 || (work.cones > 0.0 && !trees.is_apart());
  return is_counted && TimeOfSap(work) < kClearly * TimeOfMujoco(work);
}

// Joins the trees of each row.
void NewtonWork::Connect(const Fields& fields, const Trees& trees, bool is_sparse,
                         sap_mujoco_work* work) {
  work->rows = static_cast<double>(fields.nefc);
  for (int64_t row = 0; row < fields.nefc; ++row) {
    row_trees_.clear();
    int64_t entries = 0;
    const auto add = [&](int64_t dof) {
      ++entries;
      const auto tree = static_cast<int32_t>(trees.OfDof(dof));
      if (row_trees_.empty() || row_trees_.back() != tree) row_trees_.push_back(tree);
    };
    if (is_sparse) {
      const int64_t begin = fields.efc_J_rowadr[row];
      for (int64_t k = 0; k < fields.efc_J_rownnz[row]; ++k) add(fields.efc_J_colind[begin + k]);
    } else {
      for (int64_t dof = 0; dof < fields.nv; ++dof) {
        if (fields.efc_J[row * fields.nv + dof] != 0.0) add(dof);
      }
    }
    double dofs = 0.0;
    for (const int32_t tree : row_trees_) dofs += static_cast<double>(trees.Size(tree));
    ConnectTrees(dofs, entries, work);
  }
  for (int64_t contact = 0; contact < fields.ncon; ++contact) {
    const int32_t row = *fields.contact_efc_address(contact);
    work->cones += row >= 0 && fields.efc_type[row] == mjCNSTR_CONTACT_ELLIPTIC;
  }
}

void NewtonWork::ConnectTrees(double dofs, int64_t entries, sap_mujoco_work* work) {
  work->entries_squared += static_cast<double>(entries * entries);
  work->dofs_squared += dofs * dofs;
  if (words_ == 0) return;
  for (size_t i = 1; i < row_trees_.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      Lower(row_trees_[i])[row_trees_[j] / kBits] |= uint64_t{1} << (row_trees_[j] % kBits);
    }
  }
}

// Eliminates the trees from the last to the first: what is below a tree is joined to the highest of
// these.
void NewtonWork::Eliminate(const Trees& trees, sap_mujoco_work* work) {
  for (int64_t tree = trees.count() - 1; tree >= 0; --tree) {
    const auto n = static_cast<double>(trees.Size(tree));
    double m = 0.0;
    int64_t highest = -1;
    for (int64_t word = 0; word < words_; ++word) {
      for (uint64_t bits = Lower(tree)[word]; bits != 0; bits &= bits - 1) {
        highest = word * kBits + std::countr_zero(bits);
        m += static_cast<double>(trees.Size(highest));
      }
    }
    work->flops += n * (n * n / 3.0 + n * m + m * m);
    work->fill += n * (0.5 * n + m);
    work->tree_cubes += n * n * n;
    if (highest < 0) continue;
    for (int64_t word = 0; word < words_; ++word) Lower(highest)[word] |= Lower(tree)[word];
    Lower(highest)[highest / kBits] &= ~(uint64_t{1} << (highest % kBits));
  }
}

}  // namespace sap::mujoco

void sap_mujoco_count_work(const sap_mujoco_field* table, const void* model, const void* data,
                           int32_t flags, sap_mujoco_work* work) {
  using namespace sap::mujoco;
  const Fields fields = ReadFields(table, model, data);
  *work = NewtonWork().Count(fields, Trees(fields), (flags & SAP_MUJOCO_SPARSE) != 0);
}
