#include "solver/pools/cone_laws.h"

namespace sap {

template <typename Cones>
bool RoundLaws<Cones>::IsKinked(int i, const Vectors& v_c, const Vectors& gamma) const {
  return laws_.IsKinked(i, v_c, gamma);
}

template <typename Cones>
CostSum RoundLaws<Cones>::Impulses(int begin, int end, const Vectors& v_c, Vectors* gamma) const {
  return laws_.Impulses(begin, end, v_c, gamma);
}

template <typename Cones>
void RoundLaws<Cones>::Hessians(int begin, int end, const Vectors& v_c, Matrices* G) const {
  laws_.Hessians(begin, end, v_c, G);
}

template <typename Cones>
void RoundLaws<Cones>::Hessians(int begin, int end, const Vectors& v_c, const Directions& s,
                                Matrices* G) const {
  laws_.Hessians(begin, end, v_c, s, G);
}

template <typename Cones>
LineSlope RoundLaws<Cones>::AlongLine(int begin, int end, const Vectors& v_c, const Vectors& dv_c,
                                      double alpha) const {
  return laws_.AlongLine(begin, end, v_c, dv_c, alpha);
}

template <typename Cones>
void RoundLaws<Cones>::StartDualDirections(int begin, int end, const Vectors& v_c,
                                           const Vectors& gamma, Directions* s) const {
  laws_.StartDualDirections(begin, end, v_c, gamma, s);
}

template <typename Cones>
void RoundLaws<Cones>::UpdateDualDirections(int begin, int end, const Vectors& v_c,
                                            const Vectors& dv_c, Directions* s) const {
  laws_.UpdateDualDirections(begin, end, v_c, dv_c, s);
}

template <typename Cones>
typename RoundLaws<Cones>::Vector RoundLaws<Cones>::ImpulseError(int i, const Vectors& v_c,
                                                                 const Vectors& gamma,
                                                                 const Vector& error) const {
  Vector bound;
  FromLawVector(laws_.ImpulseError(i, v_c, gamma, ToLawVector(error)), &bound);
  return bound;
}

template class RoundLaws<FrictionContacts>;
template class RoundLaws<LawArray<GeneralCone<3>>>;
template class RoundLaws<LawArray<GeneralCone<4>>>;
template class RoundLaws<LawArray<GeneralCone<6>>>;

}  // namespace sap
