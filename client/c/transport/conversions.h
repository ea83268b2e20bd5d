// Between the structs of the C interface and the types of client/cpp.
#pragma once

#include <string>
#include <vector>

#include "client/c/answer.h"
#include "client/c/struct_reader.h"
#include "client/cpp/client.h"

namespace sap::c {

CallError FromClient(const client::Error& error);

inline Status FromClient(const tl::expected<void, client::Error>& status) {
  if (status) return {};
  return tl::unexpected(FromClient(status.error()));
}

// An error if they say what a server does not know.
tl::expected<client::SolveOptions, CallError> ToClient(const GivenOptions& given,
                                                       const CallSettings& call);

client::CallOptions CallOf(const CallSettings& call);

// The request of a sap_differentiation: views of its arrays, and which gradients are wanted.
struct ClientDifferentiation {
  client::DifferentiateView view;
  InputSelection wanted;
};

tl::expected<ClientDifferentiation, CallError> ToClient(const sap_differentiation* request,
                                                        const CallSettings& call);

// Each fills the content, or returns the error.
Status Put(tl::expected<client::Solution, client::Error> outcome, bool warm_started,
           AnswerContent* content);
Status Put(tl::expected<client::Derivatives, client::Error> outcome, const InputSelection& wanted,
           AnswerContent* content);
void Put(const client::ServerInfo& info, AnswerContent* content);

}  // namespace sap::c
