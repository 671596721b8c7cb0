#pragma once
// The Markdown files and the command lines that they tell a reader to type.

#include "tests/support/test.h"

namespace difftape::test {

using Words = std::vector<std::string>;

/// The root of the source tree.
inline const fs::path kRoot = DIFFTAPE_TEST_SOURCE_DIR;

/// A command line of difftape, from its command on: "train my.yaml  # a comment".
struct CommandLine {
  std::string file, text;
};

/// Lines of a file, where one that ends in a backslash goes on in the next.
Words lines_of(const fs::path& file);

/// Returns the command lines of a file below the root: lines of fenced blocks, and text in
/// backquotes that names a file, except in the rows of tables.
std::vector<CommandLine> command_lines(const fs::path& file);
/// Returns the paths of all Markdown files, relative to the root.
std::vector<fs::path> pages();
/// Returns the command lines of all Markdown files.
std::vector<CommandLine> all_command_lines();

/// The words of a command line as a shell takes them, up to a pipe or a comment.
Words words_of(const std::string& text);

}  // namespace difftape::test
