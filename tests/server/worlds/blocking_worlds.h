// A handler of worlds with fake workers, whose calls wait for their answers.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "server/worlds/world_handler.h"
#include "tests/server/worlds/fake_worker.h"

namespace sap::test {

constexpr int32_t kVersion = 4'000'000;

class BlockingWorlds {
 public:
  explicit BlockingWorlds(int threads = 1, ServerConfig config = {})
      : script_(std::make_shared<FakeScript>()) {
    config.threads = threads;
    handler_ = std::make_unique<RequestHandler>(config, nullptr, &metrics_);
    WorkerGreeting greeting;
    greeting.mujoco_version = kVersion;
    greeting.library_sha256.fill(7);
    worlds_ = std::make_unique<WorldHandler>(
        handler_.get(), &metrics_, greeting,
        [script = script_]() -> tl::expected<std::unique_ptr<Worker>, std::string> {
          return std::make_unique<FakeWorker>(script);
        });
  }

  FakeScript* script() { return script_.get(); }
  WorldHandler* worlds() { return worlds_.get(); }
  RequestHandler* handler() { return handler_.get(); }
  Metrics* metrics() { return &metrics_; }

  static v1::PutModelRequest Model(const std::string& content = "<mujoco/>") {
    v1::PutModelRequest request;
    request.set_mujoco_version(kVersion);
    request.set_kind(v1::MODEL_KIND_MJCF);
    v1::ModelFile* const file = request.add_files();
    file->set_name("model.xml");
    file->set_content(content);
    return request;
  }

  ServiceStatus Put(v1::PutModelRequest request, v1::PutModelResponse* response,
                    const CallContext& call = {}) {
    std::promise<ServiceStatus> done;
    worlds_->StartPutModel(&request, call, response, &Done, &done);
    return done.get_future().get();
  }
  // The id of a model that is put.
  std::string Put(const CallContext& call = {}, const std::string& content = "<mujoco/>") {
    v1::PutModelResponse response;
    const ServiceStatus status = Put(Model(content), &response, call);
    return status ? response.model_id() : status.error().message;
  }

  ServiceStatus Advance(const v1::AdvanceRequest& request, v1::AdvanceResponse* response,
                        const CallContext& call = {}) {
    std::promise<ServiceStatus> done;
    worlds_->StartAdvance(request, call, response, &Done, &done);
    return done.get_future().get();
  }

  // A request of N worlds that all begin differently, with controls and for all answers.
  v1::AdvanceRequest Request(int worlds, int steps, int every = 1) {
    v1::AdvanceRequest request;
    request.set_model_id(Put());
    request.set_worlds(worlds);
    request.set_steps(steps);
    request.set_every(every);
    request.add_control_components(v1::CONTROL_COMPONENT_CTRL);
    for (int i = 0; i < worlds; ++i) {
      for (const double x : {0.1 * i + 0.3, 1.0 / (i + 3), 0.0}) request.add_states(x);
      for (int k = 0; k < steps * kControls; ++k) request.add_controls(0.01 * ((7 * i + k) % 13));
    }
    request.set_answers_states(true);
    request.set_answers_sensors(true);
    request.set_answers_final_states(true);
    request.set_answers_certificates(true);
    return request;
  }

 private:
  static void Done(void* context, const ServiceStatus& status) {
    static_cast<std::promise<ServiceStatus>*>(context)->set_value(status);
  }

  const std::shared_ptr<FakeScript> script_;
  Metrics metrics_;
  std::unique_ptr<RequestHandler> handler_;
  std::unique_ptr<WorldHandler> worlds_;
};

}  // namespace sap::test
