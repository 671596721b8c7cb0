#include "train/system/memory.h"

#include <gtest/gtest.h>

#include "tests/support/scratch.h"

namespace difftape::system {
namespace {

class FreeMemory : public testing::Test {
 protected:
  FreeMemory() { make("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable:    1000 kB\n"); }

  void make(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root / file).parent_path());
    test::put(root / file, text);
  }

  /// A group of the second version.
  void group(const std::string& path, const std::string& limit, const std::string& usage,
             const std::string& cached = "0") {
    const std::string files = "sys/fs/cgroup" + path;
    make(files + "/memory.max", limit + "\n");
    make(files + "/memory.current", usage + "\n");
    make(files + "/memory.stat", "anon 5\ninactive_file " + cached + "\n");
  }

  test::ScratchDir root;
};

TEST_F(FreeMemory, is_what_the_machine_has_available) {
  EXPECT_EQ(free_memory(root.path()), 1024000u);
  make("proc/self/cgroup", "0::/a/b\n");
  group("/a/b", "max", "500");
  EXPECT_EQ(free_memory(root.path()), 1024000u) << "a group without a limit";
}

TEST_F(FreeMemory, is_what_is_left_of_the_tightest_group) {
  make("proc/self/cgroup", "0::/a/b\n");
  group("/a/b", "90000", "50000", "10000");
  EXPECT_EQ(free_memory(root.path()), 50000u) << "what is cached can be given back";
  group("/a", "60000", "59000");
  EXPECT_EQ(free_memory(root.path()), 1000u) << "the group around it";
  group("/a", "60000", "61000");
  EXPECT_EQ(free_memory(root.path()), 0u);
}

TEST_F(FreeMemory, knows_groups_of_the_first_version) {
  make("proc/self/cgroup", "9:cpu:/x\n7:memory:/x\n0::/\n");
  const std::string files = "sys/fs/cgroup/memory/x";
  make(files + "/memory.limit_in_bytes", "70000\n");
  make(files + "/memory.usage_in_bytes", "30000\n");
  make(files + "/memory.stat", "cache 9\ntotal_inactive_file 1000\n");
  EXPECT_EQ(free_memory(root.path()), 41000u);
}

TEST(FreeMemoryOfThisMachine, is_known) {
  EXPECT_FALSE(free_memory("/nowhere").has_value());
  EXPECT_GT(free_memory().value(), 1000000u);
}

TEST(DescribeBytes, has_two_digits_or_three) {
  EXPECT_EQ(describe_bytes(0), "0 B");
  EXPECT_EQ(describe_bytes(999), "999 B");
  EXPECT_EQ(describe_bytes(1000), "1.0 kB");
  EXPECT_EQ(describe_bytes(37.4e6), "37 MB");
  EXPECT_EQ(describe_bytes(881e9), "881 GB");
  EXPECT_EQ(describe_bytes(999.6e9), "1.0 TB");
}

}  // namespace
}  // namespace difftape::system
