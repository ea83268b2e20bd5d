#include "tests/support/problem_json.h"

#include <zlib.h>

#include <limits>
#include <string>
#include <string_view>

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

void Read(const Json& from, const char* key, std::vector<uint32_t>* to) {
  if (from.contains(key)) from.at(key).get_to(*to);
}

// Indices, or names of laws.
void Read(const Json& from, const char* key, std::vector<int32_t>* to) {
  if (!from.contains(key)) return;
  for (const Json& value : from.at(key)) {
    to->push_back(value.is_number()                              ? value.get<int32_t>()
                  : value == "CONTACT_LAW_HUNT_CROSSLEY_LAGGED"  ? 2
                  : value == "CONTACT_LAW_HUNT_CROSSLEY_SIMILAR" ? 3
                                                                 : 1);
  }
}

// The message of a group by the prefix of its arrays, as "contacts.hunt_crossley.".
Json Message(const Json& problem, std::string_view prefix) {
  const size_t dot = prefix.find('.');
  if (dot == std::string_view::npos) return problem;
  return Message(problem.value(prefix.substr(0, dot), Json::object()), prefix.substr(dot + 1));
}

void ReadRegularization(const Json& from, Regularization* regularization) {
  Regularization::ForEach(
      [&](const char* name, bool, double& number) { Read(from, name, &number); }, *regularization);
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
  ForEachGroup(
      [&json]<typename Group>(std::string_view prefix, Group& group) {
        const Json message = Message(json, prefix);
        Group::ForEach([&message](const auto& field,
                                  auto& values) { Read(message, field.name.data(), &values); },
                       group);
      },
      arrays);
  ReadRegularization(json.value("regularization", Json::object()), &arrays.regularization);
  return arrays;
}

}  // namespace sap::test
