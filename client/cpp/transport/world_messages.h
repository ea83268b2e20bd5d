// Messages of WorldService, and the results of slices in the arrays of the caller. Internal.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cpp/backend/call_types.h"
#include "client/cpp/transport/world_queue.h"
#include "client/cpp/worlds.h"
#include "sap/v1/world_service.pb.h"

namespace sap::client {

// The hash by which servers know a model, computed once: PutModelResponse.model_id.
const std::string& IdOf(const WorldModel& model);

v1::PutModelRequest PutRequestOf(const WorldModel& model);

// The step of a world that has ended its call, by the numbers of the call. Absent: none did.
struct WorldStep {
  int64_t world{0};
  int64_t step{0};
};
std::optional<WorldStep> WorldStepIn(const grpc::Status& status);

// The state of a call in slices: what later slices of a world begin with, and its results.
class WorldResults {
 public:
  explicit WorldResults(const WorldsView& worlds);

  v1::AdvanceRequest RequestOf(const WorldSlice& slice) const;

  // Takes an answer. An error if it does not have the arrays that were asked for.
  Status Take(const WorldSlice& slice, const v1::AdvanceResponse& response);
  // Ends a world with an error, in a step of the slice.
  void Fail(const WorldSlice& slice, int64_t world, int64_t step, Error error);

  bool GoesOn(int64_t world) const { return outcomes_[world].end == WorldEnd::kNone; }

  // Bytes of a call, for each world and for each step of one.
  double bytes_per_world() const { return bytes_per_world_; }
  double bytes_per_step() const { return bytes_per_step_; }

 private:
  // The arrays of one kind with a row for each world and answered step.
  struct Rows {
    std::span<double> values;
    size_t size{0};  // of a row
  };

  bool is_last(const WorldSlice& slice) const {
    return slice.first_step + slice.steps >= worlds_.steps;
  }
  // Rows before a step.
  int64_t RowsBefore(int64_t step) const { return (step + worlds_.every - 1) / worlds_.every; }
  void CopyRows(const WorldSlice& slice, const double* from, const Rows& to);
  void RepeatRows(int64_t world, int64_t first_row, const Rows& rows);
  Status TakeCheckpoints(const WorldSlice& slice, const v1::AdvanceResponse& response);
  void TakeCertificates(const WorldSlice& slice, const v1::StepCertificates& from);
  void TakeOutcome(const WorldSlice& slice, int64_t world, const v1::WorldOutcome& from);
  void End(int64_t world, int64_t rows);

  const WorldsView worlds_;
  const int64_t count_;
  const size_t state_size_;
  const size_t control_size_;
  const Rows states_;
  const Rows sensors_;
  double bytes_per_world_{0};
  double bytes_per_step_{0};
  std::vector<double> own_checkpoints_;  // where the caller wants none
  std::span<double> checkpoints_;        // [N, size of kIntegration] of the worlds that went on
  size_t checkpoint_size_{0};
  std::vector<WorldOutcome> own_outcomes_;
  std::span<WorldOutcome> outcomes_;  // `end` is kNone while a world goes on
};

}  // namespace sap::client
