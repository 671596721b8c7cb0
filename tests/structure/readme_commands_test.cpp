// The command lines of the READMEs are such that the program takes them: each is parsed by the real
// parser, which runs no command, and the configurations it names are there. What they print is not
// compared.

#include "tests/structure/readme_lines.h"
#include "train/app/commands.h"

namespace difftape::test {
namespace {

/// Parses a command line of difftape. Throws UsageError.
void parse(Words words) {
  words.insert(words.begin(), "difftape");
  app::Context context;
  const auto program = app::make_program("difftape");
  for (const app::AddCommand add : app::commands()) add(*program, context);
  program->parse_complete_callback([] { throw CLI::Success(); });  // before a command runs
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  app::parse_and_run(*program, static_cast<int>(arguments.size()), arguments.data());
}

TEST(ReadmeCommands, are_taken_by_the_parser) {
  const std::vector<CommandLine> lines = all_command_lines();
  EXPECT_GE(lines.size(), 25U);
  for (const CommandLine& line : lines) {
    EXPECT_NO_THROW(parse(words_of(line.text))) << line.file << ": difftape " << line.text;
  }
  EXPECT_THROW(parse({"train", "a.yaml", "--fast"}), UsageError);
}

TEST(ReadmeCommands, name_existing_configurations) {
  int named = 0;
  for (const CommandLine& line : all_command_lines()) {
    for (const std::string& word : words_of(line.text)) {
      if (!word.starts_with("configs/")) continue;
      EXPECT_TRUE(fs::exists(kRoot / word)) << line.file << ": difftape " << line.text;
      ++named;
    }
  }
  EXPECT_GE(named, 10);
}

TEST(ReadmeCommands, of_dev_exist) {
  static const std::regex used("\\./dev ([a-z0-9]+)");
  std::stringstream dev;
  dev << std::ifstream(kRoot / "dev").rdbuf();
  int count = 0;
  for (const char* file : {"README.md", "CONTRIBUTING.md", "packaging/README.md"}) {
    for (const std::string& line : lines_of(kRoot / file)) {
      for (std::sregex_iterator each(line.begin(), line.end(), used), end; each != end; ++each) {
        EXPECT_THAT(dev.str(), HasSubstr("\n  " + (*each)[1].str() + ")")) << file;
        ++count;
      }
    }
  }
  EXPECT_GE(count, 10);
}

}  // namespace
}  // namespace difftape::test
