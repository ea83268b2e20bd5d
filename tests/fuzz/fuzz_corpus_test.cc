// Input validation holds against what fuzzers came upon before, and against bytes made from good
// requests by a fixed sequence of mutations.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "sap/v1/solver_service.pb.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/server/worlds/blocking_worlds.h"
#include "tests/support/mixed_constraints.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

using Input = std::vector<uint8_t>;

Input ToInput(const std::string& text) { return {text.begin(), text.end()}; }

std::string WithLength(const std::string& message) {
  return std::string{static_cast<char>(message.size() % 256),
                     static_cast<char>(message.size() / 256)} +
         message;
}

// R of 1e-10 w by the interior-point method, from guesses; a contact without friction; rows that
// contradict each other, and one whose force is given.
void MakeStiff(v1::SolveRequest* request) {
  request->mutable_options()->set_interior_point(v1::INTERIOR_POINT_ALWAYS);
  v1::ContactProblem* problem = request->mutable_problem();
  v1::Regularization* regularization = problem->mutable_regularization();
  regularization->set_beta(6.3e-5);
  regularization->set_row_beta(6.3e-5);
  regularization->set_sigma(1e-10);
  v1::Contacts* contacts = problem->mutable_contacts();
  v1::BodyContacts* body_contacts = problem->mutable_body_contacts();
  contacts->set_friction(0, 0);
  for (int i = 0; i < 3 * contacts->friction_size(); ++i) contacts->add_guess_impulse(i - 2);
  for (int i = 0; i < 3 * body_contacts->friction_size(); ++i) {
    body_contacts->add_guess_impulse(0.1 * i);
  }
  v1::ConstraintRows* rows = problem->mutable_rows();
  for (const double target : {1.0, -1.0, 0.5}) {
    rows->add_entries(1);
    rows->add_velocity_index(0);
    rows->add_coefficient(1);
    rows->add_target_velocity(target);
    rows->add_force_lower(target > 0 ? 0 : -3);
    rows->add_force_upper(target == 0.5 ? 0 : 3);
    rows->add_guess_impulse(-target);
  }
}

// Plain friction; rows and general cones; rows and Hunt & Crossley; coupled trees; small R.
std::vector<v1::SolveRequest> GoodRequests() {
  std::vector<v1::SolveRequest> requests(5);
  for (v1::SolveRequest& request : requests) *request.mutable_problem() = MixedProblem();
  v1::ContactProblem* cones = requests[1].mutable_problem();
  v1::ContactProblem* hunt_crossley = requests[2].mutable_problem();
  AddCoupling(requests[3].mutable_problem());
  NameTreesByParts(requests[3].mutable_problem());
  MakeStiff(&requests[4]);
  AddRows(cones);
  AddTangents(cones);
  AddRows(hunt_crossley);
  for (const char* group : {"contacts", "body_contacts"}) {
    AddAngularFriction(group, cones);
    MakeHuntCrossley(group, hunt_crossley);
  }
  return requests;
}

// Two cotangents and a direction of everything that the problem has.
v1::DifferentiateRequest Differentiated(const v1::SolveRequest& solve) {
  v1::DifferentiateRequest request;
  *request.mutable_problem() = solve.problem();
  for (const double scale : {1.0, -1e3}) {
    v1::Cotangent* cotangent = request.add_cotangents();
    for (int i = 0; i < 17; ++i) cotangent->add_velocity(scale * i);
    for (int i = 0; i < 15; ++i) cotangent->add_impulse(scale / (i + 1));
    cotangent->set_cost(scale);
  }
  request.add_tangents()->set_time_step(1);
  *request.mutable_tangents(0)->mutable_bodies() = solve.problem().bodies();
  *request.mutable_tangents(0)->mutable_contacts() = solve.problem().contacts();
  for (const char* path : {"trees", "bodies", "contacts", "body_contacts", "rows"}) {
    request.mutable_wanted()->add_paths(path);
  }
  return request;
}

// Asks for drifts, from the velocities without forces, of a step with a reference time step.
void AddRest(v1::SolveRequest* request) {
  request->mutable_options()->mutable_rest()->set_horizon(0.25);
  v1::ContactProblem* problem = request->mutable_problem();
  problem->mutable_regularization()->set_reference_time_step(0.005);
  *problem->mutable_trees()->mutable_initial_velocity() = problem->trees().free_motion_velocity();
  *problem->mutable_bodies()->mutable_initial_velocity() = problem->bodies().free_motion_velocity();
}

// Valid inputs of each target.
std::vector<Input> GoodInputs(const std::string& target) {
  if (target == "solve") {
    std::vector<Input> inputs;
    for (v1::SolveRequest& request : GoodRequests()) {
      inputs.push_back(ToInput(request.SerializeAsString()));
      AddRest(&request);
      inputs.push_back(ToInput(request.SerializeAsString()));
      request.mutable_options()->mutable_coulomb()->set_max_rounds(20);
      request.mutable_options()->mutable_coulomb()->set_tolerance(1e-8);
      inputs.push_back(ToInput(request.SerializeAsString()));
    }
    return inputs;
  }
  if (target == "differentiate") {
    std::vector<Input> inputs;
    for (const v1::SolveRequest& solve : GoodRequests()) {
      inputs.push_back(ToInput(Differentiated(solve).SerializeAsString()));
    }
    return inputs;
  }
  if (target == "session") {
    v1::SolveSessionRequest open, step;
    open.mutable_open();
    *step.mutable_step()->mutable_problem() = MixedProblem();
    step.mutable_step()->set_step_id(1);
    return {ToInput(WithLength(open.SerializeAsString()) + WithLength(step.SerializeAsString()) +
                    WithLength(step.SerializeAsString()))};
  }
  if (target == "batch" || target == "messages") {
    v1::SolveBatchRequest solves;
    v1::DifferentiateBatchRequest derivatives;
    for (const v1::SolveRequest& request : GoodRequests()) {
      *solves.add_problems() = request.problem();
      *derivatives.add_requests() = Differentiated(request);
    }
    // The first byte of the target "messages" is a method: SolveBatch, DifferentiateBatch.
    const bool is_batch = target == "batch";
    return {ToInput((is_batch ? "\x02" : "\x01") + solves.SerializeAsString()),
            ToInput((is_batch ? "\x01" : "\x05") + derivatives.SerializeAsString())};
  }
  if (target == "json") {
    std::ifstream file(SAP_TEST_DATA_DIR "/nasty_no_contacts.json");
    return {ToInput({std::istreambuf_iterator<char>(file), {}})};
  }
  if (target == "flags") {
    return {ToInput("--listen\n127.0.0.1:1\n--threads\n3\n--record-rule\nall\n--tls-cert\nc")};
  }
  if (target == "worlds") {
    BlockingWorlds worlds;
    v1::PutModelRequest model = BlockingWorlds::Model();
    *model.add_files() = model.files(0);
    model.mutable_files(1)->set_name("assets/part.xml");
    v1::AdvanceRequest request = worlds.Request(3, 7, 2);
    request.set_relative_tolerance(1e-3);
    request.mutable_until()->set_speed(0.1);
    for (int i = 0; i < 3; ++i) request.add_rested(i);
    return {ToInput(std::string(1, '\0') + model.SerializeAsString()),
            ToInput("\x01" + request.SerializeAsString())};
  }
  return {ToInput("Bearer 0123456789abcdefalice 0123456789abcdef\nbob 0123456789abcdefg\n")};
}

Input Mutate(Input input, std::mt19937* random) {
  const auto draw = [&](size_t below) { return (*random)() % std::max<size_t>(below, 1); };
  for (size_t i = draw(4) + 1; i > 0 && !input.empty(); --i) {
    const size_t at = draw(input.size());
    switch (draw(6)) {
      case 0:
        input[at] ^= static_cast<uint8_t>(1U << draw(8));
        break;
      case 1:
        input[at] = static_cast<uint8_t>(draw(256));
        break;
      case 2:
        input.erase(input.begin() + static_cast<int64_t>(at));
        break;
      case 3:
        input.insert(input.begin() + static_cast<int64_t>(at), static_cast<uint8_t>(draw(256)));
        break;
      case 4:
        input.resize(at);
        break;
      default: {
        const Input copy(input.begin(), input.begin() + static_cast<int64_t>(at));
        input.insert(input.end(), copy.begin(), copy.end());
      }
    }
  }
  return input;
}

class FuzzCorpusTest : public testing::TestWithParam<FuzzTarget> {};

TEST_P(FuzzCorpusTest, WhatFuzzersCameUponDoesNoHarm) {
  const std::filesystem::path corpus = std::filesystem::path(SAP_FUZZ_CORPORA) / GetParam().name;
  ASSERT_FALSE(std::filesystem::is_empty(corpus));
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    GetParam().run(ToInput({std::istreambuf_iterator<char>(file), {}}));
  }
}

TEST_P(FuzzCorpusTest, MutatedRequestsDoNoHarm) {
  std::mt19937 random(7);
  for (const Input& good : GoodInputs(GetParam().name)) {
    GetParam().run(good);
    for (int i = 0; i < 3000; ++i) GetParam().run(Mutate(good, &random));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpusTest, testing::ValuesIn(kFuzzTargets),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace sap::test
