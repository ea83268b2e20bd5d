// Runs a call of the C interface: what it returns or throws becomes the error of its answers.
#pragma once

#include <span>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "client/c/sap_islands.h"

namespace sap::c {

// Runs a call to its end. Fills the answers if it fails, and returns its kind.
template <typename Work>
int32_t Finish(const Work& work, std::span<sap_answer* const> answers) noexcept {
  try {
    const Status status = work();
    if (status) return SAP_OK;
    for (sap_answer* answer : answers) answer->content->SetError(status.error());
    return static_cast<int32_t>(status.error().code);
  } catch (...) {
    // Only the standard library throws, when memory runs out: nothing is allocated here.
    for (sap_answer* answer : answers) answer->content->SetOutOfMemory();
    return SAP_RESOURCE_EXHAUSTED;
  }
}

// Runs a call whose answers have no contents before it.
template <typename Work>
int32_t RunHere(std::span<sap_answer* const> answers, const Work& work) noexcept {
  for (sap_answer* answer : answers) {
    answer->content->Clear();
    answer->content->set_step_id(0);
  }
  return Finish(work, answers);
}

// Runs `work(content)` for one answer.
template <typename Work>
int32_t RunOnAnswer(sap_answer* answer, const Work& work) noexcept {
  if (answer == nullptr) return SAP_INVALID_ARGUMENT;
  return RunHere(std::span<sap_answer* const>(&answer, 1),
                 [&] { return work(answer->content.get()); });
}

}  // namespace sap::c
