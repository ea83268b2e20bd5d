#include "server/ops/request_id.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "solver/engine/boot_id.h"

namespace sap {
namespace {

constexpr const char* kHeader = "x-request-id";
constexpr size_t kLongestId = 256;

}  // namespace

std::string_view HeaderOf(const grpc::ServerContext& context, const char* name) {
  const auto& headers = context.client_metadata();
  const auto found = headers.find(name);
  if (found == headers.end()) return {};
  return {found->second.data(), found->second.size()};
}

bool IsPrintable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

std::array<char, 32> MakeRequestId() {
  static std::atomic<uint64_t> next{0};
  constexpr const char* kDigits = "0123456789abcdef";
  std::array<char, 32> id;
  char* digit = std::ranges::copy(BootId(), id.begin()).out;
  const uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  for (int shift = 60; shift >= 0; shift -= 4) *digit++ = kDigits[number >> shift & 15];
  return id;
}

std::string_view RequestId::Of(const grpc::ServerContext& context) {
  if (!id_.empty()) return id_;
  const std::string_view header = HeaderOf(context, kHeader);
  if (!header.empty() && IsPrintable(header)) return id_ = header.substr(0, kLongestId);
  made_ = MakeRequestId();
  return id_ = {made_.data(), made_.size()};
}

void RequestId::Return(grpc::ServerContext* context) {
  context->AddTrailingMetadata(kHeader, std::string(Of(*context)));
}

}  // namespace sap
