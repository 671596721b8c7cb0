// Runs each command line of the root README in a directory that has the files it names. Added
// arguments shorten the long ones.
#include <gmock/gmock.h>

#include <map>
#include <regex>
#include <set>

#include "tests/structure/readme_lines.h"
#include "tests/support/scratch.h"
#include "tests/support/sentencepiece.h"
#include "tests/train/app/program.h"
#include "train/run/inference/model.h"
#include "train/run/records/h5.h"
#include "train/study/sweep/sweep_config.h"

namespace difftape::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const Words kLittleModel{"--set", "model.num_layers=1",  "--set", "data.seq_len=16",
                         "--set", "data.batch_size=2",   "--set", "data.path=[my_corpus/*.txt]",
                         "--set", "train.eval_batches=1"};
const Words kTwoSteps{"--set", "train.steps=2", "--set", "optim.warmup_steps=1"};

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The arguments that shorten a command, by its first word or two.
Words little(const Words& command) {
  static const std::map<std::string, Words> added{
      {"train", kLittleModel + kTwoSteps},
      {"sweep", kLittleModel + kTwoSteps},
      {"plan", kLittleModel},
      {"replay", {"--step", "2"}},  // two steps have no spike, which is the default
      {"eval", {"--batches", "1"}},
      {"generate", {"--max-tokens", "2"}},
      {"gradcheck", {"--filter", "^softmax$"}}};
  auto found = added.find(command[0]);
  if (found == added.end() && command.size() > 1) found = added.find(command[0] + " " + command[1]);
  return found == added.end() ? Words{} : found->second;
}

/// Keeps the first two seeds of a sweep and the arms that this processor can train.
Words fewer_runs(const std::string& sweep) {
  std::set<std::uint64_t> seeds;
  std::set<std::string> arms;
  for (const study::SweepRun& run : study::load_sweep(sweep).runs) {
    if (seeds.size() < 2) seeds.insert(run.config().run.seed);
    if (unsupported_reason(run.config().train.precision).empty()) arms.insert(run.base_arm);
  }
  return {"--jobs", "1",
          "--arms", fmt::format("{}", fmt::join(arms, ",")),
          "--set",  fmt::format("sweep.seeds=[{}]", fmt::join(seeds, ", "))};
}

/// A directory with what the README takes to be there, and the YAML files that it shows, each below
/// a first line `# <its name>`.
class ReadmeRuns : public testing::Test {
 protected:
  ReadmeRuns() {
    fs::create_directory_symlink(kRoot / "configs", dir_ / "configs");
    fs::create_directory(dir_ / "my_corpus");
    for (const char* folder : {"core", "autograd", "layers"}) {
      for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
        if (entry.path().extension() != ".cpp") continue;
        fs::copy_file(entry.path(), dir_ / "my_corpus" / (entry.path().stem().string() + ".txt"),
                      fs::copy_options::skip_existing);
      }
    }
    put(dir_ / "more.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
    Words lines;
    for (int i = 0; i < 2000; ++i) lines.push_back(fmt::format("value {} of {}", i * i % 997, i));
    put(dir_ / "my.model", test::train_sentencepiece(lines, 500));
    run::h5::File tokens = run::h5::File::create(dir_ / "tokens.h5");
    tokens.write<std::int32_t>("tokens", {2, 17}, std::vector<std::int32_t>(34, 7));
    tokens.save();
    write_shown_files();
  }

  void run(Words words) {
    const fs::path sweep = dir_ / (words.size() > 1 ? words[1] : "");
    const Words few = words[0] == "sweep" ? fewer_runs(sweep) : Words{};
    words = words + little(words) + few;
    Conditions here{.directory = dir_.path()};
    here.environment.emplace_back("OMP_NUM_THREADS", "1");
    const Outcome outcome = test::run(words, here);
    EXPECT_EQ(outcome.exit, 0) << fmt::format("difftape {}\n", fmt::join(words, " ")) << outcome.out
                               << outcome.err;
  }

  ScratchDir dir_;
  Words shown_;

 private:
  void write_shown_files() {
    static const std::regex name("^# ([a-z]+\\.yaml)\\b.*");
    std::string file, text;
    for (const std::string& line : lines_of(kRoot / "README.md")) {
      std::smatch match;
      if (line.starts_with("```") && !file.empty()) {
        put(dir_ / file, text);
        shown_.push_back(std::exchange(file, ""));
      } else if (file.empty() && std::regex_match(line, match, name)) {
        file = match[1];
        text.clear();
      }
      text += line + "\n";
    }
  }
};

TEST_F(ReadmeRuns, blocks_and_sentences_in_an_order_in_which_what_they_read_is_there) {
  EXPECT_THAT(shown_, testing::ElementsAre("my.yaml", "sweep.yaml", "claims.yaml"));
  std::vector<Words> first, then;
  std::set<Words> seen;
  for (const CommandLine& line : command_lines("README.md")) {
    const Words words = words_of(line.text);
    static const std::set<std::string> makes{"train", "sweep", "data"};
    if (seen.insert(words).second) (makes.contains(words[0]) ? first : then).push_back(words);
  }
  EXPECT_GE(first.size(), 6U);
  EXPECT_GE(then.size(), 1U);
  for (const Words& words : first) run(words);
  for (const Words& words : then) run(words);
  EXPECT_TRUE(fs::exists(dir_ / "runs/mine-2/status.json"));  // as a comment there says
  EXPECT_TRUE(fs::exists(dir_ / "runs/quickstart/report.html"));
}

/// A row of the table with its optional words left out, the first of its alternatives, and files
/// for what stands in capitals.
std::string with_files(std::string synopsis) {
  static const std::vector<std::pair<std::regex, std::string>> meant{
      {std::regex(R"( \[[^\[\]]*(\[[^\[\]]*\])?[^\[\]]*\])"), ""},
      {std::regex(R"(\\\|\w+)"), ""},
      {std::regex("CRASH_DUMP_OR_RUN|RUN_OR_CKPT"), "runs/mine"},
      {std::regex("CONFIG_OR_CKPT|CONFIG"), "my.yaml"},
      {std::regex("SWEEP"), "sweep.yaml"},
      {std::regex(R"(DIR\.\.\.)"), "runs/sweep"},
      {std::regex("RUN_A RUN_B"), "runs/sweep/mine-seed11 runs/sweep/softmax-seed11"},
      {std::regex("RUN"), "runs/mine"},
      {std::regex("FILE_OR_DIR|PATH"), "mine.safetensors"},
      {std::regex("TEXT"), "text"},
      {std::regex("SOURCES"), "my_corpus"},
      {std::regex("MODEL"), "my.model"}};
  for (const auto& [words, file] : meant) synopsis = std::regex_replace(synopsis, words, file);
  return synopsis;
}

TEST_F(ReadmeRuns, rows_of_the_table_of_commands) {
  static const std::regex command("`(?:difftape )?([^`]+)`");
  int rows = 0;
  for (const std::string& line : lines_of(kRoot / "README.md")) {
    if (!line.starts_with("| `difftape ")) continue;
    const std::string cell = line.substr(0, line.find("` |") + 1);
    for (std::sregex_iterator each(cell.begin(), cell.end(), command), end; each != end; ++each)
      run(words_of(with_files((*each)[1])));
    ++rows;
  }
  EXPECT_GE(rows, 19);
}

}  // namespace
}  // namespace difftape::test
