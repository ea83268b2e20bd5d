// Between the messages of WorldService and the types of workers, with every rule of the schema.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

#include "sap/v1/world_service.pb.h"
#include "server/service_error.h"
#include "server/worlds/model_cache.h"
#include "server/worlds/world_slice.h"
#include "solver/engine/engine_limits.h"

namespace sap {

// "4.0.0" of a number of mj_version().
std::string NameOfVersion(int32_t mujoco_version);

// The files of a request, which loses their content. Their hash is not computed. MUJOCO_VERSION:
// they are of another version than this one.
tl::expected<ModelSource, ServiceError> DecodeModel(v1::PutModelRequest* message,
                                                    int32_t mujoco_version);

// The hash that names a model, as PutModelResponse.model_id.
ModelId HashOf(const ModelSource& model, int32_t mujoco_version);

// Whether these can be the sizes of a model: they come from a process that has read its bytes.
bool ArePlausible(const ModelSizes& sizes);

void EncodeModel(const ModelId& id, const ModelSizes& sizes, v1::PutModelResponse* message);

// A request of Advance, without its arrays.
struct AdvancePlan {
  ModelId model;
  int64_t worlds{0};
  int64_t steps{0};
  WorldSettings settings;

  // With the sizes of the model:
  int64_t rows{0};           // answered, of a world
  int64_t state_size{0};     // of initial states
  int64_t answered_size{0};  // of answered states
  int64_t control_size{0};   // of all components
  int64_t answer_bytes{0};   // at most
};

// An error names the field.
tl::expected<AdvancePlan, ServiceError> DecodeAdvance(const v1::AdvanceRequest& message,
                                                      const EngineLimits& limits);

// Completes the plan, and checks the lengths of the arrays. ANSWER_BYTES: the answer is longer than
// this.
ServiceStatus CheckArrays(const v1::AdvanceRequest& message, const ModelSizes& sizes,
                          int64_t max_answer_bytes, AdvancePlan* plan);

// Allocates the arrays of the answer.
void BeginAnswer(const v1::AdvanceRequest& request, const ModelSizes& sizes,
                 const AdvancePlan& plan, v1::AdvanceResponse* answer);

void EncodeOutcome(const WorldProgress& progress, v1::WorldOutcome* message);

}  // namespace sap
