// The error messages for every kind of wrong key, value or file.
#include "tests/train/run/config/config_files.h"

namespace difftape::run {
namespace {

class ConfigMessages : public ConfigFiles {
 protected:
  void expect_of_values(const std::vector<std::array<std::string, 3>>& cases);
};

TEST_F(ConfigMessages, unknown_keys_name_the_nearest_known_one) {
  EXPECT_EQ(error("model:\n  d_modle: 3\n"),
            "a.yaml:2:3: error: unknown key 'model.d_modle'; did you mean 'model.d_model'?");
  EXPECT_EQ(error("lr: 3\n"), "a.yaml:1:1: error: unknown key 'lr'; did you mean 'optim.lr'?");
  EXPECT_EQ(error("train.lr: 3\n"),
            "a.yaml:1:1: error: unknown key 'train.lr'; did you mean 'optim.lr'?");
  EXPECT_EQ(
      error("optim.lr.peak: 3\n"),
      "a.yaml:1:1: error: unknown key 'optim.lr.peak'; 'difftape config keys' lists all keys");
  EXPECT_EQ(error("bsae: x.yaml\n"), "a.yaml:1:1: error: unknown key 'bsae'; did you mean 'base'?");
  EXPECT_EQ(error("modle: {d_model: 3, d_ff: 4}\n"),
            "a.yaml:1:1: error: unknown section 'modle'; did you mean 'model'?");
  EXPECT_EQ(error("attention: {kind: softmax}\n"),
            "a.yaml:1:1: error: unknown section 'attention'; did you mean 'model.attention'?");
  EXPECT_EQ(error("<<: {optim.lr: 1}\n"),
            "a.yaml:1:1: error: unknown section '<<'; 'difftape config keys' lists all keys");
}

TEST_F(ConfigMessages, duplicate_keys_are_found_in_every_spelling) {
  EXPECT_EQ(error("optim.lr: 1\nrun.seed: 2\noptim.lr: 3\n"),
            "a.yaml:3:1: error: duplicate key 'optim.lr'; first given in line 1");
  EXPECT_EQ(error("optim: {lr: 1}\noptim.lr: 3\n"),
            "a.yaml:2:1: error: duplicate key 'optim.lr'; first given in line 1");
  EXPECT_EQ(error("optim: {lr: 1}\noptim: {eps: 3}\n"),
            "a.yaml:2:1: error: duplicate key 'optim'; first given in line 1");
  EXPECT_EQ(error("model: {attention.kind: softmax, attention: {kind: softmax}}\n"),
            "a.yaml:1:46: error: duplicate key 'model.attention.kind'; first given in line 1");
  EXPECT_EQ(error("foo: 1\nfoo: 2\n"),
            "a.yaml:1:1: error: unknown key 'foo'; 'difftape config keys' lists all keys\n"
            "a.yaml:2:1: error: duplicate key 'foo'; first given in line 1");
  EXPECT_EQ(error("base: []\nbase: []\n"),
            "a.yaml:2:1: error: duplicate key 'base'; write several bases as one list");
  EXPECT_EQ(error("", {"model={d_ff: 1, d_ff: 2}"}),
            "--set model={d_ff: 1, d_ff: 2}: error: duplicate key 'model.d_ff'");
}

/// Expects the message for each `key: value`, located at the value, or at the key if there is none.
void ConfigMessages::expect_of_values(const std::vector<std::array<std::string, 3>>& cases) {
  for (const auto& [key, value, message] : cases) {
    const bool none = value.empty() || value == "~";
    EXPECT_EQ(error(key + ": " + value + "\n"),
              fmt::format("a.yaml:1:{}: error: {}: {}", none ? 1 : key.size() + 3, key, message));
  }
}

TEST_F(ConfigMessages, mistyped_values_say_what_was_expected) {
  const std::string steps = "train.steps", std = "model.init.projection_std";
  expect_of_values({
      {steps, "abc", "expected an integer, got 'abc'"},
      {steps, "1.5", "expected an integer, got '1.5'"},
      {steps, "1e3", "expected an integer, got '1e3'; write 1000"},
      {steps, "12 3", "expected an integer, got '12 3'"},
      {steps, "'100'", "expected an integer, got the string '100'; remove the quotes"},
      {steps, "[1]", "expected an integer, got a list"},
      {steps, "{a: 1}", "expected an integer, got a map"},
      {steps, "", "expected an integer, got nothing"},
      {steps, "~", "expected an integer, got nothing"},
      {std, "fanin", "'fanin' is not one of preset, fan_in, or a number; did you mean 'fan_in'?"},
      {std, "0.1x", "expected a number, got '0.1x'"},
      {std, "[1]", "expected a word, got a list"},
      {"model.init.embedding_std", "fan_in", "'fan_in' is not one of preset, or a number"},
      {"optim.lr", "fast", "expected a number, got 'fast'"},
      {"optim.lr", "'1'", "expected a number, got the string '1'; remove the quotes"},
      {"model.tie_word_embeddings", "yes", "expected true or false, got 'yes'"},
      {"model.match_params", "parameters", "expected true or false, got 'parameters'"},
      {"run.name", "[a]", "expected a string, got a list"},
      {"run.out", "", "expected a string, got nothing; write \"\" for an empty string"},
      {"optim.schedule", "[a]", "expected a word, got a list"},
      {"optim.betas", "0.9", "expected a list of 2 numbers, got '0.9'"},
      {"optim.betas", "[0.9]", "expected a list of 2 numbers, got a list of 1"},
      {"data.path", "{a: b}", "expected a list of strings, got a map"},
  });
  EXPECT_EQ(error("optim.betas: [0.9, x]\n"),
            "a.yaml:1:20: error: optim.betas: expected a number, got 'x'");
  EXPECT_EQ(
      error("optim: 5\n"),
      "a.yaml:1:8: error: optim: expected a section, got '5'; set its keys, for example optim.lr");
  EXPECT_EQ(
      config("model.init: {embedding_std: 1, projection_std: fan_in}\n").model.init.embedding_std,
      1);
}

TEST_F(ConfigMessages, numbers_out_of_range_name_the_range) {
  const std::string no_double = "1e999 is out of range; need a 64-bit float";
  expect_of_values({
      {"optim.lr", "0", "0 is out of range; need > 0"},
      {"optim.lr", "1e999", no_double},
      {"model.init.projection_std", "0", "0 is out of range; need > 0"},
      {"model.init.projection_std", "1e999", no_double},
      {"train.steps", "0", "0 is out of range; need in [1, 1000000000000]"},
      {"train.steps", "99999999999999999999",
       "99999999999999999999 is out of range; need a 64-bit integer"},
      {"model.num_layers", "1025", "1025 is out of range; need in [1, 1024]"},
      {"run.seed", "-1", "-1 is out of range; need >= 0"},
  });
  EXPECT_EQ(error("optim.betas: [0.9, 1]\n"),
            "a.yaml:1:20: error: optim.betas: 1 is out of range; need in [0, 1)");
  for (const std::string word : {".nan", "nan", ".inf", "-.inf", "inf"})
    expect_of_values({{"optim.lr", word, word + " is not allowed; need a finite number"}});
}

TEST_F(ConfigMessages, unknown_words_list_the_allowed_ones_and_the_nearest) {
  const std::string message = error("model.attention.kind: dif_v2\n");
  EXPECT_THAT(message,
              StartsWith("a.yaml:1:23: error: model.attention.kind: 'dif_v2' is not one of "));
  EXPECT_THAT(message, EndsWith("; did you mean 'diff_v2'?"));
  expect_of_values({
      {"data.type", "txt",
       "'txt' is not one of text, tokens, needles, mqar, backcopy; did you mean 'text'?"},
      {"train.activation_checkpointing", "block",
       "'block' is not one of none, blocks; did you mean 'blocks'?"},
      {"train.precision", "fp8", "'fp8' is not one of full, bf16, bf16_emulated"},
      {"optim.schedule", "cosin",
       "'cosin' is not one of cosine, linear, constant, wsd; did you mean 'cosine'?"},
  });
  EXPECT_EQ(error("model.attention: {kind: gated, gate: both}\n"),
            "a.yaml:1:38: error: model.attention.gate: 'both' is not one of preset, none, "
            "elementwise, head");
}

TEST_F(ConfigMessages, broken_yaml_is_reported_with_its_location) {
  EXPECT_EQ(error("model: {d_ff: 3\n"),
            "a.yaml:2:1: error: invalid YAML: end of map flow not found; a '}' or ',' is missing "
            "before this");
  EXPECT_THAT(error("optim.betas: [0.9, 0.95\n"),
              EndsWith("; a ']' or ',' is missing before this"));
  EXPECT_EQ(error("model:\n\td_ff: 3\n"),
            "a.yaml:2:6: error: invalid YAML: illegal map value; tabs cannot indent YAML, use "
            "spaces");
  EXPECT_EQ(error("- 1\n"), "a.yaml:1:1: error: expected keys and values, got a list");
  EXPECT_EQ(error("hello\n"), "a.yaml:1:1: error: expected keys and values, got 'hello'");
  EXPECT_EQ(error("? [a]\n: 1\n"),
            "a.yaml:1:3: error: a key is empty, a list or a map, but must be a single word");
  EXPECT_EQ(error("{}\n---\n{}\n"),
            "a.yaml:3:1: error: a second YAML document begins ('---'), but a file must have "
            "exactly one; remove it");
  EXPECT_EQ(error("optim.lr: &x 1\noptim.min_lr: *x\n"),
            "a.yaml:2:15: error: aliases (*name) are not supported; repeat the value, or share it "
            "through 'base:'");
  EXPECT_THAT(error("a: " + std::string(10000, '[')),
              EndsWith("error: invalid YAML: nested too deeply"));
}

TEST_F(ConfigMessages, a_bad_base_is_named_where_it_is_written) {
  write("tiny.yaml", "");
  EXPECT_EQ(error("run.seed: 1\nbase: [tiny.yaml, tinny.yaml]\n"),
            "a.yaml:2:19: error: base: tinny.yaml: no such file; did you mean 'tiny.yaml'?");
  EXPECT_EQ(error("base:\n"), "a.yaml:1:1: error: base: expected a list of strings, got nothing");
  EXPECT_EQ(error("base: {a: b}\n"),
            "a.yaml:1:7: error: base: expected a list of strings, got a map");
  EXPECT_EQ(error("base: .\n"), "a.yaml:1:7: error: base: .: is a folder, but must be a YAML file");
}

TEST_F(ConfigMessages, a_cycle_of_bases_is_an_error) {
  EXPECT_EQ(error("base: a.yaml\n"),
            "a.yaml:1:7: error: base: a.yaml is its own base; remove one 'base:' of the cycle");
  write("b/b.yaml", "base: ../a.yaml\n");
  EXPECT_EQ(error("base: b/b.yaml\n"),
            "b/b.yaml:1:7: error: base: a.yaml is its own base; remove one 'base:' of the cycle");
}

TEST_F(ConfigMessages, bad_overrides_name_the_override) {
  EXPECT_EQ(
      error("", {"nonsense", "=3", "optim.lr=fast", "optim.lr=", "modle.d_ff=3", "optim.betas=[0.9",
                 "base=x.yaml", "sweep.seeds=[1]"}),
      "--set nonsense: error: expected key=value, for example --set optim.lr=0.001\n--set "
      "=3: error: expected key=value, for example --set optim.lr=0.001\n--set modle.d_ff=3: "
      "error: unknown key 'modle.d_ff'; did you mean 'model.d_ff'?\n--set base=x.yaml: error: "
      "base: "
      "only a configuration file can name bases; remove it\n--set sweep.seeds=[1]: error: "
      "sweep.seeds: only 'difftape sweep' reads this key; leave it out\n--set optim.lr=fast: "
      "error: optim.lr: expected a number, got 'fast'\n--set optim.lr=: error: optim.lr: "
      "expected a number, got nothing\n--set optim.betas=[0.9: error: optim.betas: expected a "
      "list of 2 numbers, got '[0.9'");
}

TEST_F(ConfigMessages, too_many_steps_are_named_where_they_are_given) {
  EXPECT_EQ(error("", {"train.steps=9000000000000000000"}),
            "--set train.steps=9000000000000000000: error: train.steps: 9000000000000000000 is out "
            "of range; need in [1, 1000000000000]");
}

TEST_F(ConfigMessages, one_pass_reports_all_errors_of_all_files_and_overrides) {
  write("b.yaml", "optim.lr: fast\nfoo: 1\n");
  EXPECT_EQ(error("base: b.yaml\ntrain.steps: 0\n", {"run.seed=x", "model.num_heads=5"}),
            "b.yaml:2:1: error: unknown key 'foo'; 'difftape config keys' lists all keys\n"
            "b.yaml:1:11: error: optim.lr: expected a number, got 'fast'\n"
            "a.yaml:2:14: error: train.steps: 0 is out of range; need in [1, 1000000000000]\n"
            "--set run.seed=x: error: run.seed: expected an integer, got 'x'\n"
            "--set model.num_heads=5: error: model.num_heads: num_heads 5 does not divide d_model "
            "128; change one of them, or set model.head_dim");
}

TEST_F(ConfigMessages, an_error_in_a_base_of_two_files_is_reported_once) {
  write("root.yaml", "optim.lr: 0\n");
  write("one.yaml", "base: root.yaml\n");
  write("two.yaml", "base: root.yaml\n");
  EXPECT_EQ(error("base: [one.yaml, two.yaml]\n"),
            "root.yaml:1:11: error: optim.lr: 0 is out of range; need > 0");
}

}  // namespace
}  // namespace difftape::run
