#include "train/system/files.h"

#include <sys/stat.h>

#include <csignal>
#include <optional>

#include "tests/support/test.h"
#include "train/system/child.h"
#include "train/system/memory.h"
#include "train/system/stored_bytes.h"

namespace difftape::system {
namespace {

TEST(NewFile, has_its_pieces_in_order_once_it_is_committed) {
  const ScratchDir dir;
  put(dir / "a", "before");
  std::string whole;
  {
    NewFile file(dir / "a");
    for (const std::size_t size : {1u, 65535u, 3u, 200000u, 65536u, 10u, 0u, 7u}) {
      const std::string piece(size, static_cast<char>('a' + whole.size() % 26));
      file.write(piece);
      whole += piece;
    }
    EXPECT_EQ(contents(dir / "a"), "before");
    file.commit();
  }
  EXPECT_EQ(contents(dir / "a"), whole);
  EXPECT_FALSE(fs::exists(dir / "a.tmp"));
}

TEST(NewFile, without_commit_keeps_the_old_file) {
  const ScratchDir dir;
  put(dir / "a", "before");
  {
    NewFile file(dir / "a");
    file.write(std::string(100000, 'x'));
  }
  EXPECT_EQ(contents(dir / "a"), "before");
  EXPECT_FALSE(fs::exists(dir / "a.tmp"));
  EXPECT_THAT([&] { NewFile(dir / "none/a"); },
              ThrowsMessage<OutputError>(HasSubstr("none/a: No such file or directory")));
}

TEST(AppendFile, appends_at_the_end) {
  const ScratchDir dir;
  put(dir / "a", "one\n");
  AppendFile file(dir / "a");
  file.append("two\n");
  file.append("");
  EXPECT_EQ(contents(dir / "a"), "one\ntwo\n");
  EXPECT_NO_THROW(file.sync());
  EXPECT_THAT([] { AppendFile("/dev/full").append("x"); },
              ThrowsMessage<OutputError>("cannot write /dev/full: No space left on device"));
}

TEST(StagedDirectory, appears_when_published_and_removes_what_killed_processes_left) {
  const ScratchDir dir;
  const std::string here = "out.tmp-" + host_name() + "-";
  for (const std::string& name :
       {here + "0", here + "1", here + "mine", std::string("out.tmp-elsewhere-0")}) {
    fs::create_directory(dir / name);
    put(dir / name / "a", "");
  }
  StagedDirectory staged(dir / "out/");
  EXPECT_FALSE(fs::exists(dir / "out"));
  staged.publish();
  EXPECT_TRUE(fs::is_directory(dir / "out"));
  EXPECT_FALSE(fs::exists(dir / (here + "0"))) << "process 0 never exists, process 1 always";
  EXPECT_TRUE(fs::exists(dir / (here + "1") / "a"));
  EXPECT_TRUE(fs::exists(dir / (here + "mine") / "a"));
  EXPECT_TRUE(fs::exists(dir / "out.tmp-elsewhere-0/a")) << "it may run on another machine";
  EXPECT_THROW(StagedDirectory{dir / "out"}, OutputError);
}

TEST(TruncateFile, keeps_the_beginning_and_names_a_missing_file) {
  const ScratchDir dir;
  put(dir / "a", "onetwo");
  truncate_file(dir / "a", 3);
  EXPECT_EQ(contents(dir / "a"), "one");
  EXPECT_THAT([&] { truncate_file(dir / "b", 0); },
              ThrowsMessage<OutputError>(HasSubstr("/b: No such file or directory")));
}

TEST(Files, are_never_written_through_a_symbolic_link) {
  const ScratchDir dir;
  put(dir / "outside", "kept");
  const auto link = [&](const char* name) {
    fs::create_symlink(dir / "outside", dir / name);
    return dir / name;
  };
  const auto refuses = [&](const std::function<void()>& write, const std::string& name) {
    EXPECT_THAT(write, ThrowsMessage<OutputError>(fmt::format(
                           "cannot write {}: it is a symbolic link, which is not followed",
                           (dir / name).string())));
  };
  link("a.tmp");
  refuses([&] { replace_text(dir / "a", "x"); }, "a");
  refuses([path = link("b")] { AppendFile{path}; }, "b");
  refuses([path = link("c")] { truncate_file(path, 0); }, "c");
  link("lock");
  refuses([&] { DirectoryLock{dir.path()}; }, "lock");
  replace_text(link("d"), "new");
  EXPECT_EQ(contents(dir / "d"), "new") << "a file in the place of the link";
  EXPECT_EQ(contents(dir / "outside"), "kept");
}

TEST(Files, that_are_pipes_are_rejected_without_blocking) {
  const ScratchDir dir;
  ASSERT_EQ(mkfifo((dir / "lock").c_str(), 0600), 0);
  EXPECT_FALSE(DirectoryLock::is_held(dir.path()));
  EXPECT_THAT([&] { read_text(dir / "lock"); },
              ThrowsMessage<MissingInput>(HasSubstr("/lock: it is not a regular file")));
}

TEST(DirectoryLock, is_held_by_children_until_they_end) {
  const ScratchDir dir;
  std::optional<DirectoryLock> lock(dir.path());
  Child child({"sleep", "60"}, {0, 1, 2});
  lock.reset();
  EXPECT_TRUE(DirectoryLock::is_held(dir.path()));
  EXPECT_THROW(DirectoryLock{dir.path()}, OutputError);
  child.signal(SIGKILL);
  child.wait();
  EXPECT_FALSE(DirectoryLock::is_held(dir.path()));
}

TEST(LastLineOfFile, is_the_last_one_with_a_newline) {
  const ScratchDir dir;
  const std::string block(1 << 16, 'b');
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("\n\n"), std::string("a"),
        std::string("a\nbc\n\nd\ntorn"), block + "\n", "\n" + block, block + "\n" + block + "\n",
        "a\n" + block + block + block + "\nb\n" + block + "torn",
        "a\n" + block + block + block + "\n"}) {
    put(dir / "f", text);
    std::string last;
    for_each_line(dir / "f", [&](std::string_view line, std::size_t) { last = line; });
    EXPECT_TRUE(last_line_of(dir / "f") == last) << text.substr(0, 20) << text.size();
  }
}

TEST(LastLineOfFile, of_a_file_that_cannot_be_read_is_missing_input) {
  const ScratchDir dir;
  EXPECT_THAT([&] { last_line_of(dir / "f"); },
              ThrowsMessage<MissingInput>("cannot read " + (dir / "f").string() +
                                          ": No such file or directory"));
  EXPECT_THAT(
      [&] { last_line_of(dir.path()); },
      ThrowsMessage<MissingInput>("cannot read " + dir.path().string() + ": Is a directory"));
}

TEST(StoredBytes, are_the_same_from_memory_and_from_a_mapping) {
  const ScratchDir dir;
  put(dir / "file", "0123456789");
  const StoredBytes kept(dir / "file"), mapped(dir / "file", 9);
  for (const StoredBytes* bytes : {&kept, &mapped}) {
    EXPECT_EQ(bytes->size(), 10u);
    EXPECT_EQ(bytes->all(), "0123456789");
    EXPECT_EQ(bytes->read(7, 3), "789");
    EXPECT_EQ(bytes->read(10, 0), "");
  }
}

TEST(StoredBytes, of_a_changed_file_are_rejected_unless_they_are_in_memory) {
  const ScratchDir dir;
  for (const char* now : {"0123", "01234567890123"}) {
    put(dir / "file", "0123456789");
    const StoredBytes kept(dir / "file"), mapped(dir / "file", 0);
    put(dir / "file", now);
    EXPECT_EQ(kept.all(), "0123456789");
    EXPECT_THAT(
        [&] { mapped.read(2, 6); },
        ThrowsMessage<DataError>((dir / "file").string() +
                                 ": the file changed while it was read; restore it and start "
                                 "again, or, for a run, continue with --resume"));
  }
}

TEST(StoredBytes, of_a_replaced_file_stay_unchanged) {
  const ScratchDir dir;
  put(dir / "file", "0123456789");
  const StoredBytes mapped(dir / "file", 0);
  put(dir / "new", "abcdefghij");
  fs::rename(dir / "new", dir / "file");
  EXPECT_EQ(mapped.all(), "0123456789");
}

TEST(StoredBytes, stay_unchanged_when_pages_are_released) {
  const ScratchDir dir;
  put(dir / "file", std::string(1 << 20, 'a') + "z");
  const StoredBytes mapped(dir / "file", 0);
  for (int look = 0; look < 100; ++look) EXPECT_TRUE(mapped.all().ends_with("aaz"));
}

TEST(StoredBytes, of_an_unreadable_file_name_it_in_the_error) {
  const ScratchDir dir;
  EXPECT_THAT([&] { StoredBytes{dir / "none"}; },
              ThrowsMessage<MissingInput>("cannot read " + (dir / "none").string() +
                                          ": No such file or directory"));
  EXPECT_THAT(
      [&] { StoredBytes{dir.path()}; },
      ThrowsMessage<MissingInput>("cannot read " + dir.path().string() + ": Is a directory"));
}

struct FreeMemory : testing::Test {
  FreeMemory() { make("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable:    1000 kB\n"); }

  void make(const std::string& file, const std::string& text) {
    fs::create_directories((root / file).parent_path());
    put(root / file, text);
  }

  /// Makes a control group of version 2.
  void group(const std::string& path, const std::string& limit, const std::string& usage,
             const std::string& cached = "0") {
    const std::string files = "sys/fs/cgroup" + path;
    make(files + "/memory.max", limit + "\n");
    make(files + "/memory.current", usage + "\n");
    make(files + "/memory.stat", "anon 5\ninactive_file " + cached + "\n");
  }

  ScratchDir root;
};

TEST_F(FreeMemory, is_the_memory_available_on_the_machine) {
  EXPECT_EQ(free_memory(root.path()), 1024000u);
  make("proc/self/cgroup", "0::/a/b\n");
  group("/a/b", "max", "500");
  EXPECT_EQ(free_memory(root.path()), 1024000u) << "a group without a limit";
}

TEST_F(FreeMemory, is_limited_by_the_tightest_group) {
  make("proc/self/cgroup", "0::/a/b\n");
  group("/a/b", "90000", "50000", "10000");
  EXPECT_EQ(free_memory(root.path()), 50000u) << "cached memory can be reclaimed";
  group("/a", "60000", "59000");
  EXPECT_EQ(free_memory(root.path()), 1000u) << "the group around it";
  group("/a", "60000", "61000");
  EXPECT_EQ(free_memory(root.path()), 0u);
}

TEST_F(FreeMemory, supports_groups_of_version_1) {
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

}  // namespace
}  // namespace difftape::system
