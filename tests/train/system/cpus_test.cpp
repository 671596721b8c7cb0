// The CPU quota and the threads that wait.
#include "train/system/cpus.h"

#include "tests/support/test.h"

namespace difftape::system {
namespace {

void make(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  put(file, text);
}

TEST(CpuQuota, is_the_least_of_all_groups_around_the_process) {
  const ScratchDir root;
  EXPECT_FALSE(cpu_quota(root.path()).has_value());
  make(root / "proc/self/cgroup", "0::/a/b\n");
  make(root / "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_FALSE(cpu_quota(root.path()).has_value());
  make(root / "sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 0.5);
  make(root / "sys/fs/cgroup/a/b/cpu.max", "300000 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 0.5);
}

TEST(CpuQuota, of_the_first_version_of_control_groups) {
  const ScratchDir root;
  make(root / "proc/self/cgroup", "9:memory:/x\n4:cpu,cpuacct:/c\n");
  make(root / "sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
  make(root / "sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(cpu_quota(root.path()).has_value());
  make(root / "sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(cpu_quota(root.path()), 1.5);
}

TEST(CpuUse, shows_threads_that_wait_for_each_other) {
  EXPECT_TRUE(wait_for_each_other({10, 11, 800}, 2)) << "beside two busy programs on two cores";
  EXPECT_TRUE(wait_for_each_other({10, 5, 1000}, 2)) << "throttled to half a CPU";
  EXPECT_FALSE(wait_for_each_other({10, 19.5, 900}, 2)) << "a busy machine with cores left";
  EXPECT_FALSE(wait_for_each_other({10, 11, 20}, 2)) << "one thread sleeps, as it has no work";
  EXPECT_FALSE(wait_for_each_other({10, 5, 1000}, 1)) << "one thread waits for none";
  const CpuUse start = CpuUse::now();
  const CpuUse use = CpuUse::now() - start;
  EXPECT_GE(use.seconds, 0);
  EXPECT_GE(use.cpu_seconds, 0);
}

}  // namespace
}  // namespace difftape::system
