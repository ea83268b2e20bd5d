#include "server/auth/bearer_tokens.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "tests/support/await.h"
#include "tests/support/child_process.h"

namespace sap {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kAlice = "alice-0123456789abcdef";
constexpr const char* kBob = "bob-0123456789abcdef";

std::string Header(const std::string& token) { return "Bearer " + token; }

std::optional<std::string> NameOf(const BearerTokens* tokens, const std::string& header) {
  const auto client = tokens->Find(header);
  if (!client) return std::nullopt;
  return client->name;
}

class BearerTokensTest : public testing::Test {
 protected:
  // Ends the last line, as a text has it.
  std::string Write(const std::string& text) {
    return WriteBytes(text.empty() || text.ends_with('\n') ? text : text + "\n");
  }
  std::string WriteBytes(const std::string& bytes) {
    const std::filesystem::path path = directory_ / "tokens";
    std::ofstream(path) << bytes;
    return path.string();
  }

  std::unique_ptr<BearerTokens> Open(const std::string& text) {
    auto tokens = BearerTokens::Open(Write(text), Logger());
    EXPECT_TRUE(tokens.has_value()) << tokens.error();
    return std::move(*tokens);
  }

  // The tokens log on a thread of their own.
  BearerTokens::Log Logger() {
    return [this](const std::string& message) {
      const std::lock_guard lock(mutex_);
      log_ += message;
    };
  }
  std::string log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  std::string ErrorOf(const std::string& text) {
    const auto tokens = BearerTokens::Open(Write(text), [](const std::string&) {});
    return tokens ? "none" : tokens.error();
  }

  static Entitlements EntitlementsOf(BearerTokens* tokens, const char* token) {
    const auto client = tokens->Find(Header(token));
    EXPECT_TRUE(client.has_value());
    return client ? client->entitlements : Entitlements();
  }

  // Asks until the answer is the name; false if it never is.
  bool Becomes(BearerTokens* tokens, const char* token, const char* name) {
    return test::Await([&] { return NameOf(tokens, Header(token)) == name; });
  }

  // As if the file had last been written then.
  void SetTime(const std::string& path, timespec time) {
    const timespec times[2] = {time, time};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  test::TemporaryDirectory directory_;

 private:
  mutable std::mutex mutex_;
  std::string log_;
};

TEST_F(BearerTokensTest, NamesTheClientOfAToken) {
  const auto tokens =
      Open("# clients\n\nalice " + std::string(kAlice) + "\n  bob\t" + kBob + "  \n");
  EXPECT_EQ(NameOf(tokens.get(), Header(kAlice)), "alice");
  EXPECT_EQ(NameOf(tokens.get(), Header(kBob)), "bob");
}

TEST_F(BearerTokensTest, KnowsNobodyByAnythingElse) {
  const auto tokens = Open("alice " + std::string(kAlice));
  for (const std::string& header :
       {std::string(), std::string("Bearer "), std::string(kAlice), Header("alice"),
        Header(std::string(kAlice) + "0"), Header("alice-0123456789abcdeg"),
        "bearer " + std::string(kAlice), "Basic " + std::string(kAlice)}) {
    EXPECT_EQ(NameOf(tokens.get(), header), std::nullopt) << header;
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
  EXPECT_THAT(ErrorOf("alice " + std::string(kAlice) + " more"),
              HasSubstr("line 1 is not a name, a token and words key=value"));
  const std::string doubled =
      ErrorOf("alice " + std::string(kAlice) + "\nbob " + std::string(kAlice));
  EXPECT_THAT(doubled, HasSubstr("line 2 has the token of another line"));
  EXPECT_THAT(doubled, Not(HasSubstr(kAlice)));
  const auto absent = BearerTokens::Open((directory_ / "absent").string(), [](const auto&) {});
  ASSERT_FALSE(absent.has_value());
  EXPECT_THAT(absent.error(), HasSubstr("No such file"));
}

TEST_F(BearerTokensTest, ALineStatesWhatItsClientMayDo) {
  const auto tokens = Open("alice " + std::string(kAlice) +
                           " priority=high sessions=16 bytes=64Mi solve-s=2 calls=64 work-s=0.5"
                           " rate=200 models=3Ki worlds=no\nbob " +
                           kBob + " bytes=1000 priority=normal worlds=yes\n");
  const Entitlements alice = EntitlementsOf(tokens.get(), kAlice);
  EXPECT_TRUE(alice.high_priority);
  EXPECT_EQ(alice.max_sessions, 16);
  EXPECT_EQ(alice.max_bytes, 64 * 1024 * 1024);
  EXPECT_EQ(alice.max_solve_s, 2);
  EXPECT_EQ(alice.max_calls, 64);
  EXPECT_EQ(alice.max_work_s, 0.5);
  EXPECT_EQ(alice.max_calls_per_s, 200);
  EXPECT_EQ(alice.max_model_bytes, 3 * 1024);
  EXPECT_FALSE(alice.worlds);
  const Entitlements bob = EntitlementsOf(tokens.get(), kBob);
  EXPECT_FALSE(bob.high_priority);
  EXPECT_EQ(bob.max_bytes, 1000);
  EXPECT_TRUE(bob.worlds);
}

TEST_F(BearerTokensTest, WhatALineDoesNotStateIsTheDefault) {
  const Entitlements defaults{.max_calls = 7, .max_solve_s = 3, .high_priority = false};
  const auto tokens =
      BearerTokens::Open(Write("alice " + std::string(kAlice) + " solve-s=4"), {}, defaults);
  ASSERT_TRUE(tokens.has_value()) << tokens.error();
  Entitlements expected = defaults;
  expected.max_solve_s = 4;
  EXPECT_EQ(EntitlementsOf(tokens->get(), kAlice), expected);
}

TEST_F(BearerTokensTest, AFaultyLimitIsRefusedByLineAndKey) {
  const auto error = [&](const std::string& words) {
    return ErrorOf("# clients\nalice " + std::string(kAlice) + " calls=3 " + words);
  };
  EXPECT_THAT(error("colour=red"), HasSubstr("line 2 has the unknown key colour; the keys are"));
  EXPECT_THAT(error("=3"), HasSubstr("line 2 has the unknown key"));
  for (const char* word :
       {"priority=urgent", "priority=", "calls=0",       "calls=1000001", "calls=2.5",
        "calls=",          "bytes=0",   "bytes=1025Gi",  "bytes=1.5Mi",   "bytes=64M",
        "bytes=-1",        "work-s=-1", "work-s=inf",    "work-s=nan",    "sessions=0",
        "sessions=many",   "solve-s=0", "solve-s=86401", "rate=-1",       "rate=1e10",
        "rate=2x",         "models=0",  "models=2G",     "worlds=maybe",  "worlds="}) {
    const std::string key = std::string(word).substr(0, std::string(word).find('='));
    EXPECT_THAT(error(word), HasSubstr("line 2 has a value of " + key + " that is not ")) << word;
  }
  EXPECT_EQ(error("bytes=1024Gi work-s=0 solve-s=0.001 rate=0"), "none");
}

// A second token on a line, with the padding of base64, looks like a key without a value.
TEST_F(BearerTokensTest, NoMessageContainsAWordThatMayBeAToken) {
  const std::string error = ErrorOf("alice " + std::string(kAlice) + " c2VjcmV0LXNlY3JldA==");
  EXPECT_THAT(error, HasSubstr("line 1 has the unknown key"));
  EXPECT_THAT(error, Not(HasSubstr("c2VjcmV0")));
}

TEST_F(BearerTokensTest, TheLinesOfOneNameStateTheSame) {
  const std::string alice = "alice " + std::string(kAlice);
  EXPECT_EQ(ErrorOf(alice + " calls=3\nalice " + kBob + " calls=3"), "none");
  EXPECT_THAT(ErrorOf(alice + " calls=3\nalice " + kBob),
              HasSubstr("line 2 has other limits than an earlier line of the same name"));
}

// As it must where sessions last and calls are rare.
TEST_F(BearerTokensTest, AChangedFileIsReadWithoutACall) {
  const auto tokens = Open("alice " + std::string(kAlice));
  const uint64_t before = tokens->version();
  Write("alice " + std::string(kAlice) + " calls=3");
  EXPECT_TRUE(test::Await([&] { return tokens->version() != before; }));
  EXPECT_EQ(EntitlementsOf(tokens.get(), kAlice).max_calls, 3);
}

TEST_F(BearerTokensTest, TheSameErrorOfAReloadIsLoggedOnce) {
  const auto tokens = Open("alice " + std::string(kAlice));
  std::filesystem::remove(directory_ / "tokens");
  ASSERT_TRUE(test::Await([&] { return !log().empty(); }));
  const std::string first = log();
  // Two checks at least, a second apart, find the file still gone.
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  EXPECT_EQ(log(), first);
  Write("bob");
  ASSERT_TRUE(test::Await([&] { return log() != first; }));
  const std::string all = log();
  EXPECT_THAT(all.substr(first.size()), HasSubstr("line 1 is not"));
  EXPECT_EQ(std::count(all.begin(), all.end(), ';'), 2);
}

TEST_F(BearerTokensTest, AChangedFileIsReadAgain) {
  const auto tokens = Open("alice " + std::string(kAlice));
  Write("bob " + std::string(kBob) + " \n");
  EXPECT_TRUE(Becomes(tokens.get(), kBob, "bob"));
  EXPECT_EQ(NameOf(tokens.get(), Header(kAlice)), std::nullopt);
  EXPECT_EQ(log(), "");
}

// By another file in its place, or by its time alone, to the nanosecond; all of the same size.
TEST_F(BearerTokensTest, EveryKindOfChangeIsSeen) {
  const std::string path = (directory_ / "tokens").string();
  const auto tokens = Open("nancy " + std::string(kAlice));
  EXPECT_EQ(NameOf(tokens.get(), Header(kAlice)), "nancy");
  const std::string other = (directory_ / "other").string();
  std::ofstream(other) << "alice " << kAlice << "\n";
  std::filesystem::rename(other, path);
  EXPECT_TRUE(Becomes(tokens.get(), kAlice, "alice"));
  Write("bobby " + std::string(kAlice));
  SetTime(path, {1'000'000'000, 1});
  EXPECT_TRUE(Becomes(tokens.get(), kAlice, "bobby"));
  Write("carol " + std::string(kAlice));
  SetTime(path, {1'000'000'000, 2});
  EXPECT_TRUE(Becomes(tokens.get(), kAlice, "carol"));
  EXPECT_EQ(log(), "");
}

// A call costs no reading of a file that says of itself that it is the same.
TEST_F(BearerTokensTest, AFileThatStaysIsNotReadAgain) {
  const std::string path = Write("alice " + std::string(kAlice));
  SetTime(path, {1'000'000'000, 1});
  auto tokens = BearerTokens::Open(path, Logger());
  ASSERT_TRUE(tokens.has_value());
  Write("bobby " + std::string(kAlice));
  SetTime(path, {1'000'000'000, 1});
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < until) {
    EXPECT_EQ(NameOf(tokens->get(), Header(kAlice)), "alice");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST_F(BearerTokensTest, AFileThatIsGoneLeavesTheTokensAsTheyWere) {
  const auto tokens = Open("alice " + std::string(kAlice));
  std::filesystem::remove(directory_ / "tokens");
  test::Await([&] {
    EXPECT_EQ(NameOf(tokens.get(), Header(kAlice)), "alice");
    return !log().empty();
  });
  EXPECT_THAT(log(), HasSubstr("No such file"));
  EXPECT_EQ(NameOf(tokens.get(), Header(kAlice)), "alice");
}

// As one may be that the user of the server has no right to read.
TEST_F(BearerTokensTest, AFileThatCannotBeOpenedIsRefused) {
  const std::string path = (directory_ / "socket").string();
  ASSERT_EQ(mknod(path.c_str(), S_IFSOCK | 0600, 0), 0);
  const auto tokens = BearerTokens::Open(path, [](const auto&) {});
  ASSERT_FALSE(tokens.has_value());
  EXPECT_THAT(tokens.error(), HasSubstr("No such device or address"));
}

// Thousands of tokens, and one of them.
TEST_F(BearerTokensTest, EveryOneOfManyTokensIsFound) {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += "client-" + std::to_string(i % 50) + " token-0123456789-" + std::to_string(i) + "\n";
  }
  const auto tokens = Open(text);
  for (int i = 0; i < 3000; ++i) {
    EXPECT_EQ(NameOf(tokens.get(), Header("token-0123456789-" + std::to_string(i))),
              "client-" + std::to_string(i % 50));
  }
}

// Reading it would wait for whoever writes to it, and neither calls nor the end of the server do.
TEST_F(BearerTokensTest, AnythingButARegularFileIsRefused) {
  const auto tokens = Open("alice " + std::string(kAlice));
  const std::string path = (directory_ / "tokens").string();
  const std::string pipe = (directory_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto opened = BearerTokens::Open(pipe, {});
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error(), HasSubstr("not a regular file"));
  std::filesystem::rename(pipe, path);
  EXPECT_TRUE(test::Await([&] { return tokens->reload_failed(); }));
  EXPECT_EQ(NameOf(tokens.get(), Header(kAlice)), "alice");
  EXPECT_THAT(log(), HasSubstr("not a regular file; the tokens stay as they were"));
  // Endless, and of another kind.
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/dev/zero", path);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(NameOf(tokens.get(), Header(kAlice)), "alice");
}

// The rest of a token would be a token, and the client that has the whole one a stranger.
TEST_F(BearerTokensTest, AFileThatIsCutOffWithinALineIsRefused) {
  const std::string whole = "alice " + std::string(kAlice) + "\nbob " + kBob + " calls=30\n";
  const auto tokens = Open(whole);
  const size_t bob = whole.find("bob");
  for (const size_t size : {bob + 4 + 17, whole.size() - 2, whole.size() - 1, bob + 3}) {
    const auto cut = BearerTokens::Open(WriteBytes(whole.substr(0, size)), {});
    ASSERT_FALSE(cut.has_value()) << size;
    EXPECT_THAT(cut.error(), HasSubstr("may be cut off")) << size;
  }
  EXPECT_TRUE(test::Await([&] { return tokens->reload_failed(); }));
  EXPECT_EQ(NameOf(tokens.get(), Header(kBob)), "bob");
  WriteBytes(whole);
  EXPECT_TRUE(test::Await([&] { return !tokens->reload_failed(); }));
}

// A byte order mark would become a part of the first name, and in UTF-16 every second byte is zero.
TEST_F(BearerTokensTest, OnlyPlainTextIsAccepted) {
  const std::string alice = "alice " + std::string(kAlice) + "\n";
  EXPECT_EQ(ErrorOf("J\xc3\xbcrgen " + std::string(kAlice) + "\r\n"), "none");
  EXPECT_THAT(ErrorOf("\xef\xbb\xbf" + alice), HasSubstr("byte order mark"));
  EXPECT_THAT(ErrorOf("\xef\xbb\xbf# clients\n" + alice), HasSubstr("byte order mark"));
  std::string wide = "\xfe\xff";
  for (const char c : alice) wide += {'\0', c};
  EXPECT_THAT(ErrorOf(wide), HasSubstr("line 1 has a control character"));
  EXPECT_THAT(ErrorOf(alice + "bob " + kBob + '\x1b' + "\n"),
              HasSubstr("line 2 has a control character"));
  EXPECT_THAT(ErrorOf(alice + std::string(4, '\0') + "\n"), HasSubstr("line 2"));
}

// What a failed read leaves out is not revoked.
TEST_F(BearerTokensTest, AFileThatCannotBeReadToItsEndIsAnError) {
  const auto folder = BearerTokens::Open(directory_ / "", [](const std::string&) {});
  ASSERT_FALSE(folder.has_value());
  EXPECT_THAT(folder.error(), HasSubstr("Is a directory"));
}

// A partly written file does not invalidate the tokens in use.
TEST_F(BearerTokensTest, WhatCannotBeReadLeavesTheTokensAsTheyWere) {
  const auto tokens = Open("alice " + std::string(kAlice));
  Write("bob");
  test::Await([&] {
    EXPECT_EQ(NameOf(tokens.get(), Header(kAlice)), "alice");
    return !log().empty();
  });
  EXPECT_THAT(log(), HasSubstr("the tokens stay as they were"));
  EXPECT_EQ(NameOf(tokens.get(), Header(kAlice)), "alice");
}

}  // namespace
}  // namespace sap
