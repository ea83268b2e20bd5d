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

void AssembleBodies(const Scene& scene, double time_step, client::Problem::RigidBodies* arrays) {
  *arrays = {};
  for (const Body& body : scene.bodies) {
    const Matrix3d I = WorldInertia(body);
    const Velocity v_star = FreeMotionVelocity(body, scene.gravity, time_step);
    arrays->mass.push_back(body.mass);
    arrays->inertia.insert(arrays->inertia.end(),
                           {I(0, 0), I(1, 1), I(2, 2), I(0, 1), I(0, 2), I(1, 2)});
    Append(body.position, &arrays->center_of_mass);
    Append(v_star.linear, &arrays->free_motion_velocity);
    Append(v_star.angular, &arrays->free_motion_velocity);
    Append(body.velocity, &arrays->guess_velocity);
    Append(body.angular_velocity, &arrays->guess_velocity);
    arrays->body_id.push_back(static_cast<uint32_t>(arrays->body_id.size()));
  }
}

// Free-motion velocity of body i at a point.
Vector3d FreeVelocity(const Scene& scene, const client::Problem::RigidBodies& arrays, int i,
                      const Vector3d& point) {
  const double* v = arrays.free_motion_velocity.data() + 6 * i;
  return Vector3d(v[0], v[1], v[2]) +
         Vector3d(v[3], v[4], v[5]).cross(point - scene.bodies[i].position);
}

double FreeNormalVelocity(const Scene& scene, const client::Problem::RigidBodies& arrays,
                          const ContactSet& contacts, int contact) {
  const Vector3d point(contacts.point.data() + 3 * contact);
  const Vector3d normal(contacts.normal.data() + 3 * contact);
  Vector3d velocity = FreeVelocity(scene, arrays, contacts.body_a[contact], point);
  if (contacts.body_b[contact] >= 0) {
    velocity -= FreeVelocity(scene, arrays, contacts.body_b[contact], point);
  }
  return normal.dot(velocity);
}

void DescribeIslands(const std::vector<client::Island>& islands, StepStatistics* statistics) {
  double weighted = 0;
  int64_t dofs = 0;
  for (const client::Island& island : islands) {
    statistics->largest_island_dofs = std::max(statistics->largest_island_dofs, island.dofs);
    statistics->iterations = std::max(statistics->iterations, island.iterations);
    statistics->momentum_error = std::max(statistics->momentum_error, island.momentum_residual);
    // The enum is ordered from best to worst.
    statistics->worst_status = std::max(statistics->worst_status, island.status);
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

Motion MotionOfStep(const Body& body, const Vector3d& gravity, double time_step) {
  const double turning = body.shape.kind == ShapeKind::kSphere
                             ? 0
                             : body.angular_velocity.norm() * body.shape.bounding_radius();
  return {time_step * body.velocity,
          time_step * (body.velocity.norm() + turning + time_step * gravity.norm())};
}

void AssembleProblem(const Scene& scene, const ContactSet& contacts, double time_step,
                     client::Problem* problem) {
  problem->time_step = time_step;
  AssembleBodies(scene, time_step, &problem->bodies);
  client::Problem::BodyContacts& arrays = problem->body_contacts;
  arrays.body_a = contacts.body_a;
  arrays.body_b = contacts.body_b;
  arrays.point = contacts.point;
  arrays.normal = contacts.normal;
  arrays.law.signed_distance = contacts.signed_distance;
  arrays.law.stiffness.assign(contacts.size(), scene.material.stiffness);
  arrays.law.relaxation_time.assign(contacts.size(), time_step);
  arrays.law.friction.assign(contacts.size(), scene.material.friction);
  for (int i = 0; i < contacts.size(); ++i) {
    const double phi0 = contacts.signed_distance[i];
    if (phi0 < 0) continue;
    if (phi0 > 0) arrays.law.relaxation_time[i] = 0;
    if (phi0 + time_step * FreeNormalVelocity(scene, problem->bodies, contacts, i) > 0) {
      arrays.law.friction[i] = 0;
    }
  }
}

Simulation::Simulation(Scene scene, double time_step, StepSolver solver)
    : scene_(std::move(scene)),
      time_step_(time_step),
      solver_(std::move(solver)),
      collision_(scene_),
      island_of_body_(scene_.bodies.size(), -1) {}

tl::expected<StepStatistics, client::Error> Simulation::Step() {
  StepStatistics statistics;
  const auto start = Clock::now();
  motions_.clear();
  for (const Body& body : scene_.bodies) {
    motions_.push_back(MotionOfStep(body, scene_.gravity, time_step_));
  }
  collision_.FindContacts(scene_.bodies, motions_, &contacts_);
  statistics.collision_s = SecondsSince(start);
  AssembleProblem(scene_, contacts_, time_step_, &problem_);

  const auto call = Clock::now();
  const tl::expected<client::Solution, client::Error> answer = solver_(problem_);
  statistics.round_trip_s = SecondsSince(call);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->velocity.size() != 6 * scene_.bodies.size() ||
      answer->island_of_tree.size() != scene_.bodies.size()) {
    return tl::unexpected(client::Error{
        client::ErrorCode::kInternal,
        "the answer has " + std::to_string(answer->velocity.size()) +
            " velocities; the problem has " + std::to_string(6 * scene_.bodies.size()),
        "velocity"});
  }

  for (size_t i = 0; i < scene_.bodies.size(); ++i) {
    const double* v = answer->velocity.data() + 6 * i;
    Advance({Vector3d(v[0], v[1], v[2]), Vector3d(v[3], v[4], v[5])}, time_step_,
            &scene_.bodies[i]);
  }
  island_of_body_ = answer->island_of_tree;
  DescribeIslands(answer->islands, &statistics);
  statistics.step = steps_done_++;
  statistics.contacts = contacts_.size();
  statistics.solve_s = answer->timings.islands_s + answer->timings.solve_s;
  statistics.penetration = contacts_.LargestPenetration();
  statistics.kinetic_energy = KineticEnergy(scene_.bodies);
  return statistics;
}

}  // namespace sap::simulation
