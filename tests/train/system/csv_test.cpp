#include "train/system/text_table.h"

#include <rapidcheck/gtest.h>

#include <cmath>

namespace difftape::system {
namespace {

using Lines = std::vector<std::vector<std::string>>;

TEST(Csv, quotes_what_would_break_a_line) {
  EXPECT_EQ(csv_field("plain 1.5"), "plain 1.5");
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

TEST(Csv, is_read_line_by_line_with_either_line_end) {
  EXPECT_EQ(read_csv(""), Lines());
  EXPECT_EQ(read_csv("a,b\r\n\"c, \"\"d\"\"\",\n,e"),
            (Lines{{"a", "b"}, {"c, \"d\"", ""}, {"", "e"}}));
  EXPECT_EQ(read_csv("\"never closed,\n"), (Lines{{"never closed,\n"}}));
}

RC_GTEST_PROP(Csv, reads_back_every_field, (const std::vector<std::string>& rest)) {
  std::vector<std::string> fields = rest;
  fields.insert(fields.begin(), "first");
  std::string line;
  for (const std::string& field : fields) {
    if (!line.empty()) line += ',';
    line += csv_field(field);
  }
  line += '\n';
  RC_ASSERT(read_csv(line) == Lines{fields});
}

TEST(Csv, a_line_reads_back_and_a_number_keeps_its_digits) {
  const std::vector<std::string> fields{"a", "b,c", "", csv_number(0.1), csv_number(std::nan(""))};
  EXPECT_EQ(csv_line(fields), "a,\"b,c\",,0.1,\n");
  EXPECT_EQ(read_csv(csv_line(fields)).front(), fields);
}

}  // namespace
}  // namespace difftape::system
