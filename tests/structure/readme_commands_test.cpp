// The command lines of the READMEs are such that the program takes them: each is parsed by the real
// parser, into commands that do nothing, and the configurations it names are there. What they print
// is not compared.
#include <gmock/gmock.h>
#include <wordexp.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "train/app/commands.h"

namespace difftape::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
const fs::path kRoot = DIFFTAPE_TEST_SOURCE_DIR;

struct Line {
  std::string file, text;
};

/// Lines of a file, where one that ends in a backslash goes on in the next.
Words lines_of(const fs::path& file) {
  std::ifstream stream(file);
  Words lines;
  std::string before;
  for (std::string line; std::getline(stream, line);) {
    line = before + line;
    before.clear();
    if (line.ends_with('\\')) {
      before = line.substr(0, line.size() - 1);
    } else {
      lines.push_back(line);
    }
  }
  return lines;
}

/// Command lines of difftape: those of fenced blocks, and those in backquotes that name a file.
std::vector<Line> command_lines() {
  const std::string command =
      "difftape ((?:train|sweep|report|eval|generate|plan|analyze|config|grads|replay|gradcheck|"
      "doctor|completion|man)\\b";
  static const std::regex fenced("^(?:\\$ )?(?:build/release/bin/)?" + command + ".*)");
  static const std::regex quoted("`" + command + "[^`]*[/.][^`]*)`");
  static const std::regex synopsis(R"(\[|\.\.\.|\b[A-Z_]{4,}\b)");
  std::vector<Line> found;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot)) {
    const fs::path path = fs::relative(entry.path(), kRoot);
    if (path.extension() != ".md" || *path.begin() == "build" || *path.begin() == "runs") continue;
    bool inside = false;
    for (const std::string& line : lines_of(entry.path())) {
      std::smatch match;
      if (line.starts_with("```")) {
        inside = !inside;
      } else if (inside && std::regex_match(line, match, fenced)) {
        found.push_back({path, match[1]});
      } else if (!inside) {
        for (std::sregex_iterator each(line.begin(), line.end(), quoted), end; each != end;
             ++each) {
          const std::string text = (*each)[1];
          if (!std::regex_search(text, synopsis)) found.push_back({path, text});
        }
      }
    }
  }
  return found;
}

/// The words of a command line as a shell takes them, up to a pipe or a comment.
Words words_of(const std::string& text) {
  static const std::regex rest("( +#| *\\|| *>).*");
  wordexp_t expanded{};
  const std::string command =
      std::regex_replace(text, rest, "", std::regex_constants::format_first_only);
  EXPECT_EQ(wordexp(command.c_str(), &expanded, WRDE_NOCMD | WRDE_UNDEF), 0) << text;
  Words words{"difftape"};
  for (size_t i = 0; i < expanded.we_wordc; ++i) words.emplace_back(expanded.we_wordv[i]);
  wordfree(&expanded);
  return words;
}

void do_nothing(app::Command& command) {
  if (command.run) command.run = [owner_of_targets = std::move(command.run)] {};
  for (app::Command& below : command.commands) do_nothing(below);
}

/// Parses a command line of difftape. Throws UsageError.
void parse(Words words) {
  app::Context context;
  app::Program program{.name = "difftape", .help = "", .footer = "", .version = "", .commands = {}};
  for (const app::MakeCommand make : app::commands()) {
    program.commands.push_back(make(context));
    do_nothing(program.commands.back());
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  app::parse_and_run(program, static_cast<int>(arguments.size()), arguments.data());
}

TEST(ReadmeCommands, are_taken_by_the_parser) {
  const std::vector<Line> lines = command_lines();
  EXPECT_GE(lines.size(), 25U);
  for (const Line& line : lines) {
    EXPECT_NO_THROW(parse(words_of(line.text))) << line.file << ": difftape " << line.text;
  }
  EXPECT_THROW(parse({"difftape", "train", "a.yaml", "--fast"}), UsageError);
}

TEST(ReadmeCommands, name_configurations_that_are_there) {
  int named = 0;
  for (const Line& line : command_lines()) {
    for (const std::string& word : words_of(line.text)) {
      if (!word.starts_with("configs/")) continue;
      EXPECT_TRUE(fs::exists(kRoot / word)) << line.file << ": difftape " << line.text;
      ++named;
    }
  }
  EXPECT_GE(named, 15);
}

TEST(ReadmeCommands, of_dev_are_those_that_it_has) {
  static const std::regex used("\\./dev ([a-z]+)");
  std::stringstream dev;
  dev << std::ifstream(kRoot / "dev").rdbuf();
  int count = 0;
  for (const char* file : {"README.md", "CONTRIBUTING.md", "packaging/README.md"}) {
    for (const std::string& line : lines_of(kRoot / file)) {
      for (std::sregex_iterator each(line.begin(), line.end(), used), end; each != end; ++each) {
        EXPECT_THAT(dev.str(), testing::HasSubstr("\n  " + (*each)[1].str() + ")")) << file;
        ++count;
      }
    }
  }
  EXPECT_GE(count, 10);
}

}  // namespace
}  // namespace difftape::test
