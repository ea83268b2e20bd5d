// The list of all kinds of constraints. A pool is the laws of one kind and their Jacobians; loops
// over an island choose the pool once per range of constraints.
//
// Another kind takes a law (a header as laws/bounded_row.h, which brings its parameters and their
// derivatives), a value of ConstraintKind with its number of rows, a line in the list below, and a
// reader that gives constraints this kind (problem/read_law.cc, read_rows.cc); see
// .github/CONTRIBUTING.md.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "solver/laws/bounded_row.h"
#include "solver/laws/hunt_crossley.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/pools/cone_laws.h"
#include "solver/pools/contact_jacobians.h"
#include "solver/pools/friction_contacts.h"
#include "solver/pools/law_array.h"
#include "solver/pools/row_jacobians.h"
#include "solver/problem/constraint_kind.h"

namespace sap {

template <ConstraintKind kind, typename LawsType, typename JacobiansType>
struct ConstraintPool {
  static constexpr ConstraintKind kKind = kind;
  using Laws = LawsType;
  using Jacobians = JacobiansType;
  static_assert(Laws::kRows == NumRows(kind));
  size_t storage_bytes() const { return StorageBytes(laws, jacobians); }

  LawsType laws;
  JacobiansType jacobians;
};

template <ConstraintKind kind, typename Law>
using ContactPool = ConstraintPool<kind, LawArray<Law>, ContactJacobians<Law::kRows>>;
template <ConstraintKind kind, typename Cones>
using ConePool = ConstraintPool<kind, ConeLaws<Cones>, ContactJacobians<Cones::kRows>>;
template <ConstraintKind kind, typename Law>
using RowPool = ConstraintPool<kind, LawArray<Law>, RowJacobians>;

// The list of all kinds, in the order of ConstraintKind.
using ConstraintPools =
    std::tuple<ConePool<ConstraintKind::kFriction, FrictionContacts>,
               ConePool<ConstraintKind::kCone, LawArray<GeneralCone<3>>>,
               ConePool<ConstraintKind::kSpinCone, LawArray<GeneralCone<4>>>,
               ConePool<ConstraintKind::kRollingCone, LawArray<GeneralCone<6>>>,
               ContactPool<ConstraintKind::kHuntCrossleyLagged, LaggedHuntCrossley>,
               ContactPool<ConstraintKind::kHuntCrossleySimilar, SimilarHuntCrossley>,
               RowPool<ConstraintKind::kBilateralRow, BilateralRow>,
               RowPool<ConstraintKind::kBoundedRow, BoundedRow>>;
static_assert(std::tuple_size_v<ConstraintPools> == kNumConstraintKinds);

template <int index>
struct PoolIndex : std::integral_constant<int, index> {
  static constexpr ConstraintKind kind() { return static_cast<ConstraintKind>(index); }
};
template <int index>
using PoolAt = std::tuple_element_t<index, ConstraintPools>;

constexpr PoolIndex<static_cast<int>(ConstraintKind::kFriction)> kFrictionPool;
constexpr PoolIndex<static_cast<int>(ConstraintKind::kBilateralRow)> kBilateralPool;

// Whether the constraints of a pool are rows, else contacts.
template <int index>
constexpr bool IsRow(PoolIndex<index>) {
  return index >= kNumContactKinds;
}

// Whether the cost of a pool is quadratic in v, so that its Hessian never changes.
template <int index>
constexpr bool IsQuadratic(PoolIndex<index> pool) {
  return PoolAt<pool>::Laws::kIsQuadratic;
}

// Whether laws of a pool stand for stiff constraints on a curved surface (hunt_crossley.h).
template <int index>
constexpr bool IsCurved(PoolIndex<index>) {
  return requires { requires PoolAt<index>::Laws::kIsCurved; };
}

// Whether the constraints of a pool are cones, which can have exact Coulomb friction.
template <int index>
constexpr bool IsCone(PoolIndex<index>) {
  return requires(typename PoolAt<index>::Laws laws) { laws.InRounds(0); };
}

// Calls body(laws) with the laws that constraint i of a pool has now, of rounds if it is in them.
template <typename Laws, typename Body>
void WithLawsAt(const Laws& laws, int i, Body&& body) {
  if constexpr (requires { laws.InRounds(i); }) {
    laws.WithLawsAt(i, body);
  } else {
    body(laws);
  }
}

namespace detail {
template <template <typename> typename Member, typename Pools>
struct PerPoolOf;
template <template <typename> typename Member, typename... Pools>
struct PerPoolOf<Member, std::tuple<Pools...>> {
  using Type = std::tuple<Member<Pools>...>;
};
}  // namespace detail

// A tuple with one Member<Pool> for each pool, and access to it by index.
template <template <typename> typename Member>
struct PerPool {
  typename detail::PerPoolOf<Member, ConstraintPools>::Type members;
  size_t storage_bytes() const { return StorageBytes(members); }

  template <int index>
  auto& operator[](PoolIndex<index>) {
    return std::get<index>(members);
  }
  template <int index>
  const auto& operator[](PoolIndex<index>) const {
    return std::get<index>(members);
  }
};

// Calls body(PoolIndex) for each pool in the order of the list.
template <typename Body>
inline void ForEachPool(Body&& body) {
  [&]<int... indices>(std::integer_sequence<int, indices...>) { (body(PoolIndex<indices>()), ...); }
  (std::make_integer_sequence<int, kNumConstraintKinds>());
}

// The layout of a pool.
template <int index>
inline const auto& LayoutOf(const ConstraintGraph& graph, PoolIndex<index>) {
  return PoolAt<index>::Jacobians::LayoutOf(graph, PoolAt<index>::kKind);
}

// The range of an island in a pool: units of loops (groups of contacts, or rows) and constraints.
struct PoolRange {
  int unit_begin, unit_end;
  int begin, end;
};
inline PoolRange RangeOf(const ContactRange& range) {
  return {range.group_begin, range.group_end, range.contact_begin, range.contact_end};
}
inline PoolRange RangeOf(const IndexRange& range) {
  return {range.begin, range.end, range.begin, range.end};
}

}  // namespace sap
