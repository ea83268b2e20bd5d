#include "client/cpp/simulation/simulation.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/cpp/simulation/dynamics.h"

namespace sap::simulation {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Append(const Vector3d& vector, std::vector<double>* array) {
  array->insert(array->end(), vector.data(), vector.data() + 3);
}

void DescribeIslands(const std::vector<IslandReport>& islands, StepStatistics* statistics) {
  double weighted = 0;
  int64_t dofs = 0;
  for (const IslandReport& island : islands) {
    statistics->largest_island_dofs = std::max(statistics->largest_island_dofs, island.dofs);
    statistics->iterations = std::max(statistics->iterations, island.iterations);
    statistics->momentum_error = std::max(statistics->momentum_error, island.momentum_residual);
    weighted += static_cast<double>(island.iterations) * island.dofs;
    dofs += island.dofs;
    if (island.status != SolveStatus::kConverged &&
        island.status != SolveStatus::kStalledAtRoundoff) {
      ++statistics->failed_islands;
    }
  }
  statistics->islands = static_cast<int>(islands.size());
  statistics->iterations_weighted = dofs > 0 ? weighted / static_cast<double>(dofs) : 0;
}

}  // namespace

void BodyProblem::Assemble(std::span<const Body> bodies, const Vector3d& gravity,
                           const Material& material, double time_step, const ContactSet& contacts) {
  for (auto* array :
       {&mass_, &inertia_, &center_of_mass_, &free_motion_velocity_, &guess_velocity_}) {
    array->clear();
  }
  body_id_.resize(bodies.size());
  for (size_t i = 0; i < bodies.size(); ++i) {
    const Body& body = bodies[i];
    mass_.push_back(body.mass);
    const Matrix3d I = WorldInertia(body);
    inertia_.insert(inertia_.end(), {I(0, 0), I(1, 1), I(2, 2), I(0, 1), I(0, 2), I(1, 2)});
    Append(body.position, &center_of_mass_);
    const Velocity v_star = FreeMotionVelocity(body, gravity, time_step);
    Append(v_star.linear, &free_motion_velocity_);
    Append(v_star.angular, &free_motion_velocity_);
    Append(body.velocity, &guess_velocity_);
    Append(body.angular_velocity, &guess_velocity_);
    body_id_[i] = static_cast<uint32_t>(i);
  }
  stiffness_.assign(contacts.size(), material.stiffness);
  relaxation_time_.assign(contacts.size(), time_step);
  friction_.assign(contacts.size(), material.friction);
  view_.time_step = time_step;
  view_.bodies = {mass_,           inertia_, center_of_mass_, free_motion_velocity_,
                  guess_velocity_, body_id_};
  view_.body_contacts = {
      contacts.body_a,
      contacts.body_b,
      contacts.point,
      contacts.normal,
      {contacts.signed_distance, stiffness_, relaxation_time_, friction_, {}, {}, {}, {}}};
}

Simulation::Simulation(Scene scene, double time_step, StepSolver solver)
    : scene_(std::move(scene)),
      time_step_(time_step),
      solver_(std::move(solver)),
      collision_(scene_),
      island_of_body_(scene_.bodies.size(), -1) {}

tl::expected<StepStatistics, std::string> Simulation::Step() {
  StepStatistics statistics;
  const auto start = Clock::now();
  collision_.FindContacts(scene_.bodies, &contacts_);
  statistics.collision_s = SecondsSince(start);
  problem_.Assemble(scene_.bodies, scene_.gravity, scene_.material, time_step_, contacts_);

  const auto call = Clock::now();
  const tl::expected<ContactSolution, std::string> answer = solver_(problem_.view());
  statistics.round_trip_s = SecondsSince(call);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->velocity.size() != 6 * scene_.bodies.size() ||
      answer->island_of_tree.size() != scene_.bodies.size()) {
    return tl::unexpected(std::string("the answer is not that of this problem: it has ") +
                          std::to_string(answer->velocity.size()) + " velocities; " +
                          std::to_string(6 * scene_.bodies.size()) + " are needed");
  }

  for (size_t i = 0; i < scene_.bodies.size(); ++i) {
    const double* v = answer->velocity.data() + 6 * i;
    Advance({Vector3d(v[0], v[1], v[2]), Vector3d(v[3], v[4], v[5])}, time_step_,
            &scene_.bodies[i]);
  }
  island_of_body_ = answer->island_of_tree;
  DescribeIslands(answer->islands, &statistics);
  statistics.step = steps_done_++;
  statistics.time_s = steps_done_ * time_step_;
  statistics.contacts = contacts_.size();
  statistics.solve_s = answer->times.islands_s + answer->times.solve_s;
  statistics.penetration = contacts_.LargestPenetration();
  statistics.kinetic_energy = KineticEnergy(scene_.bodies);
  return statistics;
}

}  // namespace sap::simulation
