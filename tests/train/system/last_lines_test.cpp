#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/scratch.h"
#include "train/system/files.h"

namespace difftape::system {
namespace {

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
