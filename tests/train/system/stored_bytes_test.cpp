#include "train/system/stored_bytes.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/support/scratch.h"

namespace difftape::system {
namespace {

using test::put;
using test::ScratchDir;
using testing::ThrowsMessage;

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

TEST(StoredBytes, of_a_file_that_changes_are_refused_unless_they_were_kept) {
  const ScratchDir dir;
  for (const char* now : {"0123", "01234567890123"}) {
    put(dir / "file", "0123456789");
    const StoredBytes kept(dir / "file"), mapped(dir / "file", 0);
    put(dir / "file", now);
    EXPECT_EQ(kept.all(), "0123456789");
    EXPECT_THAT([&] { mapped.read(2, 6); },
                ThrowsMessage<DataError>((dir / "file").string() +
                                         ": changed while it was being read; begin again"));
  }
}

TEST(StoredBytes, of_a_file_that_is_replaced_stay_those_of_the_old_one) {
  const ScratchDir dir;
  put(dir / "file", "0123456789");
  const StoredBytes mapped(dir / "file", 0);
  put(dir / "new", "abcdefghij");
  std::filesystem::rename(dir / "new", dir / "file");
  EXPECT_EQ(mapped.all(), "0123456789");
}

TEST(StoredBytes, of_many_looks_are_given_back_and_stay_what_they_are) {
  const ScratchDir dir;
  put(dir / "file", std::string(1 << 20, 'a') + "z");
  const StoredBytes mapped(dir / "file", 0);
  for (int look = 0; look < 100; ++look) {
    EXPECT_TRUE(mapped.all().ends_with("aaz"));
  }
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
