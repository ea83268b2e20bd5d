#include "tests/server/worlds/mujoco_worlds.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "client/mujoco/sap_mujoco.h"
#include "tests/support/child_process.h"

namespace sap::test {
namespace {

namespace fs = std::filesystem;

std::string FindLibrary() {
  if (const char* chosen = std::getenv("SAP_MUJOCO_LIBRARY")) return chosen;
  const fs::path root = fs::path(SAP_PYTHON_ENVIRONMENT) / "lib";
  std::error_code error;
  for (const auto& version : fs::directory_iterator(root, error)) {
    const fs::path package = version.path() / "site-packages" / "mujoco";
    for (const auto& file : fs::directory_iterator(package, error)) {
      const std::string name = file.path().filename();
      if (name.starts_with("libmujoco.so")) return file.path();
    }
  }
  return "";
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Forty bodies above a plane, in five layers.
std::string Clutter() {
  std::string text =
      "<mujoco><option timestep='.002'/><worldbody><geom type='plane' size='5 5 .1'/>";
  for (int i = 0; i < 40; ++i) {
    std::ostringstream body;
    const char* shape = i % 2 == 0 ? "sphere' size='.05" : "box' size='.05 .05 .05";
    body << "<body pos='" << .11 * (i % 3) << " " << .11 * (i / 3 % 3) << " " << .06 + .11 * (i / 9)
         << "'><freejoint/><geom type='" << shape << "' condim='" << (i % 4 == 0 ? 4 : 3)
         << "'/></body>";
    text += body.str();
  }
  return text + "</worldbody><sensor><subtreecom body='world'/></sensor></mujoco>";
}

constexpr const char* kCloth = R"(<mujoco><option timestep=".002"/><worldbody>
  <geom type="sphere" size=".15" pos="0 0 .15"/>
  <flexcomp name="cloth" type="grid" count="7 7 1" spacing=".06 .06 .06" pos="0 0 .4" mass=".2"
            radius=".01" dim="2">
    <contact condim="3" selfcollide="none"/><edge equality="true" damping=".01"/></flexcomp>
  </worldbody></mujoco>)";

constexpr const char* kGripper = R"(<mujoco><option timestep=".002" cone="elliptic"/><worldbody>
  <geom type="plane" size="1 1 .1"/>
  <body name="hand" mocap="true" pos="0 0 .3"/>
  <body name="palm" pos="0 0 .3"><freejoint/><geom type="box" size=".05 .05 .02" mass=".5"/>
    <body pos=".04 0 -.06"><joint name="left" type="slide" axis="1 0 0" range="-.03 .03"/>
      <geom type="box" size=".008 .02 .05" mass=".1"/></body>
    <body pos="-.04 0 -.06"><joint name="right" type="slide" axis="-1 0 0" range="-.03 .03"/>
      <geom type="box" size=".008 .02 .05" mass=".1"/></body></body>
  <body pos="0 0 .22"><freejoint/>
    <geom type="box" size=".025 .02 .03" mass=".1" friction="1.5"/></body>
  </worldbody>
  <equality><weld body1="hand" body2="palm"/></equality>
  <actuator><position joint="left" kp="200" kv="10" ctrlrange="-.03 .03"/>
    <position joint="right" kp="200" kv="10" ctrlrange="-.03 .03"/></actuator>
  <sensor><jointpos joint="left"/><framepos objtype="body" objname="palm"/></sensor></mujoco>)";

constexpr const char* kMuscle = R"(<mujoco><option timestep=".002"/><worldbody>
  <geom type="plane" size="1 1 .1"/><site name="root" pos=".02 0 1"/>
  <body pos="0 0 1"><joint name="hinge" axis="0 1 0" damping=".1" range="-90 90"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".03"/><site name="end" pos=".03 0 -.2"/>
    <body pos="0 0 -.4"><joint name="slide" type="slide" axis="0 0 1" range="-.1 .1"/>
      <geom size=".05"/></body></body></worldbody>
  <tendon><spatial name="cord"><site site="root"/><site site="end"/></spatial></tendon>
  <actuator><muscle name="muscle" tendon="cord" lengthrange=".1 .4" ctrlrange="0 1"/>
    <general joint="slide" dyntype="filterexact" dynprm=".05" gainprm="20" ctrlrange="-1 1"/>
  </actuator><sensor><actuatorfrc actuator="muscle"/></sensor></mujoco>)";

void Seed(ModelSource* model) {
  static uint8_t number = 0;
  static uint8_t high = 0;
  model->id[0] = ++number;
  if (number == 0) ++high;
  model->id[1] = high;
  model->id[2] = 1;
}

}  // namespace

const std::string& MujocoLibrary() {
  static const std::string path = FindLibrary();
  EXPECT_FALSE(path.empty()) << "no libmujoco: tests/python.sh --prepare, or SAP_MUJOCO_LIBRARY";
  return path;
}

WorkerConfig ConfigOfWorker() {
  WorkerConfig config;
  config.program = SAP_WORLDS_BINARY;
  config.mujoco_library = MujocoLibrary();
  return config;
}

std::unique_ptr<WorkerProcess> StartWorker(const WorkerConfig& config) {
  auto worker = WorkerProcess::Start(config);
  EXPECT_TRUE(worker.has_value()) << worker.error();
  return worker ? std::move(*worker) : nullptr;
}

std::shared_ptr<ModelSource> ModelOf(std::string mjcf) {
  auto model = std::make_shared<ModelSource>();
  Seed(model.get());
  model->files.push_back({"scene.xml", std::move(mjcf)});
  return model;
}

std::string SceneOf(const std::string& name) {
  if (name == "clutter") return Clutter();
  if (name == "cloth") return kCloth;
  if (name == "gripper") return kGripper;
  if (name == "muscle") return kMuscle;
  return ReadFile(fs::path(SAP_EXAMPLE_MODELS) / (name + ".xml"));
}

const std::vector<std::string>& SceneNames() {
  static const std::vector<std::string> names = {"arm",   "humanoid", "clutter",
                                                 "cloth", "gripper",  "muscle"};
  return names;
}

const ModelLoader& Mujoco() {
  static const auto loader = ModelLoader::Open(MujocoLibrary());
  EXPECT_TRUE(loader.has_value()) << loader.error();
  return **loader;
}

namespace {

// A function of MuJoCo's library in this process.
template <typename Type>
Type* Function(const char* name) {
  Mujoco();
  void* const library = dlopen(MujocoLibrary().c_str(), RTLD_NOLOAD | RTLD_NOW);
  return reinterpret_cast<Type*>(dlsym(library, name));
}

std::string Save(const void* model) {
  const int64_t size = Function<int64_t(const void* model)>("mj_sizeModel")(model);
  std::string bytes(static_cast<size_t>(size), 0);
  Function<void(const void* model, const char* name, void* buffer, int64_t bytes)>("mj_saveModel")(
      model, nullptr, bytes.data(), size);
  return bytes;
}

// Loads a model here; deleted when the last user is gone.
std::shared_ptr<void> Load(const ModelSource& source) {
  std::vector<ModelFile> files;
  for (const auto& file : source.files) files.push_back({file.name, file.content});
  const auto model = Mujoco().Load(files, source.is_binary);
  EXPECT_TRUE(model.has_value()) << model.error().text;
  if (!model) return nullptr;
  return {*model, [](void* each) { Mujoco().Delete(each); }};
}

}  // namespace

std::shared_ptr<ModelSource> BinaryOf(const ModelSource& source) {
  auto binary = std::make_shared<ModelSource>();
  Seed(binary.get());
  binary->is_binary = true;
  binary->files.push_back({"", Save(Load(source).get())});
  return binary;
}

ModelSizes SizesOf(const ModelSource& model) { return Mujoco().SizesOf(Load(model).get()); }

std::string BinaryWithPlugin() {
  const fs::path plugin = fs::path(MujocoLibrary()).parent_path() / "plugin" / "libactuator.so";
  Function<void(const char* path)>("mj_loadPluginLibrary")(plugin.c_str());
  const TemporaryDirectory directory;
  const std::string path = directory / "scene.xml";
  std::ofstream(path)
      << "<mujoco><extension><plugin plugin='mujoco.pid'><instance name='pid'>"
         "<config key='kp' value='1'/></instance></plugin></extension><worldbody><body>"
         "<joint name='j'/><geom size='.1'/></body></worldbody><actuator>"
         "<plugin joint='j' instance='pid'/></actuator></mujoco>";
  std::array<char, 1000> error;
  using LoadXml = void*(const char* path, const void* vfs, char* error, int bytes);
  const auto load = Function<LoadXml>("mj_loadXML");
  void* const model = load(path.c_str(), nullptr, error.data(), static_cast<int>(error.size()));
  EXPECT_NE(model, nullptr) << error.data();
  if (model == nullptr) return "";
  std::string bytes = Save(model);
  Mujoco().Delete(model);
  return bytes;
}

SliceOfAll::SliceOfAll(Rollout rollout)
    : rollout_(std::move(rollout)), progress_(static_cast<size_t>(rollout_.worlds)) {
  slice_.model = rollout_.model;
  slice_.sizes = &rollout_.sizes;
  slice_.settings = rollout_.settings;
  slice_.worlds = rollout_.worlds;
  slice_.steps = slice_.all_steps = rollout_.steps;
  slice_.states = rollout_.states.data();
  slice_.progress = progress_.data();
}

int64_t Rollout::ControlSize() const {
  int64_t size = 0;
  for (size_t i = 1; i < sizes.control.size(); ++i) {
    if ((settings.control_components >> i & 1) != 0) size += sizes.control[i];
  }
  return size;
}

Rollout RolloutOf(const std::string& scene, int64_t worlds, int64_t steps, int32_t law) {
  constexpr uint32_t kCtrl = 1 << 1;
  constexpr uint32_t kMocapPositions = 1 << 5;
  Rollout rollout;
  rollout.model = ModelOf(SceneOf(scene));
  rollout.settings.law = law;
  const auto model = Load(*rollout.model);
  rollout.sizes = Mujoco().SizesOf(model.get());
  rollout.settings.control_components = kCtrl | (scene == "gripper" ? kMocapPositions : 0);
  rollout.worlds = worlds;
  rollout.steps = steps;
  const auto& calls = Mujoco().calls();
  void* const data = calls.make_data(model.get());
  std::vector<double> initial(static_cast<size_t>(rollout.sizes.full_physics));
  calls.get_state(model.get(), data, initial.data(), Mujoco().kinds().full_physics);
  calls.delete_data(data);
  std::mt19937_64 generator(17);
  std::normal_distribution<double> noise(0, .05);
  for (int64_t world = 0; world < worlds; ++world) {
    std::vector<double> state = initial;
    for (int64_t i = 0; i < rollout.sizes.nv; ++i) {
      state[static_cast<size_t>(1 + rollout.sizes.nq + i)] += noise(generator);
    }
    rollout.states.insert(rollout.states.end(), state.begin(), state.end());
  }
  std::uniform_real_distribution<double> control(0, .3);
  rollout.controls.resize(static_cast<size_t>(worlds * steps * rollout.ControlSize()));
  std::ranges::generate(rollout.controls, [&] { return control(generator); });
  return rollout;
}

RolloutAnswer ComputeHere(const Rollout& rollout) {
  const auto model = Load(*rollout.model);
  const auto worlds = static_cast<size_t>(rollout.worlds);
  const std::vector<const void*> models(worlds, model.get());
  std::vector<int64_t> warned_in(worlds);
  std::vector<int64_t> taken(worlds);
  std::vector<sap_mujoco_outcome> outcomes(worlds);
  RolloutAnswer answer;
  const auto rows = static_cast<size_t>(rollout.worlds * rollout.steps);
  answer.states.resize(rows * static_cast<size_t>(rollout.AnsweredSize()));
  answer.sensors.resize(rows * static_cast<size_t>(rollout.sizes.nsensordata));
  answer.certificates.resize(rows);
  const WorldSettings& settings = rollout.settings;
  sap_mujoco_rollout_arrays arrays = {};
  arrays.environments = rollout.worlds;
  arrays.steps = rollout.steps;
  arrays.model = models.data();
  arrays.initial_state = rollout.states.data();
  arrays.control = rollout.controls.empty() ? nullptr : rollout.controls.data();
  arrays.control_size = rollout.ControlSize();
  arrays.control_kind = StateKinds::OfControls(settings.control_components);
  const StateKinds& kinds = Mujoco().kinds();
  arrays.state_kind = settings.AnswersFullPhysics() ? kinds.full_physics : kinds.integration;
  arrays.state = answer.states.data();
  arrays.state_size = rollout.AnsweredSize();
  arrays.sensordata = answer.sensors.empty() ? nullptr : answer.sensors.data();
  arrays.threads = 2;
  arrays.taken = taken.data();
  if (settings.holds_after_warning) arrays.warned_in = warned_in.data();
  arrays.rest_speed = settings.rest_speed;
  arrays.rest_seconds = settings.rest_duration_s;
  arrays.outcomes = outcomes.data();
  arrays.certificates = answer.certificates.data();
  const sap_mujoco_settings given = {settings.law, settings.refuses_unsolved,
                                     settings.relative_tolerance, settings.max_iterations};
  sap_mujoco_outcome outcome;
  sap_mujoco_rollout(Mujoco().solver(), &arrays, &given, &outcome);
  for (size_t i = 0; i < worlds; ++i) {
    WorldProgress progress;
    progress.steps = taken[i];
    progress.end = static_cast<WorldEnd>(outcomes[i].end);
    progress.code = outcomes[i].code;
    progress.warnings = static_cast<uint32_t>(outcomes[i].warnings);
    std::memcpy(progress.message.data(), outcomes[i].message, sizeof outcomes[i].message);
    answer.progress.push_back(progress);
  }
  return answer;
}

tl::expected<RolloutAnswer, ServiceError> ComputeThere(Worker* worker, const Rollout& rollout,
                                                       int64_t worlds, int64_t steps) {
  const ModelSizes& sizes = rollout.sizes;
  const int64_t rows = rollout.Rows();
  RolloutAnswer answer;
  answer.states.resize(static_cast<size_t>(rollout.worlds * rows * rollout.AnsweredSize()));
  answer.sensors.resize(static_cast<size_t>(rollout.worlds * rows * sizes.nsensordata));
  answer.checkpoints.resize(static_cast<size_t>(rollout.worlds * sizes.integration));
  answer.certificates.resize(static_cast<size_t>(rollout.worlds * rollout.steps));
  answer.progress.resize(static_cast<size_t>(rollout.worlds));
  const int64_t initial_size =
      rollout.settings.full_physics ? sizes.full_physics : sizes.integration;
  for (int64_t world = 0; world < rollout.worlds; world += worlds) {
    for (int64_t step = 0; step < rollout.steps; step += steps) {
      WorldSlice slice;
      slice.model = rollout.model;
      slice.sizes = &sizes;
      slice.settings = rollout.settings;
      slice.first_world = world;
      slice.worlds = std::min(worlds, rollout.worlds - world);
      slice.first_step = step;
      slice.steps = std::min(steps, rollout.steps - step);
      slice.all_steps = rollout.steps;
      slice.checkpoints = answer.checkpoints.data() + world * sizes.integration;
      const std::vector<double> begin(slice.checkpoints,
                                      slice.checkpoints + slice.worlds * sizes.integration);
      slice.states = step == 0 ? rollout.states.data() + world * initial_size : begin.data();
      slice.control_stride = rollout.steps * rollout.ControlSize();
      if (!rollout.controls.empty()) {
        slice.controls =
            rollout.controls.data() + (world * rollout.steps + step) * rollout.ControlSize();
      }
      const int64_t row = world * rows + AnsweredSteps(step, rollout.settings.every, rollout.steps);
      slice.answered_states = answer.states.data() + row * rollout.AnsweredSize();
      slice.state_stride = rows * rollout.AnsweredSize();
      if (sizes.nsensordata > 0) {
        slice.answered_sensors = answer.sensors.data() + row * sizes.nsensordata;
        slice.sensor_stride = rows * sizes.nsensordata;
      }
      slice.certificates = answer.certificates.data() + world * rollout.steps + step;
      slice.certificate_stride = rollout.steps;
      slice.progress = answer.progress.data() + world;
      const ServiceStatus status = worker->Advance(slice, [] { return false; });
      if (!status) return tl::unexpected(status.error());
    }
  }
  return answer;
}

bool HaveEqualBits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

}  // namespace sap::test
