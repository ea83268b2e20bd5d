// Servers, over which large scenes are divided; all else is passed on as it is. Internal.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "client/cpp/backend/backend.h"
#include "client/cpp/split/split_solver.h"

namespace sap::client {

class DividingBackend final : public Backend {
 public:
  // The servers of the address, connected with these options.
  DividingBackend(std::unique_ptr<Backend> servers, const std::string& address,
                  const ConnectOptions& options)
      : shared_(std::make_shared<Shared>(std::move(servers), address, options)) {}

  void Solve(const ContactProblemView& problem, const SolveOptions& options, Timeout deadline,
             Where where, BuildPin* pin, Done<SolveOutcome> done) override {
    servers().Solve(problem, options, deadline, where, pin, std::move(done));
  }
  void SolveDivided(const ContactProblemView& problem, const SolveOptions& options, int count,
                    Timeout deadline, Where where, Done<SolveOutcome> done) override;
  void SolveBatch(Problems problems, const SolveOptions& options, Timeout deadline, Where where,
                  Done<Outcomes<SolveOutcome>> done) override {
    servers().SolveBatch(problems, options, deadline, where, std::move(done));
  }
  void StreamBatch(Problems problems, const SolveOptions& options, Timeout deadline, BatchSink sink,
                   Where where, Done<Status> done) override {
    servers().StreamBatch(problems, options, deadline, std::move(sink), where, std::move(done));
  }
  void Differentiate(const DifferentiateView& request, Timeout deadline, Where where,
                     Done<DerivativesOutcome> done) override {
    servers().Differentiate(request, deadline, where, std::move(done));
  }
  void DifferentiateBatch(std::span<const DifferentiateView> requests, const BatchLimits& limits,
                          Timeout deadline, Where where,
                          Done<Outcomes<DerivativesOutcome>> done) override {
    servers().DifferentiateBatch(requests, limits, deadline, where, std::move(done));
  }
  void Advance(const WorldsView& worlds, const WorldsOptions& options, Timeout deadline,
               Where where, Done<Status> done) override {
    servers().Advance(worlds, options, deadline, where, std::move(done));
  }
  tl::expected<std::unique_ptr<StepStream>, Error> OpenSession(
      const SolveOptions& options, const SessionOptions& session_options,
      Timeout deadline) override;
  void Info(const CallOptions& call, Timeout deadline, Where where,
            Done<tl::expected<ServerInfo, Error>> done) override {
    servers().Info(call, deadline, where, std::move(done));
  }
  void Health(const CallOptions& call, Where where, Done<tl::expected<bool, Error>> done) override {
    servers().Health(call, where, std::move(done));
  }

 private:
  // Sessions that divide their steps share it, and may outlive this object.
  struct Shared {
    Shared(std::unique_ptr<Backend> of, const std::string& address, const ConnectOptions& options)
        : servers(std::move(of)), solver(address, options) {}

    const std::unique_ptr<Backend> servers;
    SplitSolver solver;
  };

  Backend& servers() { return *shared_->servers; }

  const std::shared_ptr<Shared> shared_;
};

}  // namespace sap::client
