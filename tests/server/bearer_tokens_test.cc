#include "server/bearer_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/child_process.h"

namespace sap {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kAlice = "alice-0123456789abcdef";
constexpr const char* kBob = "bob-0123456789abcdef";

class BearerTokensTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) {
    const std::filesystem::path path = directory_ / "tokens";
    std::ofstream(path) << text;
    return path.string();
  }

  std::unique_ptr<BearerTokens> Open(const std::string& text) {
    auto tokens = BearerTokens::Open(Write(text), [this](const std::string& m) { log_ += m; });
    EXPECT_TRUE(tokens.has_value()) << tokens.error();
    return std::move(*tokens);
  }

  std::string ErrorOf(const std::string& text) {
    const auto tokens = BearerTokens::Open(Write(text), [](const std::string&) {});
    return tokens ? "none" : tokens.error();
  }

  test::TemporaryDirectory directory_;
  std::string log_;
};

std::string Header(const std::string& token) { return "Bearer " + token; }

TEST_F(BearerTokensTest, NamesTheClientOfAToken) {
  const auto tokens =
      Open("# clients\n\nalice " + std::string(kAlice) + "\n  bob\t" + kBob + "  \n");
  EXPECT_EQ(tokens->NameOf(Header(kAlice)), "alice");
  EXPECT_EQ(tokens->NameOf(Header(kBob)), "bob");
}

TEST_F(BearerTokensTest, KnowsNobodyByAnythingElse) {
  const auto tokens = Open("alice " + std::string(kAlice));
  for (const std::string& header :
       {std::string(), std::string("Bearer "), std::string(kAlice), Header("alice"),
        Header(std::string(kAlice) + "0"), Header("alice-0123456789abcdeg"),
        "bearer " + std::string(kAlice), "Basic " + std::string(kAlice)}) {
    EXPECT_EQ(tokens->NameOf(header), std::nullopt) << header;
  }
}

TEST_F(BearerTokensTest, AFaultyFileIsRefusedByLineWithoutItsTokens) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("there is none"));
  EXPECT_THAT(ErrorOf("# nobody\n"), HasSubstr("there is none"));
  EXPECT_THAT(ErrorOf("alice short"), HasSubstr("line 1 has a token of less than 16"));
  EXPECT_THAT(ErrorOf("alice " + std::string(kAlice) + "\nbob"), HasSubstr("line 2 is not"));
  const std::string doubled =
      ErrorOf("alice " + std::string(kAlice) + "\nbob " + std::string(kAlice));
  EXPECT_THAT(doubled, HasSubstr("line 2 has the token of another line"));
  EXPECT_THAT(doubled, Not(HasSubstr(kAlice)));
  const auto absent = BearerTokens::Open((directory_ / "absent").string(), [](const auto&) {});
  ASSERT_FALSE(absent.has_value());
  EXPECT_THAT(absent.error(), HasSubstr("No such file"));
}

TEST_F(BearerTokensTest, AChangedFileIsReadAgain) {
  const auto tokens = Open("alice " + std::string(kAlice));
  Write("bob " + std::string(kBob) + " \n");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!tokens->NameOf(Header(kBob)) && std::chrono::steady_clock::now() < until) {
  }
  EXPECT_EQ(tokens->NameOf(Header(kBob)), "bob");
  EXPECT_EQ(tokens->NameOf(Header(kAlice)), std::nullopt);
  EXPECT_EQ(log_, "");
}

// A file that is half written, or gone, locks nobody out.
TEST_F(BearerTokensTest, WhatCannotBeReadLeavesTheTokensAsTheyWere) {
  const auto tokens = Open("alice " + std::string(kAlice));
  Write("bob");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (log_.empty() && std::chrono::steady_clock::now() < until) {
    EXPECT_EQ(tokens->NameOf(Header(kAlice)), "alice");
  }
  EXPECT_THAT(log_, HasSubstr("the tokens stay as they were"));
  EXPECT_EQ(tokens->NameOf(Header(kAlice)), "alice");
}

}  // namespace
}  // namespace sap
