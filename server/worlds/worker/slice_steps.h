// Steps the worlds of a slice, in the memory that server and worker share.
#pragma once

#include "server/worlds/worker/model_store.h"
#include "server/worlds/worker_block.h"

namespace sap {

// kStopped: as the head of the block said; otherwise kDone.
WorkerVerdict StepSlice(const ModelLoader& loader, ModelStore::Model* model, BlockHead* head);

}  // namespace sap
