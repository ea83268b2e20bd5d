#include "server/scheduling/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sap {
namespace {

using testing::HasSubstr;

AdmissionConfig Config() {
  return {.all = {.max_calls = 4, .max_bytes = 1000, .max_work_s = 10},
          .client = {.max_calls = 2, .max_bytes = 600, .max_work_s = 6}};
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

// Else a problem beyond the bounds could never be solved.
TEST_F(AdmissionTest, TheOnlyCallMayBeOfAnySize) {
  EXPECT_EQ(Admit(a_, {.bytes = 5000, .work_s = 1000}), "accepted");
  EXPECT_EQ(Admit(b_, {.bytes = 1}), "SERVER_BYTES");
  admission_.Release(a_.get(), {.bytes = 5000, .work_s = 1000});
  EXPECT_EQ(Admit(b_, {.bytes = 5000}), "accepted");
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
