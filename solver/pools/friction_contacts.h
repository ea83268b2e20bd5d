// The friction contacts of a problem: a structure of arrays and functions over ranges of it.
//
// Calls are per range, not per contact, so that the loops run on four contacts at once. The
// mathematics of a single contact is in friction_cone.h.
#pragma once

#include <vector>

#include "solver/laws/friction_cone.h"
#include "solver/laws/general_cone.h"
#include "solver/parallel/storage_bytes.h"

namespace sap {

inline LawVector<3> ToLawVector(const ContactVector<double>& vector) {
  return {vector.x, vector.y, vector.n};
}
inline void FromLawVector(const LawVector<3>& vector, ContactVector<double>* to) {
  *to = {vector[0], vector[1], vector[2]};
}
inline LawMatrix<3> ToLawMatrix(const SymmetricMatrix3<double>& G) {
  return {{G.xx, G.xy, G.xn, G.xy, G.yy, G.yn, G.xn, G.yn, G.nn}};
}
inline SymmetricMatrix3<double> ToSymmetricMatrix(const LawMatrix<3>& G) {
  return {G(0, 0), G(0, 1), G(1, 1), G(0, 2), G(1, 2), G(2, 2)};
}

// Arrays of three components in the contact frame, one entry per contact.
struct ContactVectors {
  using Vector = ContactVector<double>;
  std::vector<double> x, y, n;

  void resize(size_t size) {
    x.resize(size);
    y.resize(size);
    n.resize(size);
  }
  size_t storage_bytes() const { return StorageBytes(x, y, n); }
  template <typename Lanes>
  ContactVector<Lanes> At(int i, Lanes) const {
    return {Load<Lanes>(&x[i]), Load<Lanes>(&y[i]), Load<Lanes>(&n[i])};
  }
  ContactVector<double> At(int i) const { return At(i, double{}); }
  template <typename Lanes>
  void Set(int i, const ContactVector<Lanes>& value) {
    Store(&x[i], value.x);
    Store(&y[i], value.y);
    Store(&n[i], value.n);
  }
  void Set(int i, const LawVector<3>& value) {
    ContactVector<double> vector;
    FromLawVector(value, &vector);
    Set(i, vector);
  }
  void AddScaled(int i, double factor, const ContactVectors& other) {
    x[i] += factor * other.x[i];
    y[i] += factor * other.y[i];
    n[i] += factor * other.n[i];
  }
};

// Arrays of symmetric 3 x 3 matrices.
struct ContactMatrices {
  std::vector<double> xx, xy, yy, xn, yn, nn;

  void resize(size_t size) {
    for (std::vector<double>* array : {&xx, &xy, &yy, &xn, &yn, &nn}) array->resize(size);
  }
  size_t storage_bytes() const { return StorageBytes(xx, xy, yy, xn, yn, nn); }
  SymmetricMatrix3<double> At(int i) const { return {xx[i], xy[i], yy[i], xn[i], yn[i], nn[i]}; }
  template <typename Lanes>
  void Set(int i, const SymmetricMatrix3<Lanes>& value) {
    Store(&xx[i], value.xx);
    Store(&xy[i], value.xy);
    Store(&yy[i], value.yy);
    Store(&xn[i], value.xn);
    Store(&yn[i], value.yn);
    Store(&nn[i], value.nn);
  }
  void Set(int i, const LawMatrix<3>& G) { Set(i, ToSymmetricMatrix(G)); }
};

// Dual directions s of the accelerated method (friction_cone.h).
struct DualDirections {
  std::vector<double> x, y;

  void resize(size_t size) {
    x.resize(size);
    y.resize(size);
  }
  size_t storage_bytes() const { return StorageBytes(x, y); }
  std::array<double, 2> At(int i) const { return {x[i], y[i]}; }
  void Set(int i, const std::array<double, 2>& s) {
    x[i] = s[0];
    y[i] = s[1];
  }
};

// The parameters of a friction contact by which it is differentiated, of four with Lanes4.
template <typename Lanes>
struct FrictionParameters {
  Lanes R_t, R_n;                      // [1/kg]
  Lanes mu;                            // [-]
  ContactVector<Lanes> v_hat;          // less the velocity of the surface (t1, t2, n) [m/s]
  ContactVector<Lanes> target_size{};  // |v_hat| + |b|, the sizes of its parts

  // The square of mu has to be finite as well: mu mu_hat is then good to 1e-15 where R_t / R_n is
  // next to the least double.
  decltype(Lanes{} < Lanes{}) IsRepresentable() const {
    return All(R_t > 0.0, R_n > 0.0, IsFinite(1.0 / R_t), IsFinite(1.0 / R_n), IsFinite(R_t),
               IsFinite(R_n), IsFinite(v_hat.n), IsFinite(mu * mu),
               IsFinite(mu * (mu * (R_t / R_n))));
  }
  ConeParameters<Lanes> Cone() const {
    const Lanes mu_hat = mu * (R_t / R_n);
    return {v_hat.x,   v_hat.y,   v_hat.n, R_t,    R_n,
            1.0 / R_t, 1.0 / R_n, mu,      mu_hat, 1.0 / (1.0 + mu * mu_hat)};
  }
};

class FrictionContacts {
 public:
  using Vectors = ContactVectors;
  using Matrices = ContactMatrices;
  using Directions = DualDirections;
  static constexpr int kRows = 3;
  static constexpr bool kIsQuadratic = false;

  using Parameters = FrictionParameters<double>;
  // Parameters from the inputs of the problem, with the partial derivatives of a general cone.
  using Inputs = ConeInputs;
  static Parameters Make(const ConeInputs& in, auto& d, auto&& partials) {
    const auto cone = ConeTerms<kRows>::Make(in, d, partials);
    const auto& [x, y, n] = cone.v_hat;
    const auto& [size_x, size_y, size_n] = cone.target_size;
    return {cone.R_t, cone.R_n, cone.mu[0], {x, y, n}, {size_x, size_y, size_n}};
  }

  void Resize(int size);
  void Set(int contact, const Parameters& parameters);

  template <typename Lanes>
  ConeParameters<Lanes> At(int i, Lanes) const {
    return {Load<Lanes>(&v_hat_.x[i]),     Load<Lanes>(&v_hat_.y[i]), Load<Lanes>(&v_hat_.n[i]),
            Load<Lanes>(&R_t_[i]),         Load<Lanes>(&R_n_[i]),     Load<Lanes>(&inv_R_t_[i]),
            Load<Lanes>(&inv_R_n_[i]),     Load<Lanes>(&mu_[i]),      Load<Lanes>(&mu_hat_[i]),
            Load<Lanes>(&slide_factor_[i])};
  }
  // The same law as that of a general cone.
  GeneralCone<3>::Parameters cone(int contact) const;

  ContactVector<double> target_size(int contact) const { return target_size_.At(contact); }
  static bool HasNonNegativeCost(int) { return true; }
  // Whether the impulse lies on the surface of its cone, which means that the contact slides.
  bool IsKinked(int contact, const ContactVectors&, const ContactVectors& impulses) const {
    constexpr double kRounding = 1e-9;
    const ContactVector<double> gamma = impulses.At(contact);
    const double limit = mu_[contact] * gamma.n;
    return limit > 0 && gamma.x * gamma.x + gamma.y * gamma.y >= limit * limit * (1 - kRounding);
  }

  // Impulses gamma at contact velocities v_c, for contacts in [begin, end), and their cost.
  CostSum Impulses(int begin, int end, const ContactVectors& v_c, ContactVectors* gamma) const;

  // G at v_c, of the cost itself.
  void Hessians(int begin, int end, const ContactVectors& v_c, ContactMatrices* G) const;

  // G at v_c with dual directions s.
  void Hessians(int begin, int end, const ContactVectors& v_c, const DualDirections& s,
                ContactMatrices* G) const;

  // Derivatives of the cost along v_c + alpha dv_c at alpha.
  LineSlope AlongLine(int begin, int end, const ContactVectors& v_c, const ContactVectors& dv_c,
                      double alpha) const;

  // Dual directions that belong to impulses, and those after a full Newton step of dv_c from v_c.
  void StartDualDirections(int begin, int end, const ContactVectors&, const ContactVectors& gamma,
                           DualDirections* s) const;
  void UpdateDualDirections(int begin, int end, const ContactVectors& v_c,
                            const ContactVectors& dv_c, DualDirections* s) const;

  // Derivatives with respect to the parameters at fixed v_c, and the distance from the kinks, those
  // of a general cone with equal coefficients and no adhesion, in the region of the impulse.
  using Sensitivity = GeneralCone<3>::Sensitivity;
  Sensitivity SensitivityAt(int contact, const ContactVectors& v_c) const;
  double KinkMargin(int contact, const ContactVectors& v_c, const KinkScales& scales) const;

  ContactVector<double> ImpulseError(int contact, const ContactVectors&,
                                     const ContactVectors& impulses,
                                     const ContactVector<double>& error) const {
    return ConeImpulseError(At(contact, double{}), impulses.At(contact), error);
  }
  size_t storage_bytes() const {
    return StorageBytes(v_hat_, target_size_, R_t_, R_n_, inv_R_t_, inv_R_n_, mu_, mu_hat_,
                        slide_factor_);
  }

 private:
  struct GeneralContact;
  GeneralContact AsGeneral(int contact, const ContactVectors& v_c) const;

  ContactVectors v_hat_, target_size_;
  std::vector<double> R_t_, R_n_, inv_R_t_, inv_R_n_, mu_, mu_hat_, slide_factor_;
};

}  // namespace sap
