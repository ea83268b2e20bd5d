// Objects of the C library that free themselves.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client/c/sap_islands.h"

namespace sap::test {

template <typename Object, void (*kFree)(Object*)>
struct Freed {
  void operator()(Object* object) const { kFree(object); }
};

template <typename Object, void (*kFree)(Object*)>
using Owned = std::unique_ptr<Object, Freed<Object, kFree>>;

class Answer {
 public:
  Answer() : answer_(sap_answer_new()) {}
  sap_answer* get() const { return answer_.get(); }
  const sap_error& error() const { return *sap_answer_error(answer_.get()); }
  const sap_solution* solution() const { return sap_answer_solution(answer_.get()); }

 private:
  Owned<sap_answer, sap_answer_free> answer_;
};

class Client {
 public:
  // In this process.
  explicit Client(int threads) {
    sap_connect_options options{};
    options.struct_size = sizeof options;
    options.threads = threads;
    Connect("embedded:", &options);
  }
  explicit Client(const std::string& address, const sap_connect_options* options = nullptr) {
    Connect(address.c_str(), options);
  }
  sap_client* get() const { return client_.get(); }

 private:
  void Connect(const char* address, const sap_connect_options* options) {
    const Answer answer;
    sap_client* client = nullptr;
    sap_connect(address, options, nullptr, &client, answer.get());
    EXPECT_STREQ(answer.error().message, "");
    client_.reset(client);
  }

  Owned<sap_client, sap_client_free> client_;
};

class Session {
 public:
  explicit Session(const Client& client, const sap_call* call = nullptr) {
    const Answer answer;
    sap_session* session = nullptr;
    sap_session_open(client.get(), nullptr, call, &session, answer.get());
    EXPECT_STREQ(answer.error().message, "");
    session_.reset(session);
  }
  sap_session* get() const { return session_.get(); }

 private:
  Owned<sap_session, sap_session_free> session_;
};

}  // namespace sap::test
