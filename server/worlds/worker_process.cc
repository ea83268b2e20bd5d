#include "server/worlds/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "server/worlds/library_hash.h"
#include "server/worlds/slice_block.h"

namespace sap {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFirstSpareDescriptor = 16;  // above those of a worker
constexpr int kPollMs = 2;
constexpr int kStopMs = 30;
constexpr double kLongestStart_s = 20;
// Elapsed time that a limit of processor time allows, on a machine that is busy.
constexpr double kElapsedPerLimit = 10;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string ErrnoText(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

// A copy of a descriptor above those that a worker has.
FileDescriptor CopyHigh(int descriptor) {
  return FileDescriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstSpareDescriptor));
}

// Printable ASCII of a text in the block.
template <size_t size>
std::string Printable(const std::array<char, size>& text) {
  return PrintableText(text.data(), size);
}

// Attributes of a worker for posix_spawn: its descriptors and no others, no signal blocked or
// ignored, and a process group of its own, so that Ctrl-C at the server's terminal is not for it.
class SpawnAttributes {
 public:
  SpawnAttributes(int socket, int block, int lifeline) {
    posix_spawn_file_actions_init(&actions_);
    for (const int standard : {0, 1, 2}) {
      posix_spawn_file_actions_addopen(&actions_, standard, "/dev/null", O_RDWR, 0);
    }
    posix_spawn_file_actions_adddup2(&actions_, socket, kWorkerSocket);
    posix_spawn_file_actions_adddup2(&actions_, block, kWorkerBlock);
    posix_spawn_file_actions_adddup2(&actions_, lifeline, kWorkerLifeline);
    posix_spawn_file_actions_addclosefrom_np(&actions_, kWorkerLifeline + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnAttributes() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::string DescribeEnd(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  }
  return "status " + std::to_string(WEXITSTATUS(status));
}

ServiceError Cancelled() { return {ServiceCode::kCancelled, "the call was cancelled", ""}; }

std::string Mebibytes(int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

ServiceError TakesTooMuch(const std::string& how, const WorkerConfig& config) {
  return {ServiceCode::kResourceExhausted,
          "loading the model " + how + "; it may take " + Mebibytes(config.max_memory_bytes) +
              " (--max-world-memory-mib)",
          "files", "MODEL_MEMORY"};
}

bool AreEqual(const ModelSizes& a, const ModelSizes& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

std::string ShortSeconds(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace

tl::expected<std::unique_ptr<WorkerProcess>, std::string> WorkerProcess::Start(
    const WorkerConfig& config) {
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess(config));
  const auto hash = HashOfLibrary(config.mujoco_library);
  if (!hash) return tl::unexpected(hash.error());
  worker->greeting_.library_sha256 = *hash;
  std::string error = worker->Spawn();
  if (error.empty()) error = worker->Greet();
  if (!error.empty()) return tl::unexpected(config.program + ": " + error);
  if (!worker->LimitMemory()) {
    return tl::unexpected(config.program + ": " + ErrnoText("its memory cannot be limited"));
  }
  return worker;
}

WorkerProcess::~WorkerProcess() { End(); }

std::string WorkerProcess::Spawn() {
  if (std::string error = block_.Open(); !error.empty()) return error;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return ErrnoText("no socket");
  socket_ = FileDescriptor(ends[0]);
  const FileDescriptor its_socket(ends[1]);
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoText("no pipe");
  const FileDescriptor its_lifeline(ends[0]);
  lifeline_ = FileDescriptor(ends[1]);
  const FileDescriptor copies[] = {CopyHigh(its_socket.get()), CopyHigh(block_.file()),
                                   CopyHigh(its_lifeline.get())};
  if (std::ranges::any_of(copies, [](const FileDescriptor& each) { return !each.is_open(); })) {
    return ErrnoText("no descriptor");
  }
  const SpawnAttributes spawn(copies[0].get(), copies[1].get(), copies[2].get());
  std::string memory = std::to_string(config_.max_memory_bytes);
  std::string jail = config_.without_jail ? "try" : "jail";
  char* const arguments[] = {const_cast<char*>(config_.program.c_str()),
                             const_cast<char*>(config_.mujoco_library.c_str()), memory.data(),
                             jail.data(), nullptr};
  std::string paths = "LD_LIBRARY_PATH=" + config_.library_path;
  char* const environment[] = {config_.library_path.empty() ? nullptr : paths.data(), nullptr};
  const int error = posix_spawn(&pid_, config_.program.c_str(), spawn.actions(), spawn.attributes(),
                                arguments, environment);
  if (error == 0) return "";
  pid_ = 0;
  return std::string("cannot be started: ") + std::strerror(error);
}

std::string WorkerProcess::Greet() {
  switch (Wait(1, kLongestStart_s, [] { return false; })) {
    case Ended::kAnswered:
      break;
    case Ended::kTooLong:
      return "did not start within " + ShortSeconds(kLongestStart_s);
    default:
      return "ended with " + last_end_ + " before it was ready";
  }
  const WorkerAnswer& answer = block_.head()->answer;
  if (answer.verdict != WorkerVerdict::kDone) return Printable(answer.message);
  greeting_.mujoco_version = answer.mujoco_version;
  greeting_.is_jailed = answer.is_jailed;
  address_space_ = std::max<int64_t>(answer.address_space, 0);
  return "";
}

bool WorkerProcess::LimitMemory() const {
  rlimit limit;
  if (prlimit(pid_, RLIMIT_AS, nullptr, &limit) != 0) return false;
  // With what models that are kept may take: ModelStore.
  const int64_t bytes = address_space_ + block_.bytes() + config_.max_memory_bytes / 16 * 17;
  limit.rlim_cur = std::min(static_cast<rlim_t>(bytes), limit.rlim_max);
  return prlimit(pid_, RLIMIT_AS, &limit, nullptr) == 0;
}

double WorkerProcess::ProcessorTime() const {
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0.0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

WorkerProcess::Ended WorkerProcess::Ask(int64_t steps, double longest_s,
                                        const IsStopped& is_stopped) {
  if (is_stopped()) return Ended::kStopped;
  block_.head()->stop = 0;
  block_.head()->position.store(0, std::memory_order_relaxed);
  const char byte = 0;
  if (send(socket_.get(), &byte, 1, MSG_NOSIGNAL) != 1) {
    last_end_ = End();
    return Ended::kDied;
  }
  return Wait(steps, longest_s, is_stopped);
}

bool WorkerProcess::HasAnswered(int timeout_ms, bool* has_died) const {
  pollfd answer = {socket_.get(), POLLIN, 0};
  if (poll(&answer, 1, timeout_ms) <= 0) return false;
  char byte;
  *has_died = recv(socket_.get(), &byte, 1, 0) != 1;
  return !*has_died;
}

WorkerProcess::Ended WorkerProcess::Wait(int64_t steps, double longest_s,
                                         const IsStopped& is_stopped) {
  int64_t& position = last_position_ = 0;
  double began_at = ProcessorTime();
  Clock::time_point began = Clock::now();
  for (bool has_died = false;;) {
    if (HasAnswered(kPollMs, &has_died)) return Ended::kAnswered;
    const int64_t now_at = block_.head()->position.load(std::memory_order_relaxed);
    const bool has_advanced = now_at > position && now_at < steps;  // anything else is no progress
    if (has_advanced) position = now_at;
    if (has_died) {
      last_end_ = End();
      return Ended::kDied;
    }
    if (is_stopped()) return Stop();
    if (has_advanced) {
      began_at = ProcessorTime();
      began = Clock::now();
    } else if (ProcessorTime() - began_at > longest_s ||
               Seconds(Clock::now() - began) > kElapsedPerLimit * longest_s) {
      last_end_ = End();
      return Ended::kTooLong;
    }
  }
}

WorkerProcess::Ended WorkerProcess::Stop() {
  block_.head()->stop = 1;
  bool has_died = false;
  if (!HasAnswered(kStopMs, &has_died)) End();
  return Ended::kStopped;
}

std::string WorkerProcess::End() {
  if (pid_ <= 0) return "";
  kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  socket_.Close();
  lifeline_.Close();
  return DescribeEnd(status);
}

tl::expected<ModelSizes, ServiceError> WorkerProcess::Load(const ModelSource& model,
                                                           const IsStopped& is_stopped) {
  if (!PutModel(model)) {
    return tl::unexpected(ServiceError(ServiceCode::kResourceExhausted,
                                       "the server is short of memory", "", "SERVER_MEMORY"));
  }
  const Ended ended = Ask(1, config_.max_load_s, is_stopped);
  if (is_alive()) block_.Release();
  switch (ended) {
    case Ended::kAnswered:
      return TakeSizes();
    case Ended::kStopped:
      return tl::unexpected(Cancelled());
    case Ended::kTooLong:
      return tl::unexpected(ServiceError(ServiceCode::kResourceExhausted,
                                         "loading the model took longer than " +
                                             ShortSeconds(config_.max_load_s) +
                                             " (--max-model-load-s)",
                                         "files", "MODEL_TIME"));
    case Ended::kDied:
      break;
  }
  return tl::unexpected(TakesTooMuch("has ended its process with " + last_end_, config_));
}

bool WorkerProcess::PutModel(const ModelSource& model) {
  const auto count = static_cast<int64_t>(model.files.size());
  ArrayPlaces places;
  const BlockOffset table = places.Add<BlockFile>(count);
  std::vector<BlockFile> files;
  for (const ModelSource::File& file : model.files) {
    const auto name_bytes = static_cast<int64_t>(file.name.size());
    const auto content_bytes = static_cast<int64_t>(file.content.size());
    const BlockOffset name = places.Add<char>(name_bytes);
    files.push_back({name, name_bytes, places.Add<char>(content_bytes), content_bytes});
  }
  if (!block_.Reserve(places.end())) return false;
  LimitMemory();
  BlockHead* const head = block_.head();
  head->request = WorkerRequest::kLoad;
  head->model = model.id;
  head->is_binary = model.is_binary;
  head->files = count;
  head->file = table;
  std::ranges::copy(files, At<BlockFile>(head, table));
  for (size_t i = 0; i < files.size(); ++i) {
    std::ranges::copy(model.files[i].name, At<char>(head, files[i].name));
    std::ranges::copy(model.files[i].content, At<char>(head, files[i].content));
  }
  return true;
}

tl::expected<ModelSizes, ServiceError> WorkerProcess::TakeSizes() {
  const WorkerAnswer answer = block_.head()->answer;
  const std::string text = Printable(answer.message);
  if (answer.is_last) End();
  switch (answer.verdict) {
    case WorkerVerdict::kDone:
      break;
    case WorkerVerdict::kRefused:
      return tl::unexpected(
          ServiceError(ServiceCode::kInvalidArgument, text, "files", "MODEL_REFUSED"));
    default:
      return tl::unexpected(TakesTooMuch("has failed: " + text, config_));
  }
  const ModelSizes& sizes = answer.sizes;
  for (const int32_t size :
       {sizes.nq, sizes.nv, sizes.nu, sizes.na, sizes.nbody, sizes.neq, sizes.nmocap,
        sizes.nuserdata, sizes.nsensordata, sizes.full_physics, sizes.integration}) {
    if (size < 0) return tl::unexpected(TakesTooMuch("gave sizes that cannot be", config_));
  }
  for (const int32_t size : sizes.control) {
    if (size < 0) return tl::unexpected(TakesTooMuch("gave sizes that cannot be", config_));
  }
  return sizes;
}

ServiceStatus WorkerProcess::Advance(const WorldSlice& slice, const IsStopped& is_stopped) {
  ServiceStatus status = AskForSlice(slice, is_stopped);
  if (!status || !is_unknown_) return status;
  const auto sizes = Load(*slice.model, is_stopped);
  if (!sizes) return tl::unexpected(sizes.error());
  if (!AreEqual(*sizes, *slice.sizes)) return Lost(slice, "gave other sizes than before");
  status = AskForSlice(slice, is_stopped);
  return is_unknown_ ? Lost(slice, "does not keep the model") : status;
}

ServiceStatus WorkerProcess::AskForSlice(const WorldSlice& slice, const IsStopped& is_stopped) {
  BlockSlice places;
  is_unknown_ = false;
  if (!PutSlice(slice, &block_, &places)) {
    return tl::unexpected(ServiceError(ServiceCode::kResourceExhausted,
                                       "the server is short of memory", "", "SERVER_MEMORY"));
  }
  LimitMemory();
  switch (Ask(slice.worlds * slice.steps, config_.max_step_s, is_stopped)) {
    case Ended::kAnswered:
      break;
    case Ended::kStopped:
      return tl::unexpected(Cancelled());
    case Ended::kTooLong:
      return Fault(slice,
                   " took longer than " + ShortSeconds(config_.max_step_s) + " (--max-step-s)",
                   "WORLD_STEP_TIME");
    case Ended::kDied:
      return Lost(slice, "ended with " + last_end_);
  }
  const WorkerAnswer answer = block_.head()->answer;
  is_unknown_ = answer.verdict == WorkerVerdict::kUnknownModel;
  if (is_unknown_) return {};
  if (answer.verdict == WorkerVerdict::kRefused) {
    return tl::unexpected(ServiceError(ServiceCode::kInvalidArgument, Printable(answer.message),
                                       "law", "MODEL_REFUSED"));
  }
  if (answer.verdict != WorkerVerdict::kDone || !TakeSlice(slice, places, block_)) {
    return Lost(slice, "gave an answer that cannot be");
  }
  block_.Release();
  return {};
}

ServiceStatus WorkerProcess::Lost(const WorldSlice& slice, const std::string& how) {
  End();
  return Fault(slice, ": the process that steps it " + how, "WORLD_LOST");
}

ServiceStatus WorkerProcess::Fault(const WorldSlice& slice, const std::string& what,
                                   const char* reason) const {
  const WorldStep at = {.world = slice.first_world + last_position_ / slice.steps,
                        .step = slice.first_step + last_position_ % slice.steps};
  ServiceError error(
      ServiceCode::kResourceExhausted,
      "step " + std::to_string(at.step) + " of world " + std::to_string(at.world) + what, "",
      reason);
  error.world_step = at;
  return tl::unexpected(std::move(error));
}

}  // namespace sap
