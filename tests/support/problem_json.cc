#include "tests/support/problem_json.h"

#include <zlib.h>

#include <limits>
#include <string>

namespace sap::test {

namespace {

// The text of a file, gzipped or not: zlib reads both.
std::string ReadText(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  char buffer[1 << 16];
  for (int got = gzread(file, buffer, sizeof(buffer)); got > 0;
       got = gzread(file, buffer, sizeof(buffer))) {
    text.append(buffer, static_cast<size_t>(got));
  }
  gzclose(file);
  return text;
}

template <typename Value>
void Read(const Json& from, const char* key, std::vector<Value>* to) {
  if (!from.contains(key)) return;
  from.at(key).get_to(*to);
}

// Infinities are strings, as in all JSON of Protocol Buffers.
double Number(const Json& value) {
  if (!value.is_string()) return value.get<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  return value == "-Infinity" ? -infinity : infinity;
}

void Read(const Json& from, const char* key, std::vector<double>* to) {
  if (!from.contains(key)) return;
  for (const Json& value : from.at(key)) to->push_back(Number(value));
}

void Read(const Json& from, const char* key, double* to) {
  if (from.contains(key)) *to = Number(from.at(key));
}

void ReadLaw(const Json& from, LawArrays* law) {
  Read(from, "signed_distance", &law->signed_distance);
  Read(from, "stiffness", &law->stiffness);
  Read(from, "relaxation_time", &law->relaxation_time);
  Read(from, "friction", &law->friction);
  Read(from, "regularization_t", &law->regularization_t);
  Read(from, "regularization_n", &law->regularization_n);
  Read(from, "delassus_estimate", &law->delassus_estimate);
  Read(from, "surface_velocity", &law->surface_velocity);
  Read(from, "friction_2", &law->friction_2);
  Read(from, "torsional_friction", &law->torsional_friction);
  Read(from, "rolling_friction", &law->rolling_friction);
  Read(from, "target_velocity", &law->target_velocity);
  Read(from, "target_angular_velocity", &law->target_angular_velocity);
  Read(from, "adhesion", &law->adhesion);
  if (from.contains("law")) {
    for (const std::string name : from.at("law")) {
      law->law.push_back(name == "CONTACT_LAW_HUNT_CROSSLEY_LAGGED"    ? 2
                         : name == "CONTACT_LAW_HUNT_CROSSLEY_SIMILAR" ? 3
                                                                       : 1);
    }
  }
  const Json hunt_crossley = from.value("hunt_crossley", Json::object());
  Read(hunt_crossley, "elastic_force", &law->elastic_force);
  Read(hunt_crossley, "dissipation", &law->dissipation);
  Read(hunt_crossley, "lagged_normal_impulse", &law->lagged_normal_impulse);
}

void ReadBodies(const Json& from, ProblemArrays::Bodies* bodies) {
  Read(from, "mass", &bodies->mass);
  Read(from, "inertia", &bodies->inertia);
  Read(from, "center_of_mass", &bodies->center_of_mass);
  Read(from, "free_motion_velocity", &bodies->free_motion_velocity);
  Read(from, "guess_velocity", &bodies->guess_velocity);
  Read(from, "initial_velocity", &bodies->initial_velocity);
}

void ReadRows(const Json& from, ProblemArrays::Rows* rows) {
  Read(from, "entries", &rows->entries);
  Read(from, "velocity_index", &rows->velocity_index);
  Read(from, "coefficient", &rows->coefficient);
  Read(from, "position_error", &rows->position_error);
  Read(from, "velocity_offset", &rows->velocity_offset);
  Read(from, "stiffness", &rows->stiffness);
  Read(from, "relaxation_time", &rows->relaxation_time);
  Read(from, "force_lower", &rows->force_lower);
  Read(from, "force_upper", &rows->force_upper);
  Read(from, "regularization", &rows->regularization);
  Read(from, "target_velocity", &rows->target_velocity);
  Read(from, "delassus_estimate", &rows->delassus_estimate);
  Read(from, "slip_parameter", &rows->slip_parameter);
  Read(from, "force_offset", &rows->force_offset);
}

void ReadContacts(const Json& json, ProblemArrays* arrays) {
  const Json contacts = json.value("contacts", Json::object());
  Read(contacts, "tree_a", &arrays->contacts.tree_a);
  Read(contacts, "tree_b", &arrays->contacts.tree_b);
  Read(contacts, "jacobian", &arrays->contacts.jacobian);
  Read(contacts, "angular_jacobian", &arrays->contacts.angular_jacobian);
  ReadLaw(contacts, &arrays->contacts.law);
  const Json body_contacts = json.value("body_contacts", Json::object());
  Read(body_contacts, "body_a", &arrays->body_contacts.body_a);
  Read(body_contacts, "body_b", &arrays->body_contacts.body_b);
  Read(body_contacts, "point", &arrays->body_contacts.point);
  Read(body_contacts, "normal", &arrays->body_contacts.normal);
  Read(body_contacts, "tangent", &arrays->body_contacts.tangent);
  ReadLaw(body_contacts, &arrays->body_contacts.law);
}

void ReadRegularization(const Json& from, ContactProblemView::Regularization* regularization) {
  Read(from, "beta", &regularization->beta);
  Read(from, "sigma", &regularization->sigma);
  Read(from, "row_beta", &regularization->row_beta);
  Read(from, "stiction_speed", &regularization->stiction_speed);
  Read(from, "load_reference_speed", &regularization->load_reference_speed);
  const std::string rule = from.value("rule", "");
  if (rule == "REGULARIZATION_RULE_DIAGONAL") regularization->rule = DelassusRule::kDiagonal;
  if (rule == "REGULARIZATION_RULE_LOAD_PATH") regularization->rule = DelassusRule::kLoadPath;
}

}  // namespace

Json ReadJson(const std::filesystem::path& path) {
  return Json::parse(ReadText(path), nullptr, false);
}

void ReadValues(const Json& from, const char* key, std::vector<double>* to) { Read(from, key, to); }

ProblemArrays ProblemFromJson(const Json& json) {
  ProblemArrays arrays;
  arrays.time_step = json.at("time_step").get<double>();
  const Json trees = json.value("trees", Json::object());
  Read(trees, "dofs", &arrays.trees.dofs);
  Read(trees, "dynamics_matrix", &arrays.trees.dynamics_matrix);
  Read(trees, "free_motion_velocity", &arrays.trees.free_motion_velocity);
  Read(trees, "guess_velocity", &arrays.trees.guess_velocity);
  Read(trees, "initial_velocity", &arrays.trees.initial_velocity);
  ReadBodies(json.value("bodies", Json::object()), &arrays.bodies);
  ReadContacts(json, &arrays);
  ReadRows(json.value("rows", Json::object()), &arrays.rows);
  ReadRegularization(json.value("regularization", Json::object()), &arrays.regularization);
  return arrays;
}

}  // namespace sap::test
