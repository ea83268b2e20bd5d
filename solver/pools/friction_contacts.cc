#include "solver/pools/friction_contacts.h"

namespace sap {

void FrictionContacts::Resize(int size) {
  v_hat_.resize(size);
  target_size_.resize(size);
  for (std::vector<double>* array :
       {&R_t_, &R_n_, &inv_R_t_, &inv_R_n_, &mu_, &mu_hat_, &slide_factor_}) {
    array->resize(size);
  }
}

void FrictionContacts::Set(int contact, const Parameters& parameters) {
  const ConeParameters<double> cone = parameters.Cone();
  v_hat_.Set(contact, parameters.v_hat);
  target_size_.Set(contact, parameters.target_size);
  R_t_[contact] = cone.R_t;
  R_n_[contact] = cone.R_n;
  inv_R_t_[contact] = cone.inv_R_t;
  inv_R_n_[contact] = cone.inv_R_n;
  mu_[contact] = cone.mu;
  mu_hat_[contact] = cone.mu_hat;
  slide_factor_[contact] = cone.slide_factor;
}

CostSum FrictionContacts::Impulses(int begin, int end, const ContactVectors& v_c,
                                   ContactVectors* gamma) const {
  Lanes4 cost4{};
  double cost = 0;
  const auto add = [&](auto&& value) {
    if constexpr (sizeof(value) == sizeof(double)) {
      cost += value;
    } else {
      cost4 += value;
    }
  };
  ForLanes(begin, end, [&](int i, auto lanes) {
    const auto parameters = At(i, lanes);
    const auto point = ProjectOnCone(parameters, v_c.At(i, lanes));
    gamma->Set(i, point.gamma);
    add(ConeCost(parameters, point.gamma));
  });
  const double sum = Sum(cost4) + cost;
  return {sum, sum};  // no term is negative
}

void FrictionContacts::Hessians(int begin, int end, const ContactVectors& v_c,
                                ContactMatrices* G) const {
  ForLanes(begin, end, [&](int i, auto lanes) {
    const auto parameters = At(i, lanes);
    const auto point = ProjectOnCone(parameters, v_c.At(i, lanes));
    G->Set(i, ConeHessian(parameters, point, point.t_hat_x, point.t_hat_y));
  });
}

void FrictionContacts::Hessians(int begin, int end, const ContactVectors& v_c,
                                const DualDirections& s, ContactMatrices* G) const {
  ForLanes(begin, end, [&](int i, auto lanes) {
    using Lanes = decltype(lanes);
    const auto parameters = At(i, lanes);
    const auto point = ProjectOnCone(parameters, v_c.At(i, lanes));
    G->Set(i, ConeHessian(parameters, point, Load<Lanes>(&s.x[i]), Load<Lanes>(&s.y[i])));
  });
}

GeneralCone<3>::Parameters FrictionContacts::cone(int contact) const {
  const double mu = mu_[contact];
  return GeneralCone<3>::Parameters::Make(R_t_[contact], R_n_[contact], {mu, mu, 1},
                                          ToLawVector(v_hat_.At(contact)), 0);
}

struct FrictionContacts::GeneralContact {
  GeneralCone<3>::Parameters parameters;
  LawVector<3> v_c;
  ConeRegion region;
};

FrictionContacts::GeneralContact FrictionContacts::AsGeneral(int contact,
                                                             const ContactVectors& v_c) const {
  const ContactVector<double> v = v_c.At(contact);
  const ConePoint<double> point = ProjectOnCone(At(contact, double{}), v);
  ConeRegion region = point.slide ? ConeRegion::kSlide : ConeRegion::kOpen;
  if (point.stick) region = ConeRegion::kStick;
  return {cone(contact), ToLawVector(v), region};
}

FrictionContacts::Sensitivity FrictionContacts::SensitivityAt(int contact,
                                                              const ContactVectors& v_c) const {
  const GeneralContact general = AsGeneral(contact, v_c);
  return GeneralCone<3>::SensitivityAt(general.parameters, general.v_c, general.region);
}

double FrictionContacts::KinkMargin(int contact, const ContactVectors& v_c,
                                    const KinkScales& scales) const {
  const GeneralContact general = AsGeneral(contact, v_c);
  return GeneralCone<3>::KinkMargin(general.parameters, general.v_c, general.region, scales);
}

LineSlope FrictionContacts::AlongLine(int begin, int end, const ContactVectors& v_c,
                                      const ContactVectors& dv_c, double alpha) const {
  Lanes4 first4{};
  Lanes4 second4{};
  LineSlope slope;
  const auto add = [&](const auto& at_contact) {
    if constexpr (sizeof(at_contact) == sizeof(ConeSlope<double>)) {
      slope.first += at_contact.first;
      slope.second += at_contact.second;
    } else {
      first4 += at_contact.first;
      second4 += at_contact.second;
    }
  };
  ForLanes(begin, end, [&](int i, auto lanes) {
    const auto parameters = At(i, lanes);
    const auto direction = dv_c.At(i, lanes);
    auto v = v_c.At(i, lanes);
    v.x += alpha * direction.x;
    v.y += alpha * direction.y;
    v.n += alpha * direction.n;
    add(ConeAlongLine(parameters, ProjectOnCone(parameters, v), direction));
  });
  slope.first += Sum(first4);
  slope.second += Sum(second4);
  return slope;
}

void FrictionContacts::StartDualDirections(int begin, int end, const ContactVectors&,
                                           const ContactVectors& gamma, DualDirections* s) const {
  ForLanes(begin, end, [&](int i, auto lanes) {
    decltype(lanes) s_x, s_y;
    DualDirectionOf(At(i, lanes), gamma.At(i, lanes), &s_x, &s_y);
    Store(&s->x[i], s_x);
    Store(&s->y[i], s_y);
  });
}

void FrictionContacts::UpdateDualDirections(int begin, int end, const ContactVectors& v_c,
                                            const ContactVectors& dv_c, DualDirections* s) const {
  ForLanes(begin, end, [&](int i, auto lanes) {
    using Lanes = decltype(lanes);
    const auto parameters = At(i, lanes);
    const auto point = ProjectOnCone(parameters, v_c.At(i, lanes));
    Lanes s_x = Load<Lanes>(&s->x[i]);
    Lanes s_y = Load<Lanes>(&s->y[i]);
    UpdateDualDirection(parameters, point, dv_c.At(i, lanes), &s_x, &s_y);
    Store(&s->x[i], s_x);
    Store(&s->y[i], s_y);
  });
}

}  // namespace sap
