#include "client/mujoco/mujoco_calls.h"

#include <dlfcn.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "client/mujoco/effective_metric.h"
#include "client/mujoco/fields.h"
#include "client/mujoco/released_versions.h"

namespace sap::mujoco {
namespace {

constexpr int kFirstExactDiagonal = 3'009'000;
constexpr int64_t kExactDiagonal = 32;
constexpr int kFirstIpc = 3'014'000;
constexpr int64_t kIpc = 64;
constexpr int kFirstDiscrete = 3'013'000;
constexpr int kFirstRenamedMetric = 3'016'000;

// Where an error of MuJoCo's goes on this thread.
struct Landing {
  std::jmp_buf place;
  char text[256];
};
thread_local Landing* landing = nullptr;
void (*former_handler)(const char* text) = nullptr;

// Errors of the program's own calls go where they went before.
void OnError(const char* text) {
  if (landing != nullptr) {
    std::snprintf(landing->text, sizeof landing->text, "%s", text);
    std::longjmp(landing->place, 1);
  }
  if (former_handler != nullptr) return former_handler(text);
  std::fprintf(stderr, "ERROR: %s\n", text);
  std::exit(EXIT_FAILURE);
}

// Finds functions, and remembers the first that is missing.
class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}

  template <typename Function>
  void Find(const char* name, Function* function) {
    void* found = dlsym(library_, name);
    if (found == nullptr && missing_ == nullptr) missing_ = name;
    std::memcpy(function, &found, sizeof found);
  }

  const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

void FindStages(Finder* finder, MujocoCalls* calls) {
  const std::pair<const char*, MujocoCalls::Stage*> stages[] = {
      {"mj_checkPos", &calls->check_position},
      {"mj_checkVel", &calls->check_velocity},
      {"mj_checkAcc", &calls->check_acceleration},
      {"mj_fwdPosition", &calls->position},
      {"mj_fwdVelocity", &calls->velocity},
      {"mj_fwdActuation", &calls->actuation},
      {"mj_fwdAcceleration", &calls->acceleration},
      {"mj_sensorPos", &calls->position_sensors},
      {"mj_sensorVel", &calls->velocity_sensors},
      {"mj_sensorAcc", &calls->acceleration_sensors},
      {"mj_energyPos", &calls->position_energy},
      {"mj_energyVel", &calls->velocity_energy},
      {"mj_makeConstraint", &calls->make_constraint},
      {"mj_island", &calls->island},
      {"mj_projectConstraint", &calls->project_constraint},
      {"mj_transmission", &calls->transmission},
      {"mj_Euler", &calls->euler},
      {"mj_implicit", &calls->implicit},
      {"mj_resetData", &calls->reset_data},
      {"mj_step", &calls->step},
      {"mj_forward", &calls->forward},
  };
  for (const auto& [name, stage] : stages) finder->Find(name, stage);
}

}  // namespace

tl::expected<MujocoCalls, std::string> MujocoCalls::Find(const char* library,
                                                         const sap_mujoco_field* fields) {
  void* handle = library == nullptr ? RTLD_DEFAULT : dlopen(library, RTLD_NOLOAD | RTLD_NOW);
  if (library != nullptr && handle == nullptr) {
    return tl::unexpected(std::string(library) + " is not loaded in this process");
  }
  Finder finder(handle);
  MujocoCalls calls;
  int (*version)() = nullptr;
  void (**error_handler)(const char*) = nullptr;
  FindStages(&finder, &calls);
  finder.Find("mj_version", &version);
  finder.Find("mj_isSparse", &calls.is_sparse);
  finder.Find("mj_mulJacVec", &calls.multiply_jacobian);
  finder.Find("mj_mulJacTVec", &calls.multiply_transpose);
  finder.Find("mj_mulM", &calls.multiply_mass);
  finder.Find("mj_addContact", &calls.add_contact);
  finder.Find("mj_integratePos", &calls.integrate_position);
  finder.Find("mj_makeData", &calls.make_data);
  finder.Find("mj_deleteData", &calls.delete_data);
  finder.Find("mj_setState", &calls.set_state);
  finder.Find("mj_getState", &calls.get_state);
  finder.Find("mj_forwardSkip", &calls.forward_skip);
  finder.Find("mjd_passive_vel", &calls.passive_slopes);
  finder.Find("mjcb_time", &calls.time_callback);
  finder.Find("mjcb_control", &calls.control_callback);
  finder.Find("mjcb_act_dyn", &calls.actuator_callbacks[0]);
  finder.Find("mjcb_act_gain", &calls.actuator_callbacks[1]);
  finder.Find("mjcb_act_bias", &calls.actuator_callbacks[2]);
  finder.Find("mju_user_error", &error_handler);
  if (version != nullptr) calls.version = version();
  if (calls.version >= kFirstDiscrete) {
    const bool is_renamed = calls.version >= kFirstRenamedMetric;
    finder.Find(is_renamed ? "mj_effBuild" : "mjd_effBuild", &calls.build_metric);
    finder.Find(is_renamed ? "mj_effMulAdd" : "mjd_effMulAdd", &calls.multiply_metric);
  }
  if (finder.missing() != nullptr) {
    return tl::unexpected(std::string("MuJoCo has no ") + finder.missing());
  }
  calls.fields = fields != nullptr ? fields : FieldsOfVersion(calls.version);
  if (calls.fields == nullptr) {
    return tl::unexpected("the structs of MuJoCo " + std::to_string(calls.version) +
                          " are not known");
  }
  if (calls.version >= kFirstExactDiagonal) calls.exact_diagonal = kExactDiagonal;
  if (calls.version >= kFirstIpc) calls.ipc = kIpc;
  if (*error_handler != &OnError) {
    former_handler = *error_handler;
    *error_handler = &OnError;
  }
  return calls;
}

bool MujocoCalls::HasCallbacksOfActuation() const {
  const auto is_set = [](const Stage* callback) { return *callback != nullptr; };
  return is_set(control_callback) || std::ranges::any_of(actuator_callbacks, is_set);
}

void MujocoCalls::RemakeConstraints(const void* model, void* data) const {
  const Fields found = ReadFields(fields, model, data);
  make_constraint(model, data);
  island(model, data);
  // R from J M^-1 J', not from its estimate.
  if ((found.enableflags & exact_diagonal) != 0) project_constraint(model, data);
  transmission(model, data);  // adhesion reads the rows of contacts
  if (IsDiscrete(found)) build_metric(model, data, 1, 1);
}

tl::expected<double, EngineError> MujocoCalls::Now() const {
  double (*const clock)() = *time_callback;
  if (clock == nullptr) return 0.0;
  double time = 0.0;
  if (EngineStatus run = Run([&] { time = clock(); }); !run) return tl::unexpected(run.error());
  return time;
}

EngineStatus MujocoCalls::RunGuarded(void (*run)(const void* body), const void* body) {
  Landing here;
  Landing* const outer = landing;
  landing = &here;
  const bool is_done = setjmp(here.place) == 0;
  if (is_done) run(body);
  landing = outer;
  if (is_done) return {};
  return tl::unexpected(
      EngineError{EngineErrorCode::kInternal, std::string("MuJoCo: ") + here.text, ""});
}

}  // namespace sap::mujoco
