// The examples at the end of every --help, run as they stand there.
#include <regex>

#include "tests/train/run/loop/tiny.h"
#include "train/run/records/h5.h"

namespace difftape::app {
namespace {

using test::Outcome;
using test::TinyProject;

/// Words of a command line as a shell takes them, quotes in the manner of 'two words'.
std::vector<std::string> words_of(const std::string& line) {
  static const std::regex word("'([^']*)'|(\\S+)");
  std::vector<std::string> words;
  for (std::sregex_iterator at(line.begin(), line.end(), word), end; at != end; ++at)
    words.push_back((*at)[1].matched ? (*at)[1].str() : (*at)[2].str());
  return words;
}

std::vector<std::string> lines_after(const std::string& text, const std::string& heading) {
  std::istringstream stream(
      text.substr(std::min(text.size(), text.find("\n" + heading + "\n") + 1)));
  std::vector<std::string> lines;
  std::string line;
  std::getline(stream, line);
  while (std::getline(stream, line) && line.starts_with("  ")) lines.push_back(line.substr(2));
  return lines;
}

std::string help_of(std::vector<std::string> command) {
  command.push_back("--help");
  return test::run(command).out;
}

/// The commands that a help lists, and those below them.
void collect(const std::vector<std::string>& above, std::vector<std::vector<std::string>>& all) {
  for (const std::string& line : lines_after(help_of(above), "Subcommands:")) {
    if (line.starts_with(" ")) continue;
    all.push_back(above);
    all.back().push_back(line.substr(0, line.find(' ')));
    collect(std::vector<std::string>(all.back()), all);
  }
}

/// Examples speak of my.yaml, sweep.yaml, text.txt, books.jsonl and tokens.h5, of runs/mine, which
/// the first one of `train` makes, and of runs/diverged.
class HelpExamples : public testing::Test {
 protected:
  HelpExamples() {
    project.config.run.name = "mine";
    project.config.model.d_model = 64;
    project.config.log.param_grad_norms_interval = 1;
    project.config.train.checkpoint_interval = 6;
    std::ofstream(project / "my.yaml") << run::to_yaml(project.config);
    std::ofstream(project / "sweep.yaml") << "base: my.yaml\nsweep: {arms: {softmax: {}, diff_v2: "
                                             "{model.attention.kind: diff_v2}}}\n";
    project.config.run.name = "diverged";
    project.config = test::explosive(project.config);
    project.save();
    project.difftape({"train", "tiny.yaml"});
    std::ofstream books(project / "books.jsonl");
    for (int i = 0; i < 60; ++i) books << fmt::format("{{\"text\": \"book {}\"}}\n", i);
    books.close();
    run::h5::File tokens = run::h5::File::create(project / "tokens.h5");
    tokens.write<std::int32_t>("tokens", {2, 5}, std::vector<std::int32_t>(10, 7));
    tokens.save();
  }

  TinyProject project;
};

TEST_F(HelpExamples, are_there_for_every_command_and_run_as_they_stand) {
  std::vector<std::vector<std::string>> commands;
  collect({}, commands);
  EXPECT_GE(commands.size(), 19u);
  for (const std::vector<std::string>& command : commands) {
    const std::vector<std::string> examples = lines_after(help_of(command), "Examples:");
    EXPECT_FALSE(examples.empty()) << fmt::format("{}", fmt::join(command, " "));
    for (const std::string& example : examples) {
      std::vector<std::string> words = words_of(example);
      ASSERT_EQ(words.front(), "difftape") << example;
      words.erase(words.begin());
      const Outcome outcome = project.difftape(words);
      EXPECT_EQ(outcome.exit, 0) << example << "\n" << outcome.err;
    }
  }
}

}  // namespace
}  // namespace difftape::app
