// Workspace of the derivatives, all islands, in the order of the constraint graph and the unit of
// mass of each island.
//
// A bar marks the derivative of L with respect to what is below it.
#pragma once

#include <vector>

#include "solver/newton/sap_data.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/problem/problem_differential.h"

namespace sap {

// A matrix for each constraint of a pool, whatever its law.
template <int rows>
struct ConstraintMatrices : ConstraintArray<LawMatrix<rows>> {
  // The matrices as the kernels of Jacobians take them, of which those of three rows are fastest.
  struct Blocks {
    const ConstraintMatrices& matrices;
    auto At(int i) const {
      const LawMatrix<rows>& G = matrices.At(i);
      if constexpr (rows == 3) {
        return ToSymmetricMatrix(G);
      } else {
        return G;
      }
    }
  };
  Blocks blocks() const { return {*this}; }
};

// Sums over one chunk of an island, added up in the order of chunks.
struct DerivativeSums {
  SharedInputs shared;
  double cost{0};
  double kink_margin{1};
};

template <typename Pool>
struct PoolAdjoint {
  static constexpr int kRows = Pool::Laws::kRows;

  ConstraintVectors<kRows> v_c;    // J u of a vector u of velocities, or what J' is multiplied with
  ConstraintVectors<kRows> gamma;  // reverse: p;  forward: d gamma at v held
  ConstraintVectors<kRows> dJ_v;   // forward: dJ v
  std::vector<double> w;           // [1/kg]; 0 where no parameter depends on it
  // dw/dW, with zeros in rows by which w is not estimated; 0 where w does not follow from J and A.
  ConstraintMatrices<kRows> w_by_W;
  // dw/dmu of a contact in the first row, dw/dmu_j in those of its rotation.
  ConstraintVectors<kRows> w_by_friction;
  ConstraintMatrices<kRows> W_bar;   // dw/dW w_bar
  std::vector<DerivativeSums> sums;  // by chunks of the units of an island
  typename Pool::Jacobians dJ;       // forward

  size_t storage_bytes() const {
    return StorageBytes(v_c, gamma, dJ_v, w, w_by_W, W_bar, sums, dJ);
  }
};

// Whether contacts of a pool have rows of rotation.
template <int index>
constexpr bool HasRotation(PoolIndex<index>) {
  return PoolAt<index>::Laws::kRows > 3;
}

// Calls body(friction, dw/dfriction) for the coefficients in `inputs` that w of contact i depends
// on: mu, and those about the axes of its rows of rotation.
template <typename Adjoint, typename Body>
inline void ForFrictionOfDelassus(const Adjoint& adjoint, int i, ConeInputs* inputs, Body&& body) {
  constexpr int kRows = Adjoint::kRows;
  const LawVector<kRows>& slope = adjoint.w_by_friction.At(i);
  body(inputs->mu, slope[0]);
  for (int row = 3; row < kRows; ++row) {
    body(inputs->angular_friction[row - kRows + 3], slope[row]);
  }
}

struct AdjointData {
  std::vector<double> right_side;  // s, or that of a direction
  std::vector<double> lambda;      // or dv
  std::vector<double> v_before;    // before the polishing step
  std::vector<DerivativeSums> slot_sums;
  GrowingBuffer<double> A_inverse;  // as w is made with it: of A, or of its diagonal alone
  PerPool<PoolAdjoint> pools;

  void Resize(const ConstraintGraph& graph, bool with_directions);
  size_t storage_bytes() const {
    return StorageBytes(right_side, lambda, v_before, slot_sums, A_inverse, pools);
  }
};

// G x of constraint i of a pool.
template <int index, size_t rows>
inline std::array<double, rows> MultiplyG(const IslandView& view, const SapData& data,
                                          PoolIndex<index> pool, int i,
                                          const std::array<double, rows>& x) {
  const auto G = [&] {
    if constexpr (IsQuadratic(pool)) {
      return view.model.pools[pool].laws.constant_hessians().At(i);
    } else {
      return ToLawMatrix(data.pools[pool].G.At(i));
    }
  }();
  std::array<double, rows> product{};
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < rows; ++c) product[r] += G(r, c) * x[c];
  }
  return product;
}

// v_c := J u.
void MultiplyJacobians(const IslandView& view, const std::vector<double>& u, const StopToken& stop,
                       AdjointData* adjoint);

// x += J' of what v_c holds.
void AddImpulses(const IslandView& view, const AdjointData& adjoint, const StopToken& stop,
                 std::vector<double>* x);

}  // namespace sap
