// The processor time that control groups grant, as the kernel writes it into files.
#include "solver/engine/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/child_process.h"

namespace sap::test::cpu_quota_test {
namespace {

TEST(CpuQuotaTest, CpuMaxOfVersion2IsQuotaOverPeriod) {
  EXPECT_EQ(ParseCpuMax("150000 100000\n"), 1.5);
  EXPECT_EQ(ParseCpuMax("50000 200000\n"), 0.25);
}

TEST(CpuQuotaTest, MaxIsNoQuota) { EXPECT_EQ(ParseCpuMax("max 100000\n"), std::nullopt); }

TEST(CpuQuotaTest, QuotaAndPeriodOfVersion1) {
  EXPECT_EQ(ParseCfsQuota("400000\n", "100000\n"), 4.0);
  EXPECT_EQ(ParseCfsQuota("-1\n", "100000\n"), std::nullopt);
}

TEST(CpuQuotaTest, WhatIsNoNumberIsNoQuota) {
  for (const char* text : {"", "\n", "100000", "x 100000", "100000 0", "100000 -1", "-1 100000",
                           "0 100000", "nan 100000", "inf 100000"}) {
    EXPECT_EQ(ParseCpuMax(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseCfsQuota("", ""), std::nullopt);
  EXPECT_EQ(ParseCfsQuota("100000", "0"), std::nullopt);
}

// The files of a machine, in a directory.
class CpuQuotaOfAMachineTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = directory_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<double> Quota() const { return CpuQuota(directory_ / ""); }

  TemporaryDirectory directory_;
};

TEST_F(CpuQuotaOfAMachineTest, AMachineWithoutControlGroupsHasNone) {
  EXPECT_EQ(Quota(), std::nullopt);
}

// In a container with a name space of its own, its group is the root.
TEST_F(CpuQuotaOfAMachineTest, AContainerOfVersion2) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(Quota(), 2.0);
}

// A group gets no more than the groups above it.
TEST_F(CpuQuotaOfAMachineTest, TheSmallestQuotaUpToTheRootCounts) {
  Write("proc/self/cgroup", "0::/system.slice/sap-server.service\n");
  Write("sys/fs/cgroup/system.slice/sap-server.service/cpu.max", "300000 100000\n");
  Write("sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(Quota(), 1.5);
  Write("sys/fs/cgroup/system.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota(), 3.0);
}

TEST_F(CpuQuotaOfAMachineTest, AGroupOfVersion1) {
  Write("proc/self/cgroup", "5:memory:/elsewhere\n4:cpu,cpuacct:/docker/abc\n0::/\n");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "50000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 0.5);
}

// Docker mounts the container's own group as the root, but shows the path outside of it.
TEST_F(CpuQuotaOfAMachineTest, AContainerOfVersion1) {
  Write("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 2.5);
}

TEST(CpuQuotaTest, ThreadsAreTheQuotaRoundedUpWithinTheProcessors) {
  EXPECT_EQ(ThreadsWithin(8, std::nullopt), 8);
  EXPECT_EQ(ThreadsWithin(8, 1.5), 2);
  EXPECT_EQ(ThreadsWithin(8, 0.25), 1);
  EXPECT_EQ(ThreadsWithin(8, 100.0), 8);
  EXPECT_EQ(ThreadsWithin(0, std::nullopt), 1);
}

// Spinners would use up what the quota leaves to the solver.
TEST(CpuQuotaTest, WithAQuotaThereAreNoSpinners) {
  EXPECT_EQ(SpinnersWithin(8, std::nullopt), 8);
  EXPECT_EQ(SpinnersWithin(8, 4.0), 0);
}

}  // namespace
}  // namespace sap::test::cpu_quota_test
