#include "server/worlds/world_handler.h"

#include <filesystem>
#include <utility>

#include "server/worlds/find_library.h"

namespace sap {
namespace {

// Predicted time to hash a model and to load it, per byte and besides.
constexpr double kLoadTimePerByte_s = 5e-8;
constexpr double kLoadTime_s = 2e-3;
// Idle workers are ended after this time.
constexpr std::chrono::seconds kIdle{60};
// Memory of an answer besides its numbers, for each world: its outcome.
constexpr int64_t kOutcome_bytes = 512;

int64_t BytesOf(const google::protobuf::Message& message) {
  return static_cast<int64_t>(message.ByteSizeLong());
}

std::string Program(const WorldsConfig& config) {
  if (!config.program.empty()) return config.program;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "sap-worlds").string();
}

// Starts a call. Memory that runs out before it is started is its answer.
template <typename Start>
void StartOrRefuse(const Start& start, WorldHandler::Done done, void* context) {
  const ServiceStatus started = CatchExceptions(start);
  if (!started) done(context, started);
}

}  // namespace

// A call of PutModel in progress.
struct WorldHandler::Put {
  WorldHandler* handler;
  ModelSource source;
  v1::PutModelResponse* response;
  CallContext call;
  ClientAccount* account;
  Demand demand;
  Done done;
  void* context;
  QueuedTask task{};
};

tl::expected<std::unique_ptr<WorldHandler>, std::string> WorldHandler::Start(
    const ServerConfig& config, RequestHandler* handler, Metrics* metrics) {
  WorldsConfig worlds = config.worlds;
  if (worlds.mujoco_library == "auto") worlds.mujoco_library = FindMujoco(worlds.library_path);
  if (worlds.mujoco_library.empty()) {
    return tl::unexpected<std::string>(
        "worlds: --mujoco-library auto finds no libmujoco.so; give its path");
  }
  WorkerConfig worker;
  worker.program = Program(worlds);
  worker.mujoco_library = std::filesystem::absolute(worlds.mujoco_library).string();
  worker.max_memory_bytes = worlds.max_world_memory_mib << 20;
  worker.max_load_s = worlds.max_model_load_s;
  worker.max_step_s = worlds.max_step_s;
  worker.without_jail = worlds.without_jail;
  worker.library_path = worlds.library_path;
  auto first = WorkerProcess::Start(worker);
  if (!first) return tl::unexpected("worlds: " + first.error());
  const auto start = [worker]() -> tl::expected<std::unique_ptr<Worker>, std::string> {
    auto started = WorkerProcess::Start(worker);
    if (!started) return tl::unexpected(started.error());
    return std::unique_ptr<Worker>(std::move(*started));
  };
  auto self = std::make_unique<WorldHandler>(handler, metrics, (*first)->greeting(), start);
  self->workers_.Add(std::move(*first));
  return self;
}

WorldHandler::WorldHandler(RequestHandler* handler, Metrics* metrics,
                           const WorkerGreeting& greeting, WorkerPool::StartWorker start)
    : handler_(handler),
      telemetry_{nullptr, metrics},
      greeting_(greeting),
      models_(handler->config().worlds.max_model_memory_mib << 20),
      // As many as work at a time, those of the reserved thread included.
      workers_(std::move(start), handler->config().threads + 1) {
  handler->Watch({.kept_bytes = [this] { return models_.bytes(); },
                  .child_bytes = [this] { return workers_.resident_bytes(); },
                  .free_caches =
                      [this] {
                        workers_.EndIdle(std::chrono::seconds(0));
                        models_.Clear();
                      }});
}

WorldHandler::~WorldHandler() { handler_->Watch({}); }

void WorldHandler::StartPutModel(v1::PutModelRequest* request, const CallContext& call,
                                 v1::PutModelResponse* response, Done done, void* context) {
  StartOrRefuse([&] { return MakePut(request, call, response, done, context); }, done, context);
}

void WorldHandler::StartAdvance(const v1::AdvanceRequest& request, const CallContext& call,
                                v1::AdvanceResponse* response, Done done, void* context) {
  StartOrRefuse([&] { return MakeAdvance(request, call, response, done, context); }, done, context);
}

void WorldHandler::Describe(v1::GetServerInfoResponse* info) const {
  info->set_mujoco_version(greeting_.mujoco_version);
  info->set_mujoco_library_sha256(greeting_.library_sha256.data(), greeting_.library_sha256.size());
}

void WorldHandler::Sweep() { workers_.EndIdle(kIdle); }

ServiceStatus WorldHandler::Admit(ClientAccount* account, const Demand& demand) {
  ServiceStatus admitted = handler_->admission().CheckMemory().and_then(
      [&] { return handler_->admission().Admit(account, demand); });
  if (!admitted) CountIfLimit(admitted.error());
  return admitted;
}

ServiceStatus WorldHandler::CheckEntitled(const ClientAccount& account) const {
  if (account.entitlements().worlds) return {};
  return tl::unexpected(
      ServiceError{ServiceCode::kPermissionDenied, "the token of this client has worlds=no", ""});
}

ServiceStatus WorldHandler::MakePut(v1::PutModelRequest* request, const CallContext& call,
                                    v1::PutModelResponse* response, Done done, void* context) {
  ClientAccount* const account = AccountOf(call);
  if (ServiceStatus entitled = CheckEntitled(*account); !entitled) return entitled;
  auto source = DecodeModel(request, greeting_.mujoco_version);
  if (!source) return tl::unexpected(source.error());
  const int64_t bytes = HeldModel::BytesOf(*source);
  const int64_t limit = account->entitlements().max_model_bytes;
  if (ServiceStatus fits = models_.CheckSize(bytes, limit); !fits) {
    CountIfLimit(fits.error());
    return fits;
  }
  const Demand demand{bytes, kLoadTime_s + kLoadTimePerByte_s * static_cast<double>(bytes)};
  auto put = std::make_unique<Put>(
      Put{this, std::move(*source), response, call, account, demand, done, context});
  if (ServiceStatus admitted = Admit(account, demand); !admitted) return admitted;
  QueuedTask& task = put->task;
  task.run = [](void* context, Dispatch dispatch) {
    std::unique_ptr<Put> put(static_cast<Put*>(context));
    WorldHandler* const self = put->handler;
    ServiceStatus status = tl::unexpected(self->handler_->queue().Expired());
    if (dispatch != Dispatch::kExpired) {
      status = CatchExceptions([&] { return self->RunPut(put.get()); });
    }
    self->EndPut(std::move(put), status);
  };
  task.context = put.get();
  task.account = account;
  task.work_s = demand.work_s;
  Put* const pushed_put = put.release();  // after Push another thread may own it
  if (const ServiceStatus pushed = handler_->queue().Push(&pushed_put->task); !pushed) {
    EndPut(std::unique_ptr<Put>(pushed_put), pushed);
  }
  return {};
}

ServiceStatus WorldHandler::RunPut(Put* put) {
  if (ServiceStatus live = ToServiceStatus(CheckLive(put->call)); !live) return live;
  put->source.id = HashOf(put->source, greeting_.mujoco_version);
  const ModelId id = put->source.id;
  const std::string& client = put->account->name();
  if (const auto held = models_.Find(client, id); held != nullptr) {
    EncodeModel(id, held->sizes, put->response);
    return {};
  }
  auto model = std::make_shared<HeldModel>();
  auto worker = workers_.Take(client, id);
  if (!worker) return tl::unexpected(worker.error());
  const auto sizes =
      worker->Load(put->source, [call = &put->call] { return !CheckLive(*call).has_value(); });
  if (!sizes) {
    ServiceStatus live = ToServiceStatus(CheckLive(put->call));
    return live ? tl::unexpected(sizes.error()) : live;
  }
  if (!ArePlausible(*sizes)) {
    worker->End();
    return tl::unexpected(ServiceError{ServiceCode::kInvalidArgument,
                                       "the model has sizes that no model has", "files",
                                       "MODEL_REFUSED"});
  }
  model->sizes = *sizes;
  model->source = std::make_shared<const ModelSource>(std::move(put->source));
  models_.Put(client, put->account->entitlements().max_model_bytes, model);
  EncodeModel(id, model->sizes, put->response);
  return {};
}

void WorldHandler::EndPut(std::unique_ptr<Put> put, const ServiceStatus& status) {
  if (!status) {
    CountIfLimit(status.error());
    put->response->Clear();
  }
  const Done done = put->done;
  void* const context = put->context;
  handler_->admission().Release(put->account, put->demand);
  put.reset();
  done(context, status);
}

ServiceStatus WorldHandler::MakeAdvance(const v1::AdvanceRequest& request, const CallContext& call,
                                        v1::AdvanceResponse* response, Done done, void* context) {
  ClientAccount* const account = AccountOf(call);
  if (ServiceStatus entitled = CheckEntitled(*account); !entitled) return entitled;
  auto plan = DecodeAdvance(request, handler_->config());
  if (!plan) return tl::unexpected(plan.error());
  std::shared_ptr<HeldModel> model = models_.Find(account->name(), plan->model);
  if (model == nullptr) {
    return tl::unexpected(ServiceError{ServiceCode::kNotFound,
                                       "the server does not have this model; put it and repeat",
                                       "model_id", "MODEL"});
  }
  ServiceStatus checked =
      CheckArrays(request, model->sizes, handler_->config().max_message_bytes, &*plan);
  if (!checked) {
    CountIfLimit(checked.error());
    return checked;
  }
  const Demand demand{BytesOf(request) + plan->answer_bytes + plan->worlds * kOutcome_bytes,
                      static_cast<double>(plan->worlds * plan->steps) * model->step_time.seconds()};
  struct Held {
    ClientAccount* account;
    Demand demand;
    double work_s;
  };
  const auto held = std::make_shared<Held>(Held{account, demand, demand.work_s});
  const WorldCall::Target target{
      &handler_->queue(),
      &workers_,
      handler_->config().threads,
      account,
      telemetry_.metrics,
      [this, held](double part) {
        handler_->admission().ReleasePart(held->account, {.work_s = part * held->work_s},
                                          &held->demand);
      },
      [this, account, id = plan->model] { models_.Drop(account->name(), id); }};
  const auto end = [this, held, response, done, context](const ServiceStatus& status) {
    if (status) {
      const auto& hash = greeting_.library_sha256;
      response->set_mujoco_library_sha256(hash.data(), hash.size());
      response->set_threads(handler_->config().threads);
    } else {
      CountIfLimit(status.error());
      response->Clear();
    }
    handler_->admission().Release(held->account, held->demand);
    done(context, status);
  };
  if (ServiceStatus admitted = Admit(account, demand); !admitted) return admitted;
  ServiceStatus started =
      handler_->queue().CheckWait(*account, Priority::kNormal).and_then([&]() -> ServiceStatus {
        return CatchExceptions([&]() -> ServiceStatus {
          WorldCall::Start(request, *plan, std::move(model), call, target, response, end);
          return {};
        });
      });
  if (!started) {
    CountIfLimit(started.error());
    handler_->admission().Release(account, demand);
  }
  return started;
}

}  // namespace sap
