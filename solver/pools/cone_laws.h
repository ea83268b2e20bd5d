// The laws of a pool of cones, and in their place the laws of exact Coulomb friction
// (laws/coulomb_cone.h) while an island of theirs is in its rounds (newton/coulomb_rounds.h).
//
// Functions over ranges choose by the first constraint of the range: a range never leaves its
// island, and all cones of an island are in the same state. Without rounds they are those of
// `Cones`, which is inherited.
#pragma once

#include "solver/laws/coulomb_cone.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/pools/friction_contacts.h"
#include "solver/pools/law_array.h"

namespace sap {

inline GeneralCone<3>::Parameters ConeOf(const FrictionContacts& contacts, int i) {
  return contacts.cone(i);
}
template <int rows>
inline const typename GeneralCone<rows>::Parameters& ConeOf(
    const LawArray<GeneralCone<rows>>& contacts, int i) {
  return contacts.parameters(i);
}

template <typename Cones>
class ConeLaws : public Cones {
 public:
  using Law = CoulombCone<Cones::kRows>;
  using Vectors = typename Cones::Vectors;
  using Matrices = typename Cones::Matrices;
  using Directions = typename Cones::Directions;

  // Room for rounds, or none.
  void ResizeRounds(int size) { rounds_.Resize(size); }
  void Set(int i, const typename Cones::Parameters& parameters) {
    Cones::Set(i, parameters);
    if (!rounds_.empty()) rounds_.parameters(i).law = CoulombLaw::kConvex;
  }

  // Whether the constraint has another law than its cone.
  bool InRounds(int i) const {
    return !rounds_.empty() && rounds_.parameters(i).law != CoulombLaw::kConvex;
  }
  // The law of the constraint in rounds.
  void StartRounds(int i) { rounds_.Set(i, {ConeOf(*this, i)}); }
  const typename Law::Parameters& round(int i) const { return rounds_.parameters(i); }
  typename Law::Parameters& round(int i) { return rounds_.parameters(i); }

  bool IsKinked(int i, const Vectors& v_c, const Vectors& gamma) const {
    return InRounds(i) ? rounds_.IsKinked(i, v_c, gamma) : Cones::IsKinked(i, v_c, gamma);
  }
  CostSum Impulses(int begin, int end, const Vectors& v_c, Vectors* gamma) const {
    if (InRounds(begin)) return rounds_.Impulses(begin, end, v_c, gamma);
    return Cones::Impulses(begin, end, v_c, gamma);
  }
  void Hessians(int begin, int end, const Vectors& v_c, Matrices* G) const {
    if (InRounds(begin)) return rounds_.Hessians(begin, end, v_c, G);
    Cones::Hessians(begin, end, v_c, G);
  }
  void Hessians(int begin, int end, const Vectors& v_c, const Directions& s, Matrices* G) const {
    if (InRounds(begin)) return rounds_.Hessians(begin, end, v_c, s, G);
    Cones::Hessians(begin, end, v_c, s, G);
  }
  LineSlope AlongLine(int begin, int end, const Vectors& v_c, const Vectors& dv_c,
                      double alpha) const {
    if (InRounds(begin)) return rounds_.AlongLine(begin, end, v_c, dv_c, alpha);
    return Cones::AlongLine(begin, end, v_c, dv_c, alpha);
  }
  void StartDualDirections(int begin, int end, const Vectors& v_c, const Vectors& gamma,
                           Directions* s) const {
    if (InRounds(begin)) return rounds_.StartDualDirections(begin, end, v_c, gamma, s);
    Cones::StartDualDirections(begin, end, v_c, gamma, s);
  }
  void UpdateDualDirections(int begin, int end, const Vectors& v_c, const Vectors& dv_c,
                            Directions* s) const {
    if (InRounds(begin)) return rounds_.UpdateDualDirections(begin, end, v_c, dv_c, s);
    Cones::UpdateDualDirections(begin, end, v_c, dv_c, s);
  }
  // Calls body(laws) with those that constraint i has now.
  template <typename Body>
  void WithLawsAt(int i, Body&& body) const {
    InRounds(i) ? body(rounds_) : body(static_cast<const Cones&>(*this));
  }
  size_t storage_bytes() const { return Cones::storage_bytes() + StorageBytes(rounds_); }

 private:
  LawArray<Law, Cones> rounds_;  // over the arrays of `Cones`
};

}  // namespace sap
