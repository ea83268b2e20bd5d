#include "tests/client/c/c_structs.h"

#include <google/protobuf/reflection.h>

#include <sstream>
#include <type_traits>

#include "solver/problem/problem_fields.h"

namespace sap::test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::RepeatedField;

struct Place {
  const Message* owner;
  const FieldDescriptor* field;
};

Place Find(const Message& message, const std::string& path) {
  Place place{&message, nullptr};
  std::istringstream names(path);
  for (std::string name; std::getline(names, name, '.');) {
    if (place.field != nullptr) {
      place.owner = &place.owner->GetReflection()->GetMessage(*place.owner, place.field);
    }
    place.field = place.owner->GetDescriptor()->FindFieldByName(name);
  }
  return place;
}

Message* MutableOwner(Message* message, const std::string& path) {
  std::istringstream names(path);
  std::string name;
  for (std::getline(names, name, '.'); !names.eof(); std::getline(names, name, '.')) {
    message = message->GetReflection()->MutableMessage(
        message, message->GetDescriptor()->FindFieldByName(name));
  }
  return message;
}

template <typename Value, typename Array>
void Point(const RepeatedField<Value>& field, Array* array) {
  *array = {reinterpret_cast<decltype(array->data)>(field.data()), field.size()};
}

sap_cotangent CotangentOf(const v1::Cotangent& message) {
  sap_cotangent cotangent{};
  cotangent.struct_size = sizeof cotangent;
  Point(message.velocity(), &cotangent.velocity);
  Point(message.impulse(), &cotangent.impulse);
  Point(message.contact_velocity(), &cotangent.contact_velocity);
  Point(message.row_impulse(), &cotangent.row_impulse);
  Point(message.row_velocity(), &cotangent.row_velocity);
  Point(message.angular_impulse(), &cotangent.angular_impulse);
  cotangent.cost = message.cost();
  return cotangent;
}

template <typename Array, typename Field>
void Fill(const Array& array, Field* field) {
  field->Add(array.data, array.data + array.length);
}

}  // namespace

template <typename Visit>
void CProblem::ForEachDoubles(const Visit& visit) {
  using View = ContactProblemView;
  const auto visit_group = [&visit](const std::string& prefix) {
    return [&visit, prefix]<typename Value>(const ProblemField<Value>& field, auto& array) {
      if constexpr (std::is_same_v<Value, double>) visit(prefix + std::string(field.name), array);
    };
  };
  View::Trees::ForEach(visit_group("trees."), trees);
  View::RigidBodies::ForEach(visit_group("bodies."), bodies);
  View::Contacts::ForEach(visit_group("contacts."), contacts);
  View::Law::ForEach(visit_group("contacts."), laws);
  View::HuntCrossley::ForEach(visit_group("contacts.hunt_crossley."), hunt_crossley);
  View::BodyContacts::ForEach(visit_group("body_contacts."), body_contacts);
  View::Law::ForEach(visit_group("body_contacts."), body_laws);
  View::HuntCrossley::ForEach(visit_group("body_contacts.hunt_crossley."), body_hunt_crossley);
  View::Rows::ForEach(visit_group("rows."), rows);
}

CProblem::CProblem(const v1::ContactProblem& message) {
  trees.struct_size = sizeof trees;
  bodies.struct_size = sizeof bodies;
  hunt_crossley.struct_size = body_hunt_crossley.struct_size = sizeof hunt_crossley;
  laws.struct_size = body_laws.struct_size = sizeof laws;
  laws.hunt_crossley = &hunt_crossley;
  body_laws.hunt_crossley = &body_hunt_crossley;
  contacts.struct_size = sizeof contacts;
  contacts.laws = &laws;
  body_contacts.struct_size = sizeof body_contacts;
  body_contacts.laws = &body_laws;
  rows.struct_size = sizeof rows;
  regularization.struct_size = sizeof regularization;
  problem = {sizeof problem, message.time_step(), &trees, &bodies,
             &contacts,      &body_contacts,      &rows,  &regularization};
  ForEachDoubles([&](const std::string& path, sap_doubles& array) {
    const auto [owner, field] = Find(message, path);
    const auto values = owner->GetReflection()->GetRepeatedFieldRef<double>(*owner, field);
    std::vector<double>& copy = doubles_.emplace_back(values.begin(), values.end());
    array = {copy.data(), static_cast<int64_t>(copy.size())};
  });
  Point(message.trees().dofs(), &trees.dofs);
  Point(message.trees().tree_id(), &trees.tree_id);
  Point(message.trees().coupled_a(), &trees.coupled_a);
  Point(message.trees().coupled_b(), &trees.coupled_b);
  Point(message.bodies().body_id(), &bodies.body_id);
  Point(message.contacts().tree_a(), &contacts.tree_a);
  Point(message.contacts().tree_b(), &contacts.tree_b);
  Point(message.contacts().parts(), &contacts.parts);
  Point(message.contacts().part_tree(), &contacts.part_tree);
  Point(message.contacts().law(), &laws.law);
  Point(message.body_contacts().body_a(), &body_contacts.body_a);
  Point(message.body_contacts().body_b(), &body_contacts.body_b);
  Point(message.body_contacts().law(), &body_laws.law);
  Point(message.rows().entries(), &rows.entries);
  Point(message.rows().velocity_index(), &rows.velocity_index);
  const v1::Regularization& given = message.regularization();
  const auto number = [&](int i, bool has, double value) -> const double* {
    numbers_[i] = value;
    return has ? &numbers_[i] : nullptr;
  };
  regularization.beta = number(0, given.has_beta(), given.beta());
  regularization.sigma = number(1, given.has_sigma(), given.sigma());
  regularization.row_beta = number(2, given.has_row_beta(), given.row_beta());
  regularization.stiction_speed = number(3, given.has_stiction_speed(), given.stiction_speed());
  regularization.rule = given.rule();
  regularization.load_reference_speed =
      number(4, given.has_load_reference_speed(), given.load_reference_speed());
  regularization.reference_time_step =
      number(5, given.has_reference_time_step(), given.reference_time_step());
}

CProblem::CProblem(const sap_problem& other)
    : trees(*other.trees),
      bodies(*other.bodies),
      hunt_crossley(*other.contacts->laws->hunt_crossley),
      body_hunt_crossley(*other.body_contacts->laws->hunt_crossley),
      laws(*other.contacts->laws),
      body_laws(*other.body_contacts->laws),
      contacts(*other.contacts),
      body_contacts(*other.body_contacts),
      rows(*other.rows),
      regularization(*other.regularization),
      problem(other) {}

v1::ContactProblem CProblem::Doubles() {
  v1::ContactProblem message;
  message.set_time_step(problem.time_step);
  ForEachDoubles([&](const std::string& path, sap_doubles& array) {
    if (array.length == 0) return;
    const FieldDescriptor* field = Find(message, path).field;
    Message* owner = MutableOwner(&message, path);
    const auto values = owner->GetReflection()->GetMutableRepeatedFieldRef<double>(owner, field);
    for (int64_t i = 0; i < array.length; ++i) values.Add(array.data[i]);
  });
  v1::Regularization numbers;
  if (regularization.beta != nullptr) numbers.set_beta(*regularization.beta);
  if (regularization.sigma != nullptr) numbers.set_sigma(*regularization.sigma);
  if (regularization.row_beta != nullptr) numbers.set_row_beta(*regularization.row_beta);
  if (regularization.stiction_speed != nullptr) {
    numbers.set_stiction_speed(*regularization.stiction_speed);
  }
  if (regularization.reference_time_step != nullptr) {
    numbers.set_reference_time_step(*regularization.reference_time_step);
  }
  if (numbers.ByteSizeLong() > 0) *message.mutable_regularization() = numbers;
  return message;
}

COptions::COptions(const v1::SolveOptions& message)
    : relative_tolerance_(message.relative_tolerance()),
      absolute_speed_tolerance_(message.absolute_speed_tolerance()),
      time_budget_s_(static_cast<double>(message.time_budget().seconds()) +
                     1e-9 * message.time_budget().nanos()),
      coulomb_tolerance_(message.coulomb().tolerance()),
      horizon_(message.rest().horizon()),
      max_iterations_(message.max_iterations()),
      max_rounds_(message.coulomb().max_rounds()) {
  options_.struct_size = sizeof options_;
  if (message.has_relative_tolerance()) options_.relative_tolerance = &relative_tolerance_;
  if (message.has_absolute_speed_tolerance()) {
    options_.absolute_speed_tolerance = &absolute_speed_tolerance_;
  }
  if (message.has_max_iterations()) options_.max_iterations = &max_iterations_;
  if (message.has_time_budget()) options_.time_budget_s = &time_budget_s_;
  options_.newton = message.newton();
  options_.one_island = message.has_islands() && !message.islands();
  for (const std::string& path : message.response_mask().paths()) {
    response_mask_.push_back(path.c_str());
  }
  options_.num_response_mask = static_cast<int64_t>(response_mask_.size());
  options_.response_mask = response_mask_.data();
  options_.priority = message.priority();
  if (message.has_coulomb()) {
    coulomb_.struct_size = sizeof coulomb_;
    if (message.coulomb().has_max_rounds()) coulomb_.max_rounds = &max_rounds_;
    if (message.coulomb().has_tolerance()) coulomb_.tolerance = &coulomb_tolerance_;
    options_.coulomb = &coulomb_;
  }
  if (message.has_rest()) {
    rest_.struct_size = sizeof rest_;
    if (message.rest().has_horizon()) rest_.horizon = &horizon_;
    options_.rest = &rest_;
  }
}

CDifferentiation::CDifferentiation(const v1::DifferentiateRequest& message)
    : problem_(message.problem()), options_(message.options()) {
  for (const v1::Cotangent& cotangent : message.cotangents()) {
    cotangents_.push_back(CotangentOf(cotangent));
  }
  for (const sap_cotangent& cotangent : cotangents_) cotangent_list_.push_back(&cotangent);
  for (const v1::ContactProblem& tangent : message.tangents()) {
    tangents_.push_back(std::make_unique<CProblem>(tangent));
    tangent_list_.push_back(tangents_.back()->get());
  }
  for (const std::string& path : message.wanted().paths()) wanted_.push_back(path.c_str());
  request_.struct_size = sizeof request_;
  request_.problem = problem_.get();
  if (message.has_options()) request_.options = options_.get();
  Point(message.velocity(), &request_.velocity);
  request_.num_cotangents = static_cast<int64_t>(cotangent_list_.size());
  request_.cotangents = cotangent_list_.data();
  request_.num_tangents = static_cast<int64_t>(tangent_list_.size());
  request_.tangents = tangent_list_.data();
  request_.num_wanted = static_cast<int64_t>(wanted_.size());
  request_.wanted = wanted_.data();
  request_.hold_delassus = message.hold_delassus();
}

v1::ContactSolution MessageOf(const sap_solution& solution) {
  v1::ContactSolution message;
  Fill(solution.velocity, message.mutable_velocity());
  Fill(solution.impulse, message.mutable_impulse());
  Fill(solution.contact_velocity, message.mutable_contact_velocity());
  Fill(solution.row_impulse, message.mutable_row_impulse());
  Fill(solution.row_velocity, message.mutable_row_velocity());
  Fill(solution.angular_impulse, message.mutable_angular_impulse());
  Fill(solution.delassus_estimate, message.mutable_delassus_estimate());
  message.set_cost(solution.cost);
  Fill(solution.island_of_tree, message.mutable_island_of_tree());
  v1::IslandReports* islands = message.mutable_islands();
  const sap_island_reports& reports = *solution.islands;
  Fill(reports.status, islands->mutable_status());
  Fill(reports.iterations, islands->mutable_iterations());
  Fill(reports.factorizations, islands->mutable_factorizations());
  Fill(reports.momentum_residual, islands->mutable_momentum_residual());
  Fill(reports.optimality_gap_bound, islands->mutable_optimality_gap_bound());
  Fill(reports.dofs, islands->mutable_dofs());
  Fill(reports.contacts, islands->mutable_contacts());
  Fill(reports.rows, islands->mutable_rows());
  Fill(reports.swept, islands->mutable_swept());
  Fill(reports.rest_drift, islands->mutable_rest_drift());
  Fill(reports.sag, islands->mutable_sag());
  Fill(reports.creep, islands->mutable_creep());
  Fill(reports.cost, islands->mutable_cost());
  Fill(reports.coulomb_rounds, islands->mutable_coulomb_rounds());
  Fill(reports.coulomb_defect, islands->mutable_coulomb_defect());
  return message;
}

v1::DifferentiateResponse MessageOf(const sap_derivatives& derivatives) {
  v1::DifferentiateResponse message;
  for (int64_t i = 0; i < derivatives.num_gradients; ++i) {
    const sap_gradient& gradient = *derivatives.gradients[i];
    v1::Gradient* added = message.add_gradients();
    const v1::ContactProblem inputs = CProblem(*gradient.problem).Doubles();
    if (inputs.ByteSizeLong() > 0) *added->mutable_gradient() = inputs;
    Fill(gradient.applied_impulse, added->mutable_applied_impulse());
    Fill(gradient.delassus_estimate, added->mutable_delassus_estimate());
  }
  for (int64_t i = 0; i < derivatives.num_tangents; ++i) {
    const sap_tangent& tangent = *derivatives.tangents[i];
    v1::Tangent* added = message.add_tangents();
    Fill(tangent.velocity, added->mutable_velocity());
    Fill(tangent.impulse, added->mutable_impulse());
    Fill(tangent.contact_velocity, added->mutable_contact_velocity());
    Fill(tangent.row_impulse, added->mutable_row_impulse());
    Fill(tangent.row_velocity, added->mutable_row_velocity());
    Fill(tangent.angular_impulse, added->mutable_angular_impulse());
    added->set_cost(tangent.cost);
  }
  Fill(derivatives.kink_margin, message.mutable_kink_margin());
  Fill(derivatives.adjoint_status, message.mutable_adjoint_status());
  return message;
}

}  // namespace sap::test
