#include "train/system/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/scratch.h"

namespace difftape::system {
namespace {

using test::contents;
using test::put;
using test::ScratchDir;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(NewFile, holds_pieces_of_any_size_in_their_order_once_it_is_committed) {
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
  EXPECT_FALSE(std::filesystem::exists(dir / "a.tmp"));
}

TEST(NewFile, that_is_not_committed_leaves_what_was_there) {
  const ScratchDir dir;
  put(dir / "a", "before");
  {
    NewFile file(dir / "a");
    file.write(std::string(100000, 'x'));
  }
  EXPECT_EQ(contents(dir / "a"), "before");
  EXPECT_FALSE(std::filesystem::exists(dir / "a.tmp"));
  EXPECT_THAT([&] { NewFile(dir / "none/a"); },
              ThrowsMessage<OutputError>(HasSubstr("none/a: No such file or directory")));
}

TEST(AppendFile, goes_on_where_the_file_ends) {
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

TEST(TruncateFile, keeps_the_beginning_and_names_a_file_that_is_not_there) {
  const ScratchDir dir;
  put(dir / "a", "onetwo");
  truncate_file(dir / "a", 3);
  EXPECT_EQ(contents(dir / "a"), "one");
  EXPECT_THAT([&] { truncate_file(dir / "b", 0); },
              ThrowsMessage<OutputError>(HasSubstr("/b: No such file or directory")));
}

TEST(Files, are_not_written_where_a_symbolic_link_leads) {
  const ScratchDir dir;
  put(dir / "outside", "kept");
  const auto link = [&](const char* name) {
    std::filesystem::create_symlink(dir / "outside", dir / name);
    return dir / name;
  };
  const auto refuses = [&](const std::function<void()>& write, const std::string& name) {
    EXPECT_THAT(write, ThrowsMessage<OutputError>(
                           fmt::format("cannot write {}: is a symbolic link, which is not followed",
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

TEST(Files, that_are_pipes_are_not_waited_for) {
  const ScratchDir dir;
  ASSERT_EQ(mkfifo((dir / "lock").c_str(), 0600), 0);
  EXPECT_FALSE(DirectoryLock::is_held(dir.path()));
  EXPECT_THAT([&] { read_text(dir / "lock"); },
              ThrowsMessage<MissingInput>(HasSubstr("/lock: is no ordinary file")));
}

using LinesAndEnds = std::vector<std::pair<std::string, std::size_t>>;

LinesAndEnds from_the_end(const std::filesystem::path& path, std::size_t most = 1 << 20) {
  LinesAndEnds found;
  for_each_line_from_the_end(path, [&](std::string_view line, std::size_t end) {
    found.emplace_back(line, end);
    return found.size() < most;
  });
  return found;
}

TEST(LinesFromTheEnd, are_those_from_the_beginning_the_other_way_round) {
  const test::ScratchDir dir;
  const std::string block(1 << 16, 'b');
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("\n\n"), std::string("a"),
        std::string("a\nbc\n\nd\ntorn"), block + "\n", "\n" + block, block + "\n" + block + "\n",
        "a\n" + block + block + block + "\nb\n" + block + "torn",
        std::string(block.size() - 1, 'c') + "\n" + block.substr(1) + "\n"}) {
    test::put(dir / "f", text);
    LinesAndEnds expected;
    for_each_line(dir / "f", [&](std::string_view line, std::size_t end) {
      expected.insert(expected.begin(), {std::string(line), end});
    });
    EXPECT_EQ(from_the_end(dir / "f"), expected) << text.size();
    if (expected.empty()) continue;
    EXPECT_EQ(from_the_end(dir / "f", 1), LinesAndEnds{expected.front()}) << "f says when to stop";
  }
}

TEST(LinesFromTheEnd, of_a_file_that_cannot_be_read_are_missing_input) {
  const test::ScratchDir dir;
  EXPECT_THAT([&] { from_the_end(dir / "f"); },
              testing::ThrowsMessage<MissingInput>("cannot read " + (dir / "f").string() +
                                                   ": No such file or directory"));
  EXPECT_THAT([&] { from_the_end(dir.path()); },
              testing::ThrowsMessage<MissingInput>("cannot read " + dir.path().string() +
                                                   ": Is a directory"));
}
}  // namespace
}  // namespace difftape::system
