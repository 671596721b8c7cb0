#include "train/system/stored_bytes.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/support/scratch.h"

namespace difftape::system {
namespace {

using test::put;
using test::ScratchDir;
using testing::ThrowsMessage;

std::string read(const StoredBytes& bytes, std::size_t begin, std::size_t count) {
  std::string text(count, ' ');
  bytes.read(begin, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST(StoredBytes, are_the_same_from_memory_and_from_the_disk) {
  const ScratchDir dir;
  put(dir / "file", "0123456789");
  const StoredBytes kept(dir / "file"), on_disk(dir / "file", 9),
      given = StoredBytes::of("0123456789");
  for (const StoredBytes* bytes : {&kept, &on_disk, &given}) {
    EXPECT_EQ(bytes->size(), 10u);
    EXPECT_EQ(read(*bytes, 0, 10), "0123456789");
    EXPECT_EQ(read(*bytes, 7, 3), "789");
    EXPECT_EQ(read(*bytes, 10, 0), "");
  }
}

TEST(StoredBytes, of_a_file_that_changes_are_refused_unless_they_were_kept) {
  const ScratchDir dir;
  for (const char* now : {"0123", "01234567890123"}) {
    put(dir / "file", "0123456789");
    const StoredBytes kept(dir / "file"), on_disk(dir / "file", 0);
    put(dir / "file", now);
    EXPECT_EQ(read(kept, 0, 10), "0123456789");
    EXPECT_THAT([&] { read(on_disk, 2, 6); },
                ThrowsMessage<DataError>((dir / "file").string() +
                                         ": changed while it was being read; begin again"));
  }
}

TEST(StoredBytes, of_a_file_that_is_replaced_stay_those_of_the_old_one) {
  const ScratchDir dir;
  put(dir / "file", "0123456789");
  const StoredBytes on_disk(dir / "file", 0);
  put(dir / "new", "abcdefghij");
  std::filesystem::rename(dir / "new", dir / "file");
  EXPECT_EQ(read(on_disk, 0, 10), "0123456789");
}

TEST(StoredBytes, that_cannot_be_read_name_the_file) {
  const ScratchDir dir;
  EXPECT_THAT([&] { StoredBytes{dir / "none"}; },
              ThrowsMessage<MissingInput>("cannot read " + (dir / "none").string() +
                                          ": No such file or directory"));
  EXPECT_THAT(
      [&] { StoredBytes{dir.path()}; },
      ThrowsMessage<MissingInput>("cannot read " + dir.path().string() + ": Is a directory"));
}

}  // namespace
}  // namespace difftape::system
