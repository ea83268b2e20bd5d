// A slice in the block: its arrays for the worker, and what the worker answers for its caller.
#pragma once

#include "server/worlds/shared_block.h"
#include "server/worlds/world_slice.h"

namespace sap {

// Writes the request. The places are the server's own copy: those in the block may be overwritten.
// False: there is no memory.
bool PutSlice(const WorldSlice& slice, SharedBlock* block, BlockSlice* places);

// Takes the answer. False: it cannot be one, and nothing is to be made of it.
bool TakeSlice(const WorldSlice& slice, const BlockSlice& places, const SharedBlock& block);

// Printable ASCII of a text in the block, which need not end.
std::string PrintableText(const char* text, size_t size);

}  // namespace sap
