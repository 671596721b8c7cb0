// Checks that the schema of `difftape config schema` accepts the same files as the reader. Ajv, an
// independent JSON Schema validator in Node.js, evaluates it.
#include <unistd.h>

#include "tests/train/app/program.h"
#include "tests/train/run/config/config_files.h"
#include "train/run/config/writer.h"

namespace difftape::run {
namespace {

const fs::path kSource = DIFFTAPE_TEST_SOURCE_DIR;

class SchemaInAjv : public ConfigFiles {
 protected:
  void SetUp() override {
    const char* wanted = std::getenv("DIFFTAPE_TEST_NODE");
    const bool there = access("/usr/share/nodejs/ajv", R_OK) == 0;
    ASSERT_TRUE(there || !wanted) << "node-ajv is missing";
    if (!there) GTEST_SKIP() << "node-ajv is not installed";
  }

  /// Returns the verdict of the validator on each file, in order.
  std::vector<std::string> verdicts(const std::vector<std::string>& files) {
    write("schema.json", config_schema());
    const std::string outcome = test::output(test::run(
        joined({kSource / "tests/train/run/config/check_schema.js", "schema.json"}, files),
        {.directory = fs::current_path(),
         .program = "/usr/bin/node",
         .environment = {{"NODE_PATH", "/usr/share/nodejs"}}}));
    std::vector<std::string> lines;
    std::istringstream stream(outcome);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    EXPECT_EQ(lines.size(), files.size());
    return lines;
  }

  /// Returns the verdict of the validator on each YAML text.
  std::vector<std::string> verdicts_of_texts(const std::vector<std::string>& texts) {
    std::vector<std::string> files;
    for (const std::string& text : texts) {
      files.push_back(std::to_string(files.size()) + ".yaml");
      write(files.back(), text);
    }
    return verdicts(files);
  }

  /// Returns true if the reader accepts the text as a run or as a sweep.
  bool is_read(const std::string& text) {
    write("read.yaml", text);
    try {
      if (text.find("sweep") == std::string::npos)
        load_config("read.yaml");
      else
        study::load_sweep("read.yaml");
    } catch (const ConfigError&) {
      return false;
    }
    return true;
  }
};

TEST_F(SchemaInAjv, accepts_every_shipped_file_including_sweeps) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "configs")) {
    const bool claims =
        entry.path().parent_path().filename() == "claims" ||
        entry.path().filename().string().starts_with("claims");  // not configurations
    if (entry.path().extension() == ".yaml" && !claims) files.push_back(entry.path());
  }
  EXPECT_GE(files.size(), 28u);
  for (const std::string& verdict : verdicts(files)) EXPECT_THAT(verdict, EndsWith(".yaml: valid"));
}

TEST_F(SchemaInAjv, accepts_what_the_reader_accepts) {
  write("base.yaml", "");
  const std::vector<std::string> right{
      "",
      "base: base.yaml\nmodel:\n",
      "base: [base.yaml, base.yaml]\nmodel.attention: {kind: diff_v1, subln: false}\n",
      "model: {attention.kind: diff_v2, d_ff: 64}\nmodel.attention.lambda: none\n",
      "data: {type: needles, needles.facts: [1], needles: {queries: [1]}}\n",
      "data.path: [a.txt, b.txt]\ndata.needles.cities: 3\n",
      to_yaml(Config()),
      "sweep.lr: [1.0e-3, 3]\noptim.min_lr: 1.0e-4\n",
      "sweep: {only: a, seeds: [1, 2], lr: wortsman, arms: {a: , b: {base: base.yaml}}}\n"
      "optim.min_lr: 1.0e-5\n",
      "sweep.grid: {model.d_ff: [64, 128], model: {num_layers: [2]}, optim.betas: [[0.9, 0.95]]}\n",
      "sweep: {zip: {data.seq_len: [64, 128], data: {batch_size: [32, 16]}}}\n",
      "sweep.arms: {a: {model: {attention.kind: diff_v1}, optim.lr: 0.1}}\nsweep.baseline: a\n"};
  const std::vector<std::string> verdicts = verdicts_of_texts(right);
  for (size_t i = 0; i < right.size(); ++i) {
    EXPECT_THAT(verdicts[i], EndsWith(": valid")) << right[i];
    EXPECT_TRUE(is_read(right[i])) << right[i];
  }
}

TEST_F(SchemaInAjv, rejects_unknown_keys_wrong_types_ranges_and_words_as_the_reader_does) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"modle: {d_ff: 64}\n", "should NOT have additional properties"},
      {"model: {d_f: 64}\n", ".model should NOT have additional properties"},
      {"model.d_f: 64\n", "should NOT have additional properties"},
      {"data: {needles.pairs: 4}\n", ".data should NOT have additional properties"},
      {"model.window: 4\n", "should NOT have additional properties"},
      {"model: 3\n", ".model should be object"},
      {"train: {steps: many}\n", ".train.steps should be integer"},
      {"train.steps: 1.5\n", "['train.steps'] should be integer"},
      {"model.tie_word_embeddings: 1\n", "['model.tie_word_embeddings'] should be boolean"},
      {"optim: {betas: [0.9]}\n", ".optim.betas should NOT have fewer than 2 items"},
      {"optim: {lr: 0}\n", ".optim.lr should be > 0"},
      {"model.num_layers: 1025\n", "['model.num_layers'] should be <= 1024"},
      {"optim.betas: [0.9, 1]\n", "['optim.betas'][1] should be < 1"},
      {"model.attention.kind: off_by_one\n", "should be equal to one of the allowed values"},
      {"data: {type: recall}\n", ".data.type should be equal to one of the allowed values"},
      {"base: 3.5\nbase.x: 1\n", "should NOT have additional properties"},
      {"sweep: {seed: [1]}\n", ".sweep should NOT have additional properties"},
      {"sweep: {seeds: 3, arms: {a: }}\n", ".sweep.seeds should be array"},
      {"sweep: {seeds: [-1], arms: {a: }}\n", ".sweep.seeds[0] should be >= 0"},
      {"sweep: {lr: [0], arms: {a: }}\n", ".sweep.lr[0] should be > 0"},
      {"sweep: {lr: wortman, arms: {a: }}\n", ".sweep.lr should be equal to constant"},
      {"sweep: {arms: {}}\n", ".sweep.arms should NOT have fewer than 1 properties"},
      {"sweep: {arms: {a: 3}}\n", ".sweep.arms['a'] should be object"},
      {"sweep: {arms: {a: {lr: 1}}}\n", ".sweep.arms['a'] should NOT have additional properties"},
      {"sweep: {arms: {a: {run.seed: 1}}}\n", "should NOT have additional properties"},
      {"sweep: {arms: {a: {sweep: {lr: [1]}}}}\n", "should NOT have additional properties"},
      {"sweep.arms: {a: {model: {d_ff: x}}}\n", ".model.d_ff should be integer"},
      {"sweep.grid: {model.d_ff: 64}\n", "['model.d_ff'] should be array"},
      {"sweep.grid: {model: {d_ff: [64, 0]}}\n", ".model.d_ff[1] should be >= 1"},
      {"sweep.zip: {run.seed: [1, 2]}\n", "should NOT have additional properties"}};
  std::vector<std::string> texts;
  for (const auto& [text, error] : wrong) texts.push_back(text);
  const std::vector<std::string> verdicts = verdicts_of_texts(texts);
  for (size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_THAT(verdicts[i], HasSubstr(wrong[i].second)) << wrong[i].first;
    EXPECT_FALSE(is_read(wrong[i].first)) << wrong[i].first;
  }
}

}  // namespace
}  // namespace difftape::run
