#include "server/auth/bearer_tokens.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/child_process.h"

namespace sap {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kAlice = "alice-0123456789abcdef";
constexpr const char* kBob = "bob-0123456789abcdef";

std::string Header(const std::string& token) { return "Bearer " + token; }

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

  // Asks until the answer is the name; false if it never is.
  bool Becomes(BearerTokens* tokens, const char* token, const char* name) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < until) {
      if (tokens->NameOf(Header(token)) == name) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  // As if the file had last been written then.
  void SetTime(const std::string& path, timespec time) {
    const timespec times[2] = {time, time};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  test::TemporaryDirectory directory_;
  std::string log_;
};

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
  EXPECT_THAT(ErrorOf(""), HasSubstr("contains no token"));
  EXPECT_THAT(ErrorOf("# nobody\n"), HasSubstr("contains no token"));
  EXPECT_THAT(ErrorOf("alice short"), HasSubstr("line 1 has a token of less than 16"));
  EXPECT_THAT(ErrorOf("alice " + std::string(1025, 'a')), HasSubstr("more than 1024 characters"));
  EXPECT_EQ(ErrorOf("alice " + std::string(1024, 'a')), "none");
  EXPECT_THAT(ErrorOf(std::string(65, 'a') + " " + kAlice), HasSubstr("more than 64 characters"));
  EXPECT_EQ(ErrorOf(std::string(64, 'a') + " " + kAlice), "none");
  EXPECT_THAT(ErrorOf("alice " + std::string(kAlice) + "\nbob"), HasSubstr("line 2 is not"));
  EXPECT_THAT(ErrorOf("alice " + std::string(kAlice) + " more"), HasSubstr("line 1 is not"));
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

// By another file in its place, or by its time alone, to the nanosecond; all of the same size.
TEST_F(BearerTokensTest, EveryKindOfChangeIsSeen) {
  const std::string path = (directory_ / "tokens").string();
  const auto tokens = Open("nancy " + std::string(kAlice));
  EXPECT_EQ(tokens->NameOf(Header(kAlice)), "nancy");
  const std::string other = (directory_ / "other").string();
  std::ofstream(other) << "alice " << kAlice;
  std::filesystem::rename(other, path);
  EXPECT_TRUE(Becomes(tokens.get(), kAlice, "alice"));
  Write("bobby " + std::string(kAlice));
  SetTime(path, {1'000'000'000, 1});
  EXPECT_TRUE(Becomes(tokens.get(), kAlice, "bobby"));
  Write("carol " + std::string(kAlice));
  SetTime(path, {1'000'000'000, 2});
  EXPECT_TRUE(Becomes(tokens.get(), kAlice, "carol"));
  EXPECT_EQ(log_, "");
}

// A call costs no reading of a file that says of itself that it is the same.
TEST_F(BearerTokensTest, AFileThatStaysIsNotReadAgain) {
  const std::string path = Write("alice " + std::string(kAlice));
  SetTime(path, {1'000'000'000, 1});
  auto tokens = BearerTokens::Open(path, [this](const std::string& m) { log_ += m; });
  ASSERT_TRUE(tokens.has_value());
  Write("bobby " + std::string(kAlice));
  SetTime(path, {1'000'000'000, 1});
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < until) {
    EXPECT_EQ((*tokens)->NameOf(Header(kAlice)), "alice");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST_F(BearerTokensTest, AFileThatIsGoneLeavesTheTokensAsTheyWere) {
  const auto tokens = Open("alice " + std::string(kAlice));
  std::filesystem::remove(directory_ / "tokens");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (log_.empty() && std::chrono::steady_clock::now() < until) {
    EXPECT_EQ(tokens->NameOf(Header(kAlice)), "alice");
  }
  EXPECT_THAT(log_, HasSubstr("No such file"));
  EXPECT_EQ(tokens->NameOf(Header(kAlice)), "alice");
}

// As one may be that the user of the server has no right to read.
TEST_F(BearerTokensTest, AFileThatCannotBeOpenedIsRefused) {
  const std::string path = (directory_ / "socket").string();
  ASSERT_EQ(mknod(path.c_str(), S_IFSOCK | 0600, 0), 0);
  const auto tokens = BearerTokens::Open(path, [](const auto&) {});
  ASSERT_FALSE(tokens.has_value());
  EXPECT_THAT(tokens.error(), HasSubstr("No such device or address"));
}

// A partly written file does not invalidate the tokens in use.
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
