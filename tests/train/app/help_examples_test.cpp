// The help of every command: its first sentence, and its examples, which are run.
#include "tests/train/run/loop/tiny.h"
#include "train/run/records/h5.h"

namespace difftape::app {
namespace {

/// Splits a command line into words as a shell does, with quotes as in 'two words'.
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

/// Appends all commands that a help lists, recursively.
void collect(const std::vector<std::string>& above, std::vector<std::vector<std::string>>& all) {
  for (const std::string& line : lines_after(help_of(above), "Subcommands:")) {
    if (line.starts_with(" ")) continue;
    all.push_back(above);
    all.back().push_back(line.substr(0, line.find(' ')));
    collect(std::vector<std::string>(all.back()), all);
  }
}

/// Provides the files of the examples: my.yaml, sweep.yaml, text.txt, books.jsonl, tokens.h5,
/// runs/needles and runs/diverged. The first example of `train` makes runs/mine.
struct HelpExamples : testing::Test {
  HelpExamples() {
    project.config.run.name = "mine";
    project.config.model.d_model = 64;
    project.config.log.param_grad_norms_interval = 1;
    project.config.train.checkpoint_interval = 6;
    std::ofstream(project / "my.yaml") << run::to_yaml(project.config);
    std::ofstream(project / "sweep.yaml") << "base: my.yaml\nsweep: {arms: {softmax: {}, diff_v2: "
                                             "{model.attention.kind: diff_v2}}}\n";
    std::ofstream(project / "needles.yaml")
        << "base: my.yaml\nrun: {name: needles}\nmodel: {max_seq_len: 32}\ntrain: {eval_batches: "
           "10}\ndata: {type: needles, "
           "seq_len: 32, needles: {facts: [1], queries: [1]}}\n";
    test::output(project.difftape({"train", "needles.yaml"}));
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

TEST(Help, begins_with_a_sentence_of_at_most_70_characters) {
  std::vector<std::vector<std::string>> commands{{}};
  collect({}, commands);
  ASSERT_GE(commands.size(), 20u);
  for (const std::vector<std::string>& command : commands) {
    const std::string help = help_of(command);
    const std::string first = help.substr(0, help.find_first_of(".\n"));
    EXPECT_FALSE(first.empty());
    EXPECT_LE(first.size(), 70u) << first;
  }
}

TEST_F(HelpExamples, exist_for_every_command_and_run_verbatim) {
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
