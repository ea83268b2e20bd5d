#include "server/worlds/world_call.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace sap {
namespace {

// Long compared with what a slice costs besides its steps, short for a neighbour that waits for it.
constexpr double kSlice_s = 5e-3;
// Steps that become slower than predicted end a slice at this time.
constexpr double kLongest_s = 2 * kSlice_s;
// Work that is worth a further thread.
constexpr double kLane_s = 0.5e-3;
// Numbers of a slice that are passed to a worker and back.
constexpr double kSlice_bytes = 8 << 20;

}  // namespace

void WorldCall::Start(const v1::AdvanceRequest& request, const AdvancePlan& plan,
                      std::shared_ptr<HeldModel> model, const CallContext& call,
                      const Target& target, v1::AdvanceResponse* answer, Done done) {
  // Deleted by the last lane, in Work.
  auto* started =
      new WorldCall(request, plan, std::move(model), call, target, answer, std::move(done));
  std::vector<Lane*> lanes;
  {
    const std::lock_guard lock(started->mutex_);
    lanes = started->MoreLanes();
  }
  for (Lane* lane : lanes) started->Enqueue(lane);
}

WorldCall::WorldCall(const v1::AdvanceRequest& request, const AdvancePlan& plan,
                     std::shared_ptr<HeldModel> model, const CallContext& call,
                     const Target& target, v1::AdvanceResponse* answer, Done done)
    : request_(request),
      plan_(plan),
      model_(std::move(model)),
      context_(call),
      target_(target),
      answer_(answer),
      done_(std::move(done)),
      lanes_(std::min<int64_t>(plan.worlds, target.num_threads)),
      open_steps_(plan.worlds * plan.steps) {
  for (Lane& lane : lanes_) {
    lane.call = this;
    idle_lanes_.push_back(&lane);
  }
  units_.push_back({0, plan.worlds, 0, {}, {}, false, 0});
}

void WorldCall::Enqueue(Lane* lane) {
  QueuedTask& task = lane->task;
  task.run = [](void* context, Dispatch) {
    auto* lane = static_cast<Lane*>(context);
    lane->call->Work(lane);
  };
  task.context = lane;
  task.account = target_.account;
  task.work_s = std::min(
      kSlice_s, static_cast<double>(plan_.worlds * plan_.steps) * model_->step_time.seconds());
  task.preadmitted = true;
  (void)target_.queue->Push(&task);  // cannot fail: the call was admitted as a whole
}

void WorldCall::Work(Lane* lane) {
  const ServiceStatus ran = CatchExceptions([this] { return RunSlice(); });
  if (!ran) Fail(ran.error());
  std::vector<Lane*> next;
  bool is_over = false;
  {
    const std::lock_guard lock(mutex_);
    idle_lanes_.push_back(lane);
    if (!failed_) next = MoreLanes();
    is_over = idle_lanes_.size() == lanes_.size();
  }
  for (Lane* queued : next) Enqueue(queued);  // after the last one it may be deleted
  if (!is_over) return;
  done_(error_ ? ServiceStatus(tl::unexpected(*error_)) : ServiceStatus());
  delete this;
}

ServiceStatus WorldCall::RunSlice() {
  if (failed_) return {};
  int64_t steps = 0;
  std::optional<Unit> unit = Take(&steps);
  if (!unit) return {};
  if (ServiceStatus live = ToServiceStatus(CheckLive(context_)); !live) return live;
  auto worker = target_.pool->Take(target_.account->name(), plan_.model);
  if (!worker) return tl::unexpected(worker.error());
  ServiceStatus stepped = Step(&*worker, &*unit, steps);
  if (stepped) return {};
  const ServiceError& error = stepped.error();
  if (error.code == ServiceCode::kCancelled) {
    // Stopped for one of the two, or since another slice has failed.
    ServiceStatus live = ToServiceStatus(CheckLive(context_));
    return live || failed_ ? stepped : live;
  }
  if (error.reason == "WORLD_LOST") return Lost(std::move(*unit), error);
  if (error.reason == "WORLD_STEP_TIME") target_.drop_model();
  return stepped;
}

// The next slice, cut off from the first unit.
std::optional<WorldCall::Unit> WorldCall::Take(int64_t* steps) {
  const std::lock_guard lock(mutex_);
  if (units_.empty()) return std::nullopt;
  if (answer_->outcomes().empty()) BeginAnswer(request_, model_->sizes, plan_, answer_);
  Unit& first = units_.front();
  const bool is_measured = model_->step_time.is_measured();
  const double step_s = model_->step_time.seconds();
  *steps = is_measured ? StepsOfSlice(first, step_s) : 1;
  const int64_t worlds = is_measured ? WorldsOfSlice(first, *steps, step_s) : 1;
  if (worlds == first.worlds) {
    Unit unit = std::move(first);
    units_.pop_front();
    return unit;
  }
  const auto split = [worlds](auto* whole, auto* part, int64_t size) {
    if (whole->empty()) return;
    part->assign(whole->begin(), whole->begin() + worlds * size);
    whole->erase(whole->begin(), whole->begin() + worlds * size);
  };
  Unit unit{first.first_world, worlds, first.first_step, {}, {}, first.goes_alone, first.losses};
  split(&first.checkpoints, &unit.checkpoints, model_->sizes.integration);
  split(&first.progress, &unit.progress, 1);
  first.first_world += worlds;
  first.worlds -= worlds;
  return unit;
}

// All that are left, or as many as a world takes in the time of a slice, and in its memory.
int64_t WorldCall::StepsOfSlice(const Unit& unit, double step_s) const {
  const ModelSizes& sizes = model_->sizes;
  const auto answered = static_cast<double>(plan_.answered_size + sizes.nsensordata);
  const double of_step =
      8 * (static_cast<double>(plan_.control_size) + answered / plan_.settings.every) +
      static_cast<double>(sizeof(sap_mujoco_certificate));
  const double most = std::min(kSlice_s / step_s, kSlice_bytes / of_step);
  const int64_t left = plan_.steps - unit.first_step;
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(most, static_cast<double>(left))));
}

int64_t WorldCall::WorldsOfSlice(const Unit& unit, int64_t steps, double step_s) const {
  if (unit.goes_alone) return 1;
  const ModelSizes& sizes = model_->sizes;
  const auto answered = static_cast<double>(plan_.answered_size + sizes.nsensordata);
  const auto count = static_cast<double>(steps);
  const double of_world =
      8 * (count * (static_cast<double>(plan_.control_size) + answered / plan_.settings.every) +
           answered + 2.0 * sizes.integration) +
      count * static_cast<double>(sizeof(sap_mujoco_certificate)) + sizeof(WorldProgress);
  const double most = std::min(kSlice_s / (step_s * count), kSlice_bytes / of_world);
  // An equal part for each thread.
  const double part =
      std::ceil(static_cast<double>(unit.worlds) / static_cast<double>(WantedLanes()));
  return std::clamp<int64_t>(static_cast<int64_t>(std::min(most, part)), 1, unit.worlds);
}

// With the lock: as many as the open work is worth.
int WorldCall::WantedLanes() const {
  if (!model_->step_time.is_measured()) return 1;
  const double open_s = static_cast<double>(open_steps_) * model_->step_time.seconds();
  const double most = static_cast<double>(lanes_.size());
  return static_cast<int>(std::clamp(open_s / kLane_s, 1.0, most));
}

std::vector<WorldCall::Lane*> WorldCall::MoreLanes() {
  std::vector<Lane*> lanes;
  int64_t worlds = 0;
  for (const Unit& unit : units_) worlds += unit.worlds;
  const auto busy = static_cast<int64_t>(lanes_.size() - idle_lanes_.size());
  const int64_t most = std::min<int64_t>(worlds, WantedLanes() - busy);
  while (std::ssize(lanes) < most && !idle_lanes_.empty()) {
    lanes.push_back(idle_lanes_.back());
    idle_lanes_.pop_back();
  }
  return lanes;
}

// First, so that few worlds have begun and not ended.
void WorldCall::PutBack(Unit unit) {
  const std::lock_guard lock(mutex_);
  units_.push_front(std::move(unit));
}

WorldSlice WorldCall::SliceOf(const Unit& unit, int64_t steps) const {
  const ModelSizes& sizes = model_->sizes;
  WorldSlice slice;
  slice.model = model_->source;
  slice.sizes = &sizes;
  slice.settings = plan_.settings;
  slice.max_s = kLongest_s;
  slice.first_world = unit.first_world;
  slice.worlds = unit.worlds;
  slice.first_step = unit.first_step;
  slice.steps = steps;
  slice.all_steps = plan_.steps;
  slice.states = unit.checkpoints.empty()
                     ? request_.states().data() + unit.first_world * plan_.state_size
                     : unit.checkpoints.data();
  slice.control_stride = plan_.steps * plan_.control_size;
  if (plan_.control_size > 0) {
    slice.controls = request_.controls().data() + unit.first_world * slice.control_stride +
                     unit.first_step * plan_.control_size;
  }
  const int64_t row = unit.first_world * plan_.rows +
                      AnsweredSteps(unit.first_step, plan_.settings.every, plan_.steps);
  slice.state_stride = plan_.rows * plan_.answered_size;
  if (request_.answers_states()) {
    slice.answered_states = answer_->mutable_states()->mutable_data() + row * plan_.answered_size;
  }
  slice.sensor_stride = plan_.rows * sizes.nsensordata;
  if (request_.answers_sensors() && sizes.nsensordata > 0) {
    slice.answered_sensors = answer_->mutable_sensors()->mutable_data() + row * sizes.nsensordata;
  }
  slice.certificate_stride = steps;
  return slice;
}

ServiceStatus WorldCall::Step(WorkerPool::Lease* worker, Unit* unit, int64_t steps) {
  const auto is_stopped = [this] { return IsStopped(); };
  // By itself, so that the time of a step does not have that of loading.
  if (auto loaded = worker->Prepare(*model_->source, is_stopped); !loaded) return loaded;
  const int64_t worlds = unit->worlds;
  std::vector<double> checkpoints(worlds * model_->sizes.integration);
  std::vector<WorldProgress> progress = unit->progress;
  progress.resize(worlds);
  if (unit->first_step == 0 && !request_.rested().empty()) {
    for (int64_t i = 0; i < worlds; ++i) {
      progress[i].slow_s = request_.rested(static_cast<int>(unit->first_world + i));
    }
  }
  std::vector<sap_mujoco_certificate> certificates(request_.answers_certificates() ? worlds * steps
                                                                                   : 0);
  WorldSlice slice = SliceOf(*unit, steps);
  slice.checkpoints = checkpoints.data();
  slice.progress = progress.data();
  slice.certificates = certificates.empty() ? nullptr : certificates.data();
  const auto begin = CallContext::Clock::now();
  ServiceStatus stepped = (*worker)->Advance(slice, is_stopped);
  if (!stepped) return stepped;
  const double took_s = SecondsSince(begin);
  int64_t taken = 0;
  for (int64_t i = 0; i < worlds; ++i) {
    if (!IsPossible(progress[i], *unit, steps)) {
      worker->End();
      return WrongAnswer(*unit, i);
    }
    taken += progress[i].steps - unit->first_step;
  }
  model_->step_time.Add(taken, took_s);
  if (target_.metrics != nullptr) target_.metrics->WorldsStepped(taken, took_s);
  EncodeCertificates(certificates, *unit, steps, progress);
  Continue(*unit, std::move(checkpoints), std::move(progress), took_s);
  return {};
}

ServiceStatus WorldCall::WrongAnswer(const Unit& unit, int64_t i) {
  ServiceError error(ServiceCode::kResourceExhausted, "a worker answered what cannot be", "",
                     "WORLD_LOST");
  error.world_step = WorldStep{.world = unit.first_world + i, .step = unit.first_step};
  return tl::unexpected(std::move(error));
}

bool WorldCall::IsPossible(const WorldProgress& progress, const Unit& unit, int64_t steps) const {
  const int64_t taken = progress.steps - unit.first_step;
  if (progress.end > WorldEnd::kFailure) return false;
  // Worlds that have not begun are at the first step.
  return taken >= 0 && taken <= steps;
}

void WorldCall::EncodeCertificates(const std::vector<sap_mujoco_certificate>& certificates,
                                   const Unit& unit, int64_t steps,
                                   const std::vector<WorldProgress>& progress) {
  if (certificates.empty()) return;
  v1::StepCertificates* const to = answer_->mutable_certificates();
  for (int64_t i = 0; i < unit.worlds; ++i) {
    const int64_t taken = progress[i].steps - unit.first_step;
    const int64_t first = (unit.first_world + i) * plan_.steps + unit.first_step;
    for (int64_t k = 0; k < taken; ++k) {
      const sap_mujoco_certificate& from = certificates[i * steps + k];
      const auto at = static_cast<int>(first + k);
      to->set_islands(at, static_cast<uint32_t>(from.islands));
      to->set_unsolved(at, static_cast<uint32_t>(from.unsolved));
      to->set_iterations(at, static_cast<uint32_t>(from.iterations));
      to->set_bound(at, from.bound);
    }
  }
}

// Ends the worlds of a stepped unit that have ended, and puts the others back: those together that
// have taken as many steps.
void WorldCall::Continue(const Unit& unit, std::vector<double> checkpoints,
                         std::vector<WorldProgress> progress, double took_s) {
  const int64_t size = model_->sizes.integration;
  std::vector<Unit> open;
  int64_t closed_steps = 0;
  for (int64_t i = 0; i < unit.worlds; ++i) {
    WorldProgress& world = progress[i];
    const double* const checkpoint = checkpoints.data() + i * size;
    closed_steps += world.steps - unit.first_step;
    if (world.end == WorldEnd::kNone && world.steps == plan_.steps) world.end = WorldEnd::kSteps;
    if (world.end != WorldEnd::kNone) {
      closed_steps += plan_.steps - world.steps;
      EndWorld(unit.first_world + i, world, checkpoint);
      continue;
    }
    const bool follows = !open.empty() && open.back().first_step == world.steps &&
                         open.back().first_world + open.back().worlds == unit.first_world + i;
    if (!follows) {
      open.push_back({unit.first_world + i, 0, world.steps, {}, {}, false, 0});
    }
    Unit& last = open.back();
    ++last.worlds;
    if (world.steps == 0) continue;  // begins with the states of the request
    const bool is_new = world.steps > unit.first_step;
    const double* const from = is_new ? checkpoint : unit.checkpoints.data() + i * size;
    last.checkpoints.insert(last.checkpoints.end(), from, from + size);
    last.progress.push_back(world);
  }
  {
    const std::lock_guard lock(mutex_);
    open_steps_ -= closed_steps;
    answer_->set_step_time(answer_->step_time() + took_s);
  }
  target_.release_part(static_cast<double>(closed_steps) /
                       static_cast<double>(plan_.worlds * plan_.steps));
  while (!open.empty()) {
    PutBack(std::move(open.back()));
    open.pop_back();
  }
}

void WorldCall::EndWorld(int64_t world, const WorldProgress& progress, const double* checkpoint) {
  EncodeOutcome(progress, answer_->mutable_outcomes(static_cast<int>(world)));
  RepeatRows(world, progress);
  if (!request_.answers_final_states()) return;
  const int64_t size = model_->sizes.integration;
  std::copy_n(checkpoint, size, answer_->mutable_final_states()->mutable_data() + world * size);
}

// Rows after the end have the state of the last one that the worker has written: of an answered
// step, or of the end.
void WorldCall::RepeatRows(int64_t world, const WorldProgress& progress) {
  if (progress.steps == plan_.steps) return;
  const int64_t every = plan_.settings.every;
  const int64_t written = std::max<int64_t>(1, (progress.steps + every - 1) / every);
  const auto repeat = [&](bool wanted, int64_t size, auto* array) {
    if (!wanted || size == 0) return;
    double* const rows = array->mutable_data() + world * plan_.rows * size;
    for (int64_t row = written; row < plan_.rows; ++row) {
      std::copy_n(rows + (row - 1) * size, size, rows + row * size);
    }
  };
  repeat(request_.answers_states(), plan_.answered_size, answer_->mutable_states());
  repeat(request_.answers_sensors(), model_->sizes.nsensordata, answer_->mutable_sensors());
}

// A unit that has ended a worker goes again, world by world. The second worker that a world ends by
// itself is the last.
ServiceStatus WorldCall::Lost(Unit unit, ServiceError how) {
  if (unit.worlds == 1) ++unit.losses;
  if (unit.losses > 1) {
    target_.drop_model();
    how.message += "; it is the second process that this world has ended";
    return tl::unexpected(std::move(how));
  }
  unit.goes_alone = true;
  PutBack(std::move(unit));
  return {};
}

bool WorldCall::IsStopped() const {
  return failed_.load(std::memory_order_relaxed) || !CheckLive(context_).has_value();
}

// The first error counts; others may follow from it.
void WorldCall::Fail(const ServiceError& error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = error;
  failed_.store(true, std::memory_order_relaxed);
}

}  // namespace sap
