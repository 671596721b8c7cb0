// Runs each command line of the root README and of docs/ in a directory that has the files it
// names. Added arguments shorten the long ones.

#include "tests/structure/readme_lines.h"
#include "tests/support/sentencepiece.h"
#include "tests/train/app/program.h"
#include "train/run/inference/model.h"
#include "train/run/records/h5.h"
#include "train/study/sweep/sweep_config.h"

namespace difftape::test {
namespace {

const Words kLittleModel{"--set", "model.num_layers=1",  "--set", "data.seq_len=16",
                         "--set", "data.batch_size=2",   "--set", "data.path=[my_corpus/*.txt]",
                         "--set", "train.eval_batches=1"};
const Words kTwoSteps{"--set", "train.steps=2", "--set", "optim.warmup_steps=1"};

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The arguments that shorten a command, by its first word or two. A resumed run has its own.
Words little(const Words& command) {
  if (std::ranges::count(command, "--resume") > 0) return {};
  static const std::map<std::string, Words> added{{"train", kLittleModel + kTwoSteps},
                                                  {"sweep", kLittleModel + kTwoSteps},
                                                  {"plan", kLittleModel},
                                                  {"eval", {"--batches", "1"}},
                                                  {"generate", {"--max-tokens", "2"}},
                                                  {"gradcheck", {"--filter", "^softmax$"}}};
  auto found = added.find(command[0]);
  if (found == added.end() && command.size() > 1) found = added.find(command[0] + " " + command[1]);
  return found == added.end() ? Words{} : found->second;
}

/// Keeps the first two seeds of a sweep.
Words fewer_runs(const std::string& sweep) {
  std::set<std::uint64_t> seeds;
  for (const study::SweepRun& run : study::load_sweep(sweep).runs)
    if (seeds.size() < 2) seeds.insert(run.config().run.seed);
  return {"--set", fmt::format("sweep.seeds=[{}]", fmt::join(seeds, ", "))};
}

/// A directory with the files that a page presupposes, and the YAML files that it or the README
/// shows, each below a first line `# <its name>`.
struct PageRuns : testing::Test {
  PageRuns() {
    fs::create_directory_symlink(kRoot / "configs", dir_ / "configs");
    fs::copy(kRoot / "results", dir_ / "results", fs::copy_options::recursive);
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
    write_shown_files("README.md");
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

  void write_shown_files(const fs::path& page) {
    static const std::regex name("^# ([a-z0-9_]+\\.yaml)\\b.*");
    std::string file, text;
    for (const std::string& line : lines_of(kRoot / page)) {
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

TEST_F(PageRuns, blocks_and_sentences_after_the_commands_that_write_their_inputs) {
  EXPECT_THAT(shown_, ElementsAre("my.yaml", "sweep.yaml", "claims.yaml"));
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
      {std::regex("RUN_OR_CKPT"), "runs/mine"},
      {std::regex("CONFIG_OR_CKPT|CONFIG"), "my.yaml"},
      {std::regex("SWEEP"), "sweep.yaml"},
      {std::regex(R"(DIR\.\.\.)"), "runs/sweep"},
      {std::regex("RUN_A RUN_B"), "runs/sweep/no_lambda-seed11 runs/sweep/softmax-seed11"},
      {std::regex("RUN"), "runs/mine"},
      {std::regex("FILE_OR_DIR|PATH"), "mine.safetensors"},
      {std::regex("TEXT"), "text"},
      {std::regex("SOURCES"), "my_corpus"},
      {std::regex("MODEL"), "my.model"}};
  for (const auto& [words, file] : meant) synopsis = std::regex_replace(synopsis, words, file);
  return synopsis;
}

TEST_F(PageRuns, rows_of_the_table_of_commands) {
  static const std::regex command("`(?:difftape )?([^`]+)`");
  int rows = 0;
  for (const std::string& line : lines_of(kRoot / "README.md")) {
    if (!line.starts_with("| `difftape ")) continue;
    const std::string cell = line.substr(0, line.find("` |") + 1);
    for (std::sregex_iterator each(cell.begin(), cell.end(), command), end; each != end; ++each)
      run(words_of(with_files((*each)[1])));
    ++rows;
  }
  EXPECT_GE(rows, 18);
}

/// The pages of docs/ with command lines. All but the tutorial presuppose the README's runs.
class DocsRuns : public PageRuns, public testing::WithParamInterface<std::string> {
 protected:
  void make_readme_runs() {
    for (const char* line : {"train my.yaml", "train my.yaml --out auto", "sweep sweep.yaml",
                             "data prepare my_corpus --out tokens.bin"})
      run(words_of(line));
    for (const char* study : {"results/a", "results/b"}) {
      fs::create_directory(dir_ / study);
      fs::copy(dir_ / "runs/sweep/runs.csv", dir_ / study / "runs.csv");
    }
  }
};

TEST_P(DocsRuns, command_lines_in_their_order) {
  // The first needs a queue, the second a run that diverged.
  static const std::regex not_here("--submit|/diverged/"), long_run("step-00001000");
  if (GetParam() == "docs/getting-started.md") {
    fs::remove(dir_ / "my.yaml");
  } else {
    make_readme_runs();
  }
  write_shown_files(GetParam());
  const auto before = fs::current_path();
  fs::current_path(dir_.path());  // patterns such as a1_*/runs.csv expand here
  for (const CommandLine& line : command_lines(GetParam()))
    if (!std::regex_search(line.text, not_here))
      run(words_of(std::regex_replace(line.text, long_run, "step-00000002")));
  fs::current_path(before);
}

std::set<std::string> docs_with_command_lines() {
  std::set<std::string> pages;
  for (const CommandLine& line : all_command_lines())
    if (line.file.starts_with("docs/")) pages.insert(line.file);
  return pages;
}

INSTANTIATE_TEST_SUITE_P(Pages, DocsRuns, testing::ValuesIn(docs_with_command_lines()),
                         [](const testing::TestParamInfo<std::string>& page) {
                           const std::string stem = fs::path(page.param).stem();
                           return std::regex_replace(stem, std::regex("-"), "_");
                         });

/// Difference of an arm to the baseline, with the ends of its interval.
struct Gap {
  double mean, low, high;
};

/// Returns the columns "final loss vs" of a report by arm and task: "v2, 653 steps".
std::map<std::string, Gap> gaps(const std::string& printed) {
  static const std::regex row(
      R"((\w+) .* ([+-]\d\.\d{4}) +([+-]\d\.\d{4}) +([+-]\d\.\d{4}) +\d+( .*)?)");
  std::map<std::string, Gap> found;
  std::istringstream lines(printed);
  std::smatch match;
  std::string task;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(" steps:")) task = ", " + line.substr(0, line.size() - 1);
    if (std::regex_match(line, match, row))
      found[match[1].str() + task] = {std::stod(match[2]), std::stod(match[3]),
                                      std::stod(match[4])};
  }
  return found;
}

TEST_F(PageRuns, findings_in_the_readme_equal_the_output_of_report) {
  static const std::map<std::string, std::string> arms{{"V1", "v1"},
                                                       {"V2", "v2"},
                                                       {"softmax", "softmax"},
                                                       {"gated attention", "gated"},
                                                       {"V2 without lambda", "v2_no_lambda"}};
  static const std::string cell =
      R"( \| ([+-]\d\.\d{3}) \(([+-]\d\.\d{3}) to ([+-]\d\.\d{3})\)(?:, n \d+)?)";
  static const std::string cell_if_any = "(?:" + cell + R"(| \|))";
  static const std::regex row(R"(\| ([^|]+) - ([^|]+))" + cell + cell + cell_if_any + R"( \|)");
  const Words columns{", 653 steps", ", 2286 steps", ", 6520 steps"};
  int rows = 0;
  int compared = 0;
  std::smatch match;
  for (const std::string& line : lines_of(kRoot / "README.md")) {
    if (!std::regex_match(line, match, row)) continue;
    SCOPED_TRACE(line);
    for (size_t column = 0; column < columns.size(); ++column) {
      if (!match[3 + 3 * column].matched) continue;
      const Words report{"report", "results/size_ladder", "--baseline", arms.at(match[2])};
      const auto found = gaps(output(test::run(report, {.directory = dir_.path()})));
      const auto [mean, low, high] = found.at(arms.at(match[1]) + columns[column]);
      const auto number = [&](size_t i) { return std::stod(match[3 + 3 * column + i]); };
      EXPECT_NEAR(number(0), mean, 0.0006);
      EXPECT_NEAR(number(1), low, 0.0006);
      EXPECT_NEAR(number(2), high, 0.0006);
      ++compared;
    }
    ++rows;
  }
  EXPECT_EQ(rows, 4);
  EXPECT_EQ(compared, 10);
}

}  // namespace
}  // namespace difftape::test
