#include "train/system/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace difftape::system
