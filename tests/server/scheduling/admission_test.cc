#include "server/scheduling/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sap {
namespace {

using testing::HasSubstr;

AdmissionConfig Config() {
  return {.all = {.max_calls = 4, .max_bytes = 1000, .max_work_s = 10, .max_sessions = 3},
          .client = {.max_calls = 2, .max_bytes = 600, .max_work_s = 6, .max_sessions = 2}};
}

std::string ReasonOf(const ServiceStatus& status) {
  return status ? "accepted" : status.error().reason;
}

class AdmissionTest : public testing::Test {
 protected:
  std::string Admit(const std::shared_ptr<ClientAccount>& account, const Demand& demand) {
    return ReasonOf(admission_.Admit(account.get(), demand));
  }

  Admission admission_{Config(), 2};
  std::shared_ptr<ClientAccount> a_ = admission_.AccountOf("a");
  std::shared_ptr<ClientAccount> b_ = admission_.AccountOf("b");
  std::shared_ptr<ClientAccount> c_ = admission_.AccountOf("c");
};

TEST_F(AdmissionTest, CallsAreBoundedForOneClientAndForAll) {
  EXPECT_EQ(Admit(a_, {}), "accepted");
  EXPECT_EQ(Admit(a_, {}), "accepted");
  EXPECT_EQ(Admit(a_, {}), "CLIENT_CALLS");
  EXPECT_EQ(Admit(b_, {}), "accepted");
  EXPECT_EQ(Admit(b_, {}), "accepted");
  EXPECT_EQ(Admit(c_, {}), "SERVER_CALLS");
  admission_.Release(a_.get(), {});
  EXPECT_EQ(Admit(c_, {}), "accepted");
  EXPECT_EQ(admission_.calls(), 4);
}

TEST_F(AdmissionTest, BytesAreBoundedForOneClientAndForAll) {
  EXPECT_EQ(Admit(a_, {.bytes = 400}), "accepted");
  EXPECT_EQ(Admit(a_, {.bytes = 201}), "CLIENT_BYTES");
  EXPECT_EQ(Admit(a_, {.bytes = 200}), "accepted");
  EXPECT_EQ(Admit(b_, {.bytes = 401}), "SERVER_BYTES");
  EXPECT_EQ(Admit(b_, {.bytes = 400}), "accepted");
  EXPECT_EQ(admission_.bytes(), 1000);
}

TEST_F(AdmissionTest, WorkIsBoundedForOneClientAndForAll) {
  EXPECT_EQ(Admit(a_, {.work_s = 5}), "accepted");
  EXPECT_EQ(Admit(a_, {.work_s = 2}), "CLIENT_WORK");
  EXPECT_EQ(Admit(b_, {.work_s = 6}), "SERVER_WORK");
  EXPECT_EQ(Admit(b_, {.work_s = 4}), "accepted");
}

TEST_F(AdmissionTest, WorkThatNeedNotBeDoneIsReleasedBeforeItsCall) {
  Demand demand{.work_s = 6};
  EXPECT_EQ(Admit(a_, demand), "accepted");
  EXPECT_EQ(Admit(a_, {.work_s = 4}), "CLIENT_WORK");
  admission_.ReleasePart(a_.get(), {.work_s = 5}, &demand);
  EXPECT_EQ(Admit(a_, {.work_s = 4}), "accepted");
  EXPECT_EQ(Admit(b_, {.work_s = 6}), "SERVER_WORK");
  admission_.Release(a_.get(), demand);
  EXPECT_EQ(Admit(b_, {.work_s = 6}), "accepted");
}

TEST_F(AdmissionTest, BytesThatAreNotNeededAreReleasedBeforeTheirCall) {
  Demand demand{.bytes = 600};
  EXPECT_EQ(Admit(a_, demand), "accepted");
  EXPECT_EQ(Admit(a_, {.bytes = 200}), "CLIENT_BYTES");
  admission_.ReleasePart(a_.get(), {.bytes = 400}, &demand);
  EXPECT_EQ(Admit(a_, {.bytes = 200}), "accepted");
  EXPECT_EQ(Admit(b_, {.bytes = 601}), "SERVER_BYTES");
  admission_.Release(a_.get(), demand);
  EXPECT_EQ(admission_.bytes(), 200);
}

TEST_F(AdmissionTest, SessionsAreBoundedForOneClientAndForAll) {
  const auto admit = [&](const auto& account) {
    return ReasonOf(admission_.AdmitSession(account.get()));
  };
  EXPECT_EQ(admit(a_), "accepted");
  EXPECT_EQ(admit(a_), "accepted");
  EXPECT_EQ(admit(a_), "CLIENT_SESSIONS");
  EXPECT_EQ(admit(b_), "accepted");
  EXPECT_EQ(admit(c_), "SERVER_SESSIONS");
  EXPECT_EQ(admission_.sessions(), 3);
  admission_.ReleaseSession(a_.get());
  EXPECT_EQ(admit(c_), "accepted");
}

// The bytes of a session are its own affair as long as nobody else holds any.
TEST_F(AdmissionTest, BytesThatASessionHoldsCount) {
  const auto hold = [&](const auto& account, int64_t bytes, int64_t held) {
    return ReasonOf(admission_.HoldBytes(account.get(), bytes, held));
  };
  EXPECT_EQ(hold(a_, 500, 0), "accepted");
  EXPECT_FALSE(admission_.IsFull(*a_));
  EXPECT_EQ(hold(a_, 200, 0), "CLIENT_BYTES");
  EXPECT_EQ(hold(a_, 200, 500), "accepted");
  EXPECT_TRUE(admission_.IsFull(*a_));
  EXPECT_FALSE(admission_.IsFull(*b_));
  EXPECT_EQ(hold(b_, 301, 0), "SERVER_BYTES");
  EXPECT_EQ(hold(b_, 300, 0), "accepted");
  EXPECT_TRUE(admission_.IsFull(*c_));
  EXPECT_EQ(Admit(c_, {.bytes = 1}), "accepted");  // the only call
  EXPECT_EQ(Admit(b_, {.bytes = 1}), "SERVER_BYTES");
  EXPECT_EQ(Admit(b_, {}), "accepted");  // a step, whose bytes are held
  admission_.AddBytes(a_.get(), -700);
  EXPECT_FALSE(admission_.IsFull(*a_));
  EXPECT_EQ(admission_.bytes(), 301);
}

// Else a problem beyond the bounds could never be solved.
TEST_F(AdmissionTest, TheOnlyCallMayBeOfAnySize) {
  EXPECT_EQ(Admit(a_, {.bytes = 5000, .work_s = 1000}), "accepted");
  EXPECT_EQ(Admit(b_, {.bytes = 1}), "SERVER_BYTES");
  admission_.Release(a_.get(), {.bytes = 5000, .work_s = 1000});
  EXPECT_EQ(Admit(b_, {.bytes = 5000}), "accepted");
}

TEST_F(AdmissionTest, EntitlementsReplaceTheLimitsOfTheirClientAtOnce) {
  EXPECT_EQ(Admit(a_, {.bytes = 400}), "accepted");
  EXPECT_EQ(Admit(a_, {.bytes = 500}), "CLIENT_BYTES");
  a_->SetEntitlements({.max_calls = 3, .max_bytes = 900, .max_work_s = 1});
  EXPECT_EQ(Admit(a_, {.bytes = 500}), "accepted");
  EXPECT_EQ(Admit(a_, {.work_s = 2}), "CLIENT_WORK");
  EXPECT_EQ(Admit(a_, {}), "accepted");
  EXPECT_EQ(Admit(a_, {}), "CLIENT_CALLS");
  EXPECT_EQ(b_->entitlements(), Config().client);
}

TEST_F(AdmissionTest, TheRateOfAClientIsBoundedAfterABurstOfOneSecond) {
  a_->SetEntitlements({.max_calls_per_s = 5});
  auto now = Admission::Clock::now();
  const auto begin = [&] { return ReasonOf(admission_.CheckRate(a_.get(), now)); };
  for (int i = 0; i < 5; ++i) EXPECT_EQ(begin(), "accepted");
  EXPECT_EQ(begin(), "CLIENT_RATE");
  const double retry_after_s = admission_.CheckRate(a_.get(), now).error().retry_after_s;
  EXPECT_NEAR(retry_after_s, 0.2, 1e-9);
  now += std::chrono::milliseconds(201);
  EXPECT_EQ(begin(), "accepted");
  EXPECT_EQ(begin(), "CLIENT_RATE");
  now += std::chrono::hours(1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(begin(), "accepted");
  EXPECT_EQ(begin(), "CLIENT_RATE");
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ReasonOf(admission_.CheckRate(b_.get(), now)), "accepted");
  }
}

// The clock starts with the machine, so its first seconds are those after a boot.
TEST_F(AdmissionTest, TheFirstCallsOfAClientFindAFullBucketHoweverYoungTheClockIs) {
  Admission::Clock::time_point now{std::chrono::milliseconds(1)};
  for (const double rate : {0.3, 1.0, 5.0}) {
    const auto account = admission_.AccountOf("rate " + std::to_string(rate));
    account->SetEntitlements({.max_calls_per_s = rate});
    const auto begin = [&] { return ReasonOf(admission_.CheckRate(account.get(), now)); };
    for (int i = 0; i < std::max(1.0, rate); ++i) EXPECT_EQ(begin(), "accepted") << rate;
    EXPECT_EQ(begin(), "CLIENT_RATE") << rate;
  }
}

// A client that makes one call after the other holds its account during none of its pauses.
TEST_F(AdmissionTest, ARateOutlastsTheSingleCallsOfAClient) {
  const auto now = Admission::Clock::now();
  const auto begin = [&] {
    const auto account = admission_.AccountOf("one by one");
    account->SetEntitlements({.max_calls_per_s = 2});
    return ReasonOf(admission_.CheckRate(account.get(), now));
  };
  EXPECT_EQ(begin(), "accepted");
  EXPECT_EQ(begin(), "accepted");
  EXPECT_EQ(begin(), "CLIENT_RATE");
}

TEST_F(AdmissionTest, ARefusalSaysWhatAndWhenToTryAgain) {
  EXPECT_EQ(Admit(a_, {.work_s = 5}), "accepted");
  const ServiceStatus refused = admission_.Admit(a_.get(), {.work_s = 2});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ServiceCode::kResourceExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("retry later"));
  EXPECT_GT(refused.error().retry_after_s, 0);
  EXPECT_LE(refused.error().retry_after_s, 10);
}

TEST_F(AdmissionTest, AClientHasOneAccountWhileItIsHeld) {
  EXPECT_EQ(admission_.AccountOf("a"), a_);
  EXPECT_NE(admission_.AccountOf("a"), b_);
  for (int i = 0; i < 1000; ++i) admission_.AccountOf("client " + std::to_string(i));
  EXPECT_EQ(admission_.AccountOf("b"), b_);
}

}  // namespace
}  // namespace sap
