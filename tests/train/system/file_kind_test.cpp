// Tests which files are recognized by their contents and extension.
#include "train/system/file_kind.h"

#include "tests/support/test.h"

namespace difftape::system {
namespace {

/// Returns "lines" or "json" with the beginning of the remedy; empty for other files.
std::string json_kind(const std::string& name, const std::string& contents) {
  const auto kind = recognize(name, contents);
  if (!kind || !is_json(*kind)) return "";
  return kind->format == FileFormat::json_lines ? "lines" : kind->name;
}

TEST(FileKind, of_json_depends_on_its_first_value_and_not_on_its_size) {
  const std::string longer_than_a_block(200'000, 'x');
  const std::string line = "{\"text\": \"" + longer_than_a_block + "\"}\n";
  for (const char* name : {"a.json", "a.JSON"}) {
    EXPECT_EQ(json_kind(name, line + line), "lines");
    EXPECT_EQ(json_kind(name, "{\"text\": 1}\n{\"text\": 2}"), "lines");
    EXPECT_EQ(json_kind(name, line), "a JSON object");
    EXPECT_EQ(json_kind(name, "{\"data\": [\n{\"text\": 1}]}"), "a JSON object");
    EXPECT_EQ(json_kind(name, " [\"a\", \"b\"]"), "a JSON list");
    EXPECT_EQ(json_kind(name, "[ {\"text\": 1}]"), "a JSON list");
    EXPECT_EQ(json_kind(name, "plain text"), "");
  }
  EXPECT_EQ(json_kind("a.txt", line + line), "lines");
  EXPECT_EQ(json_kind("a.txt", "{\"data\": [\n{\"text\": 1}]}"), "");
  EXPECT_EQ(json_kind("a.md", "[a](b)"), "");
  EXPECT_EQ(json_kind("a.cpp", "{\n  f();\n}\n"), "");
  EXPECT_EQ(json_kind("a.JSONL", line), "lines");
}

TEST(FileKind, of_lists_says_how_to_make_lines_of_them) {
  const auto remedy = [](const char* contents) {
    return std::string(recognize("a.json", contents)->remedy);
  };
  EXPECT_THAT(remedy("[{\"text\": 1}]"), HasSubstr("jq -c '.[]' FILE"));
  EXPECT_THAT(remedy("[\"a\"]"), HasSubstr("jq -c '.[] | {text: .}' FILE"));
  EXPECT_THAT(remedy("{\"data\": []}"), HasSubstr("jq -c '.data[]' FILE"));
}

}  // namespace
}  // namespace difftape::system
