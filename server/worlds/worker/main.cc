// sap-worlds LIBRARY MEMORY JAIL: a worker of sap-server, which starts it with the descriptors of
// worker_block.h. It steps worlds of MuJoCo on one thread, in a jail.
//
//   LIBRARY   path of MuJoCo's library
//   MEMORY    that a model may take [bytes]
//   JAIL      `jail`: without one it does not start; `try`: it does
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "client/mujoco/replaced_step.h"
#include "server/worlds/worker/jail.h"
#include "server/worlds/worker/model_loader.h"
#include "server/worlds/worker/model_store.h"
#include "server/worlds/worker/slice_steps.h"
#include "server/worlds/worker_block.h"

namespace sap {
namespace {

// Ends this process when the server has ended, however that was, whatever this one computes. The
// signal of a parent's death would come when the thread that has started the process ends.
bool DieWithServer() {
  return fcntl(kWorkerLifeline, F_SETOWN, getpid()) == 0 &&
         fcntl(kWorkerLifeline, F_SETSIG, SIGKILL) == 0 &&
         fcntl(kWorkerLifeline, F_SETFL, O_ASYNC) == 0;
}

bool HasServerEnded() {
  pollfd lifeline = {kWorkerLifeline, POLLIN, 0};
  return poll(&lifeline, 1, 0) != 0;
}

// Where memory runs out, this process ends first.
void OfferToOomKiller() {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, "1000", 4);
  close(file);
}

// The block, as large as the server has made it.
class MappedBlock {
 public:
  bool Map(int64_t bytes) {
    if (bytes == bytes_) return true;
    if (head_ != nullptr) munmap(head_, static_cast<size_t>(bytes_));
    void* const mapped = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                              MAP_SHARED, kWorkerBlock, 0);
    head_ = mapped == MAP_FAILED ? nullptr : static_cast<BlockHead*>(mapped);
    bytes_ = head_ == nullptr ? 0 : bytes;
    return head_ != nullptr;
  }
  // Maps what the server has added.
  bool Grow() { return Map(head_->bytes); }

  BlockHead* head() const { return head_; }
  int64_t bytes() const { return bytes_; }

 private:
  BlockHead* head_ = nullptr;
  int64_t bytes_ = 0;
};

void Say(std::string_view text, WorkerAnswer* answer) {
  const size_t length = std::min(text.size(), answer->message.size() - 1);
  std::memcpy(answer->message.data(), text.data(), length);
  answer->message[length] = 0;
}

class Worker {
 public:
  Worker(std::unique_ptr<ModelLoader> loader, int64_t max_bytes, MappedBlock* block)
      : loader_(std::move(loader)), models_(*loader_, max_bytes), block_(*block) {}

  int64_t empty_bytes() const { return models_.empty_bytes(); }

  // Opens whatever libraries open when they first load and step a model. An error: its text.
  std::string WarmUp(bool has_replacement) {
    static constexpr std::string_view kScene =
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 .1'><freejoint/>"
        "<geom size='.1'/></body></worldbody></mujoco>";
    const ModelFile file = {"scene.xml", kScene};
    const auto model = models_.Load({}, {&file, 1}, false, block_.bytes());
    if (!model) return model.error().text;
    const auto state = (*model)->states.Take((*model)->address);
    if (!state) return state.error().message;
    std::string error;
    for (const int32_t law :
         {SAP_MUJOCO_SAP, SAP_MUJOCO_MUJOCO, SAP_MUJOCO_COULOMB, SAP_MUJOCO_RUN}) {
      if (law == SAP_MUJOCO_RUN && !has_replacement) continue;
      const sap_mujoco_settings settings = {law, 0, 0, 0};
      sap_mujoco_outcome outcome;
      if (sap_mujoco_step(loader_->solver(), (*model)->address, *state, &settings, &outcome) != 0) {
        error = outcome.message;
      }
    }
    (*model)->states.Return((*model)->address, *state);
    return error;
  }

  // Does what the head of the block asks for. False: the process has to end.
  bool Answer() {
    WorkerAnswer& answer = block_.head()->answer;
    answer.is_last = false;
    if (!block_.Grow()) return false;
    switch (block_.head()->request) {
      case WorkerRequest::kLoad:
        Load();
        break;
      case WorkerRequest::kAdvance:
        Advance();
        break;
      case WorkerRequest::kNone:
        return false;
    }
    return true;
  }

 private:
  void Load() {
    BlockHead* const head = block_.head();
    std::vector<ModelFile> files;
    for (int64_t i = 0; i < head->files; ++i) {
      const BlockFile& file = At<BlockFile>(head, head->file)[i];
      std::string name(At<char>(head, file.name), static_cast<size_t>(file.name_bytes));
      if (name.empty()) name = "model";
      files.push_back({std::move(name),
                       {At<char>(head, file.content), static_cast<size_t>(file.content_bytes)}});
    }
    const auto model = models_.Load(head->model, files, head->is_binary, block_.bytes());
    WorkerAnswer& answer = head->answer;
    answer.verdict = model ? WorkerVerdict::kDone : model.error().verdict;
    if (model) {
      answer.sizes = (*model)->sizes;
    } else {
      answer.is_last = model.error().is_last;
      Say(model.error().text, &answer);
    }
  }

  void Advance() {
    BlockHead* const head = block_.head();
    WorkerAnswer& answer = head->answer;
    ModelStore::Model* const model = models_.Find(head->model);
    if (model == nullptr) {
      answer.verdict = WorkerVerdict::kUnknownModel;
    } else if (head->slice.settings.law != SAP_MUJOCO_RUN && loader_->HasIpc(model->address)) {
      answer.verdict = WorkerVerdict::kRefused;
      Say("the model enables `ipc`, which is stepped under the law RUN alone", &answer);
    } else {
      answer.verdict = StepSlice(*loader_, model, head);
    }
  }

  const std::unique_ptr<ModelLoader> loader_;
  ModelStore models_;
  MappedBlock& block_;
};

bool SendByte() {
  const char byte = 0;
  return write(kWorkerSocket, &byte, 1) == 1;
}

int RefuseToStart(std::string_view why, BlockHead* head) {
  head->answer.verdict = WorkerVerdict::kFailed;
  Say(why, &head->answer);
  SendByte();
  return EXIT_FAILURE;
}

int Serve(const std::string& library, int64_t max_bytes, bool needs_jail) {
  MappedBlock block;
  if (!block.Map(kHeadBytes)) return EXIT_FAILURE;
  BlockHead* head = block.head();
  if (!DieWithServer()) return RefuseToStart("the kernel signals no end of the server", head);
  if (HasServerEnded()) return EXIT_FAILURE;
  OfferToOomKiller();
  auto loader = ModelLoader::Open(library);
  if (!loader) return RefuseToStart(loader.error(), head);
  const int version = (*loader)->calls().version;
  // Without it each step of its law says what is missing.
  const bool has_replacement = mujoco::PrepareReplacement().has_value();
  Worker worker(std::move(*loader), max_bytes, &block);
  const std::string error = worker.WarmUp(has_replacement);
  if (!error.empty()) return RefuseToStart(error, head);
  const auto jailed = EnterJail();
  if (!jailed && needs_jail) return RefuseToStart("no jail: " + jailed.error(), head);
  WorkerAnswer& answer = head->answer;
  answer.verdict = WorkerVerdict::kDone;
  answer.mujoco_version = version;
  answer.is_jailed = jailed.has_value();
  answer.address_space = worker.empty_bytes();
  Say(jailed ? "" : jailed.error(), &answer);
  char request;
  while (SendByte() && read(kWorkerSocket, &request, 1) == 1 && worker.Answer()) {
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace sap

int main(int arguments, char** argument) {
  if (arguments != 4) {
    std::fputs("sap-worlds is started by sap-server, for --mujoco-library\n", stderr);
    return 2;
  }
  try {
    const bool needs_jail = std::string_view(argument[3]) == "jail";
    int64_t bytes = 0;
    std::from_chars(argument[2], argument[2] + std::strlen(argument[2]), bytes);
    return sap::Serve(argument[1], bytes, needs_jail);
  } catch (const std::exception&) {  // memory
    return EXIT_FAILURE;
  }
}
