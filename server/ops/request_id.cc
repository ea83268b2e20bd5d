#include "server/ops/request_id.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "solver/engine/boot_id.h"

namespace sap {
namespace {

constexpr const char* kHeader = "x-request-id";
constexpr size_t kLongestId = 256;

void AppendHexadecimal(uint64_t number, std::string* text) {
  constexpr const char* kDigits = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) text->push_back(kDigits[number >> shift & 15]);
}

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

std::string MakeRequestId() {
  static std::atomic<uint64_t> number{0};
  std::string id = BootId();
  id.reserve(32);
  AppendHexadecimal(number.fetch_add(1, std::memory_order_relaxed), &id);
  return id;
}

const std::string& RequestId::Of(const grpc::ServerContext& context) {
  if (!id_.empty()) return id_;
  const std::string_view header = HeaderOf(context, kHeader);
  id_ = IsPrintable(header) ? std::string(header.substr(0, kLongestId)) : std::string();
  if (id_.empty()) id_ = MakeRequestId();
  return id_;
}

void RequestId::Return(grpc::ServerContext* context) {
  context->AddTrailingMetadata(kHeader, Of(*context));
}

}  // namespace sap
