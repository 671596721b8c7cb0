#pragma once
// What the READMEs tell a reader to type.

#include <filesystem>
#include <string>
#include <vector>

namespace difftape::test {

using Words = std::vector<std::string>;

/// Of the sources.
inline const std::filesystem::path kRoot = DIFFTAPE_TEST_SOURCE_DIR;

/// A command line of difftape, from its command on: "train my.yaml  # a comment".
struct CommandLine {
  std::string file, text;
};

/// Lines of a file, where one that ends in a backslash goes on in the next.
Words lines_of(const std::filesystem::path& file);

/// The command lines of a file below the root: those of fenced blocks, and those in backquotes that
/// name a file, but for the rows of tables.
std::vector<CommandLine> command_lines(const std::filesystem::path& file);
/// Those of all READMEs.
std::vector<CommandLine> all_command_lines();

/// The words of a command line as a shell takes them, up to a pipe or a comment.
Words words_of(const std::string& text);

}  // namespace difftape::test
