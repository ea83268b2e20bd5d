#include "client/cpp/simulation/simulation.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace sap::simulation {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Append(const Vector3d& vector, std::vector<double>* array) {
  array->insert(array->end(), vector.data(), vector.data() + 3);
}

void AssembleBodies(const Scene& scene, std::span<const int32_t> bodies, double time_step,
                    client::Problem::RigidBodies* arrays) {
  *arrays = {};
  for (const int32_t index : bodies) {
    const Body& body = scene.bodies[index];
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
    arrays->body_id.push_back(static_cast<uint32_t>(index));
  }
}

// Contacts of which both sides are in the problem.
void AssembleContacts(std::span<const int32_t> bodies, size_t bodies_of_scene,
                      const ContactSet& contacts, client::Problem::BodyContacts* arrays) {
  std::vector<int32_t> number_of(bodies_of_scene, -1);
  for (size_t i = 0; i < bodies.size(); ++i) number_of[bodies[i]] = static_cast<int32_t>(i);
  *arrays = {};
  for (int i = 0; i < contacts.size(); ++i) {
    const int32_t a = number_of[contacts.body_a[i]];
    const bool on_plane = contacts.body_b[i] < 0;
    const int32_t b = on_plane ? -1 : number_of[contacts.body_b[i]];
    if (a < 0 || (b < 0 && !on_plane)) continue;
    arrays->body_a.push_back(a);
    arrays->body_b.push_back(b);
    const double* point = contacts.point.data() + 3 * i;
    const double* normal = contacts.normal.data() + 3 * i;
    arrays->point.insert(arrays->point.end(), point, point + 3);
    arrays->normal.insert(arrays->normal.end(), normal, normal + 3);
    arrays->law.signed_distance.push_back(contacts.signed_distance[i]);
  }
}

// Free-motion velocity of a body at a point.
Vector3d FreeVelocity(const client::Problem::RigidBodies& bodies, int body, const Vector3d& point) {
  const double* v = bodies.free_motion_velocity.data() + 6 * body;
  const Vector3d center(bodies.center_of_mass.data() + 3 * body);
  return Vector3d(v[0], v[1], v[2]) + Vector3d(v[3], v[4], v[5]).cross(point - center);
}

double FreeNormalVelocity(const client::Problem& problem, int contact) {
  const client::Problem::BodyContacts& contacts = problem.body_contacts;
  const Vector3d point(contacts.point.data() + 3 * contact);
  const Vector3d normal(contacts.normal.data() + 3 * contact);
  Vector3d velocity = FreeVelocity(problem.bodies, contacts.body_a[contact], point);
  if (contacts.body_b[contact] >= 0) {
    velocity -= FreeVelocity(problem.bodies, contacts.body_b[contact], point);
  }
  return normal.dot(velocity);
}

void CountFailures(const std::vector<client::Island>& islands, StepStatistics* statistics) {
  for (const client::Island& island : islands) {
    // The enum is ordered from best to worst.
    statistics->worst_status = std::max(statistics->worst_status, island.status);
    if (island.status != SolveStatus::kConverged &&
        island.status != SolveStatus::kStalledAtRoundoff) {
      ++statistics->failed_islands;
    }
  }
}

void DescribeIslands(const std::vector<client::Island>& islands, StepStatistics* statistics) {
  double weighted = 0;
  int64_t dofs = 0;
  for (const client::Island& island : islands) {
    statistics->largest_island_dofs = std::max(statistics->largest_island_dofs, island.dofs);
    statistics->iterations = std::max(statistics->iterations, island.iterations);
    statistics->momentum_error = std::max(statistics->momentum_error, island.momentum_residual);
    weighted += static_cast<double>(island.iterations) * island.dofs;
    dofs += island.dofs;
  }
  statistics->islands = static_cast<int>(islands.size());
  statistics->iterations_weighted = dofs > 0 ? weighted / static_cast<double>(dofs) : 0;
}

Velocity ToVelocity(const double* v) { return {Vector3d(v), Vector3d(v + 3)}; }

}  // namespace

Motion MotionOfStep(const Body& body, const Vector3d& gravity, double time_step) {
  const double turning = body.shape.kind == ShapeKind::kSphere
                             ? 0
                             : body.angular_velocity.norm() * body.shape.bounding_radius();
  return {time_step * body.velocity,
          time_step * (body.velocity.norm() + turning + time_step * gravity.norm())};
}

void AssembleProblem(const Scene& scene, std::span<const int32_t> bodies,
                     const ContactSet& contacts, const StepLength& step, client::Problem* problem) {
  problem->time_step = step.time_step;
  problem->regularization.reference_time_step = step.reference_time_step;
  AssembleBodies(scene, bodies, step.time_step, &problem->bodies);
  client::Problem::BodyContacts& arrays = problem->body_contacts;
  AssembleContacts(bodies, scene.bodies.size(), contacts, &arrays);
  const size_t count = arrays.body_a.size();
  const bool has_reference = step.reference_time_step > 0;
  arrays.law.stiffness.assign(count, scene.material.stiffness);
  arrays.law.relaxation_time.assign(count,
                                    has_reference ? step.reference_time_step : step.time_step);
  arrays.law.friction.assign(count, scene.material.friction);
  for (size_t i = 0; i < count; ++i) {
    const double phi0 = arrays.law.signed_distance[i];
    if (phi0 < 0) continue;
    if (phi0 > 0) arrays.law.relaxation_time[i] = 0;
    if (phi0 + step.time_step * FreeNormalVelocity(*problem, static_cast<int>(i)) > 0) {
      arrays.law.friction[i] = 0;
    }
  }
}

void AssembleProblem(const Scene& scene, const ContactSet& contacts, double time_step,
                     client::Problem* problem) {
  std::vector<int32_t> all(scene.bodies.size());
  std::iota(all.begin(), all.end(), 0);
  AssembleProblem(scene, all, contacts, {.time_step = time_step}, problem);
}

Simulation::Simulation(Scene scene, double time_step, StepSolver solver,
                       std::optional<client::RestingIslands> resting)
    : scene_(std::move(scene)),
      time_step_(time_step),
      solver_(std::move(solver)),
      resting_(std::move(resting)),
      collision_(scene_),
      rests_(scene_.bodies.size(), 0),
      due_(scene_.bodies.size(), 0),
      motions_(scene_.bodies.size()),
      island_of_body_(scene_.bodies.size(), -1) {}

std::vector<int32_t> Simulation::IslandOfBody() const {
  std::vector<int32_t> islands = island_of_body_;
  for (size_t i = 0; i < islands.size(); ++i) {
    if (!IsAwake(i)) islands[i] = islands_ + resting_->IslandOf(static_cast<uint32_t>(i));
  }
  return islands;
}

void Simulation::SetVelocity(int body, const Velocity& velocity) {
  if (resting_) {
    const auto id = static_cast<uint32_t>(body);
    Apply(resting_->Wake({&id, 1}, client::WakeReason::kInput), false);
  }
  scene_.bodies[body].velocity = velocity.linear;
  scene_.bodies[body].angular_velocity = velocity.angular;
}

std::vector<int32_t> Simulation::BodiesThat(bool are_due) const {
  std::vector<int32_t> bodies;
  for (size_t i = 0; i < rests_.size(); ++i) {
    if (are_due ? due_[i] != 0 : IsAwake(i)) bodies.push_back(static_cast<int32_t>(i));
  }
  return bodies;
}

void Simulation::Apply(std::span<const client::BodyMove> moves, bool rest) {
  for (const client::BodyMove& move : moves) {
    Advance(ToVelocity(move.velocity.data()), move.duration, &scene_.bodies[move.body_id]);
    due_[move.body_id] = 0;
    rests_[move.body_id] = rest ? 1 : 0;
  }
}

// Contacts of all that are awake or due. The tolerance, by which a resting body may be off, widens
// every reach, so that a pair within the margin has a contact and is one island.
void Simulation::FindContacts() {
  if (resting_) {
    for (const client::BodyMove& due : resting_->Due()) {
      rests_[due.body_id] = 0;
      due_[due.body_id] = 1;
    }
  }
  do {
    for (size_t i = 0; i < scene_.bodies.size(); ++i) {
      if (rests_[i] != 0) continue;
      motions_[i] = MotionOfStep(scene_.bodies[i], scene_.gravity, time_step_);
      if (resting_) motions_[i].reach += resting_->tolerance();
    }
    collision_.FindContacts(scene_.bodies, motions_, rests_, &contacts_);
  } while (resting_ && WakeTouched());
}

// Wakes islands that have a contact with a body outside of them. True: contacts have to be found
// again, with those of the islands.
bool Simulation::WakeTouched() {
  std::vector<uint32_t> touched;
  for (int i = 0; i < contacts_.size(); ++i) {
    const int32_t a = contacts_.body_a[i], b = contacts_.body_b[i];
    if (b < 0 || (IsAwake(a) && IsAwake(b))) continue;
    const auto id_a = static_cast<uint32_t>(a), id_b = static_cast<uint32_t>(b);
    if (resting_->IslandOf(id_a) == resting_->IslandOf(id_b)) continue;
    touched.insert(touched.end(), {id_a, id_b});
  }
  Apply(resting_->Wake(touched, client::WakeReason::kPair), false);
  return !touched.empty();
}

tl::expected<client::Solution, client::Error> Simulation::Solve(std::span<const int32_t> bodies,
                                                                const StepLength& step,
                                                                StepStatistics* statistics) {
  AssembleProblem(scene_, bodies, contacts_, step, &problem_);
  if (resting_) problem_.bodies.initial_velocity = problem_.bodies.guess_velocity;
  if (resting_ && bodies.empty()) return client::Solution{};
  const auto call = Clock::now();
  tl::expected<client::Solution, client::Error> answer = solver_(problem_);
  statistics->round_trip_s += SecondsSince(call);
  if (!answer) return answer;
  if (answer->velocity.size() != 6 * bodies.size() ||
      answer->island_of_tree.size() != bodies.size()) {
    return tl::unexpected(
        client::Error{client::ErrorCode::kInternal,
                      "the answer has " + std::to_string(answer->velocity.size()) +
                          " velocities; the problem has " + std::to_string(6 * bodies.size()),
                      "velocity"});
  }
  statistics->solve_s += answer->timings.islands_s + answer->timings.solve_s;
  CountFailures(answer->islands, statistics);
  return answer;
}

tl::expected<void, client::Error> Simulation::TakeLongSteps(StepStatistics* statistics) {
  const std::vector<int32_t> bodies = BodiesThat(/*are_due=*/true);
  if (bodies.empty()) return {};
  const StepLength step{.time_step = resting_->horizon(), .reference_time_step = time_step_};
  const auto answer = Solve(bodies, step, statistics);
  if (!answer) return tl::unexpected(answer.error());
  const auto steps = resting_->TakeLongSteps(ViewOf(problem_), *answer);
  if (!steps) return tl::unexpected(steps.error());
  Apply(steps->resting, true);
  Apply(steps->woken, false);
  statistics->long_step_bodies = static_cast<int>(bodies.size());
  return {};
}

client::RestCounts Simulation::NewCounts() {
  const client::RestCounts all = resting_->counts();
  const client::RestCounts old = std::exchange(reported_, all);
  return {.woken_by_pair = all.woken_by_pair - old.woken_by_pair,
          .woken_by_input = all.woken_by_input - old.woken_by_input,
          .long_steps = all.long_steps - old.long_steps,
          .long_steps_refused = all.long_steps_refused - old.long_steps_refused};
}

tl::expected<StepStatistics, client::Error> Simulation::Step() {
  StepStatistics statistics;
  const auto start = Clock::now();
  FindContacts();
  statistics.collision_s = SecondsSince(start);
  if (const auto taken = TakeLongSteps(&statistics); !taken) return tl::unexpected(taken.error());

  const std::vector<int32_t> bodies = BodiesThat(/*are_due=*/false);
  const auto answer = Solve(bodies, {.time_step = time_step_}, &statistics);
  if (!answer) return tl::unexpected(answer.error());
  if (resting_) {
    const auto resting = resting_->TakeStep(ViewOf(problem_), *answer);
    if (!resting) return tl::unexpected(resting.error());
    for (const client::BodyMove& body : *resting) rests_[body.body_id] = 1;
    statistics.rest = NewCounts();
  }
  for (size_t i = 0; i < bodies.size(); ++i) {
    Advance(ToVelocity(answer->velocity.data() + 6 * i), time_step_, &scene_.bodies[bodies[i]]);
    island_of_body_[bodies[i]] = answer->island_of_tree[i];
  }
  DescribeIslands(answer->islands, &statistics);
  islands_ = statistics.islands;
  statistics.step = steps_done_++;
  statistics.bodies = static_cast<int>(bodies.size());
  statistics.contacts = static_cast<int>(problem_.body_contacts.body_a.size());
  statistics.penetration = contacts_.LargestPenetration();
  statistics.kinetic_energy = KineticEnergy(scene_.bodies);
  return statistics;
}

}  // namespace sap::simulation
