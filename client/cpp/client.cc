#include "client/cpp/client.h"

#include "client/cpp/messages.h"
#include "client/cpp/transport.h"

namespace sap::client {

tl::expected<Client, Error> Client::Connect(const std::string& address,
                                            const ConnectOptions& options) {
  if (address == "embedded:") return Client(Embed(options.threads));
  auto transport = ConnectByGrpc(address, options.connect_timeout);
  if (!transport) return tl::unexpected(transport.error());
  return Client(std::move(*transport));
}

Client::Client(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

tl::expected<Solution, Error> Client::Solve(const Problem& problem, const SolveOptions& options) {
  if (options.deadline && options.deadline->count() <= 0) {
    return tl::unexpected(
        Error{ErrorCode::kDeadlineExceeded, "the deadline of the call has passed", ""});
  }
  // A time so far away that the clocks cannot add it is no deadline.
  constexpr std::chrono::hours kNever{24 * 366};
  const auto deadline = options.deadline > kNever ? std::nullopt : options.deadline;
  v1::SolveRequest request;
  ToMessage(problem, request.mutable_problem());
  ToMessage(options, request.mutable_options());
  v1::SolveResponse response;
  if (auto status = transport_->Solve(request, deadline, &response); !status) {
    return tl::unexpected(status.error());
  }
  return FromMessage(response.solution());
}

tl::expected<ServerInfo, Error> Client::Info() {
  v1::GetServerInfoResponse response;
  if (auto status = transport_->Info(&response); !status) return tl::unexpected(status.error());
  return FromMessage(response);
}

tl::expected<bool, Error> Client::Health() { return transport_->Health(); }

}  // namespace sap::client
