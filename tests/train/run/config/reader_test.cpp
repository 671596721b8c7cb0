#include "train/run/config/reader.h"

#include "tests/train/run/config/config_files.h"
#include "train/run/config/fields.h"
#include "train/run/config/writer.h"

namespace difftape::run {
namespace {

using ConfigReader = ConfigFiles;

std::string here(const std::string& path) { return (fs::current_path() / path).string(); }

TEST_F(ConfigReader, an_empty_file_gives_the_defaults) {
  EXPECT_EQ(config("").model.d_model, Config().model.d_model);
  EXPECT_EQ(config("# nothing but a comment\n").optim.betas, Config().optim.betas);
  EXPECT_EQ(config("model:\n").model.d_model, Config().model.d_model);
}

TEST_F(ConfigReader, nested_and_dotted_keys_mix) {
  const Config c = config(
      "model: {attention: {kind: diff_v1}, d_model: 64}\n"
      "model.d_ff: 100\n"
      "optim:\n  betas: [0.5, 0.6]\n"
      "data: {path: [a.txt, 'b*.txt']}\n"
      "run: {name: \"7\", seed: 9}\n"
      "model.tie_word_embeddings: true\n");
  EXPECT_EQ(c.model.attention.kind, "diff_v1");
  EXPECT_EQ(c.model.d_model, 64);
  EXPECT_EQ(c.model.d_ff, 100);
  EXPECT_EQ(c.optim.betas, (std::array<double, 2>{0.5, 0.6}));
  EXPECT_EQ(c.data.path, (std::vector<std::string>{here("a.txt"), here("b*.txt")}));
  EXPECT_EQ(c.run.name, "7");
  EXPECT_EQ(c.run.seed, 9u);
  EXPECT_TRUE(c.model.tie_word_embeddings);
}

TEST_F(ConfigReader, a_single_path_needs_no_list) {
  EXPECT_EQ(config("data.path: a.txt\n").data.path, std::vector<std::string>{here("a.txt")});
}

TEST_F(ConfigReader, an_override_takes_its_value_as_it_is) {
  const auto path = [&](const std::string& value) {
    return config("", {"data.path=" + value}).data.path;
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(path("corpus #2/x.txt"), Paths{here("corpus #2/x.txt")}) << "not a comment";
  EXPECT_EQ(path("*.txt"), Paths{here("*.txt")}) << "not an alias";
  EXPECT_EQ(path("&a.txt"), Paths{here("&a.txt")}) << "not an anchor";
  EXPECT_EQ(path("[draft] a.txt"), Paths{here("[draft] a.txt")});
  EXPECT_EQ(path("a: b.txt"), Paths{here("a: b.txt")}) << "not a map";
  EXPECT_EQ(path("a.txt "), Paths{here("a.txt ")});
  EXPECT_EQ(path("[a #1.txt, '*.txt', \"c, d.txt\",it's.txt]"),
            (Paths{here("a #1.txt"), here("*.txt"), here("c, d.txt"), here("it's.txt")}));
  for (const char* none : {"", "[]", "['']"}) {  // an unset shell variable
    EXPECT_THAT([&] { path(none); },
                ThrowsMessage<ConfigError>(HasSubstr("data.path: names no file; give a path")))
        << none;
  }
  EXPECT_EQ(path("[,]"), Paths{here("[,]")}) << "not a list with an empty path";
  EXPECT_THAT(config("", {"data.val_path="}).data.val_path, IsEmpty()) << "a split of data.path";
  const auto arm = [&](const std::string& value) {
    return config("", {"run.arm=" + value}).run.arm;
  };
  for (const std::string text : {"", "The #", "Hello: ", "---", "[a, b]", "{a: b}", "'quoted'", "7",
                                 "null", "%x", "two\nlines", " "})
    EXPECT_EQ(arm(text), text);
}

TEST_F(ConfigReader, an_override_of_another_type_is_read_as_in_a_file) {
  const Config c =
      config("", {"model.init.embedding_std= 0.5", "optim.lr= +0.001", "optim.betas=[ +0.5 ,0.75 ]",
                  "run.seed=+7", "model.rope=false", "model.attention.kind=diff_v1",
                  "optim.warmup_steps=10%", "model.init={preset: gpt2}"});
  EXPECT_EQ(c.model.init.embedding_std, 0.5);
  EXPECT_EQ(c.optim.lr, 0.001);
  EXPECT_EQ(c.optim.betas, (std::array{0.5, 0.75}));
  EXPECT_EQ(c.run.seed, 7u);
  EXPECT_FALSE(c.model.rope);
  EXPECT_EQ(c.model.attention.kind, "diff_v1");
  EXPECT_EQ(c.optim.warmup_steps, 50);
  EXPECT_EQ(c.model.init.preset, InitPreset::gpt2);
  EXPECT_EQ(config("optim.lr: +0.001\n").optim.lr, 0.001);
  EXPECT_EQ(
      error("", {"optim.lr=+-1", "train.steps=3 # three", "optim.lr=0.1"}),
      "--set optim.lr=+-1: error: optim.lr: expected a number, got '+-1'\n"
      "--set train.steps=3 # three: error: train.steps: expected an integer, got '3 # three'");
}

TEST_F(ConfigReader, paths_are_relative_to_their_file_and_become_absolute) {
  write("deep/base.yaml", "data.path: [../a.txt, more/*.txt, /b.txt, ~/c.txt]\n");
  EXPECT_EQ(config("base: deep/base.yaml\n").data.path,
            (std::vector<std::string>{here("a.txt"), here("deep/more/*.txt"), "/b.txt",
                                      std::string(std::getenv("HOME")) + "/c.txt"}));
  EXPECT_EQ(load_config("deep/base.yaml", {"data.path=a.txt"}).config.data.path,
            std::vector<std::string>{here("a.txt")})
      << "on the command line they are relative to the working directory";
  write("d[1]/c.yaml", "data.path: ['*.txt', e.txt]\n");
  EXPECT_EQ(load_config("d[1]/c.yaml").config.data.path,
            (std::vector<std::string>{here("d\\[1]/*.txt"), here("d[1]/e.txt")}))
      << "brackets in the folder of a file are not part of a pattern";
  write("run/env.json", "{}");
  write("run/config.yaml", "data.path: a.txt\ntrain.init_from: /runs/old\n");
  EXPECT_EQ(load_config("run").config.data.path, std::vector<std::string>{"a.txt"})
      << "paths in a run's config.yaml stay as they are";
  write("own/config.yaml", "data.path: a.txt\n");
  EXPECT_EQ(load_config("own").config.data.path, std::vector<std::string>{here("own/a.txt")})
      << "the folder is not a run";
  EXPECT_EQ(config("data.path: []\ntrain.init_from: \"\"\n").train.init_from, "");
}

TEST_F(ConfigReader, numbers_keep_every_bit_and_integers_are_valid_doubles) {
  const Config c = config("optim: {lr: 1, min_lr: 0.1, eps: 2.2250738585072014e-30}\n");
  EXPECT_EQ(c.optim.lr, 1.0);
  EXPECT_EQ(c.optim.min_lr, 0.1);
  EXPECT_EQ(c.optim.eps, 2.2250738585072014e-30);
}

TEST_F(ConfigReader, a_file_wins_over_its_bases_and_later_bases_win_over_earlier_ones) {
  write("base/one.yaml", "optim.lr: 0.01\nmodel.d_ff: 1\ntrain.steps: 100\n");
  write("base/two.yaml", "model.d_ff: 2\ntrain.steps: 200\n");
  const Config c = config("train.steps: 300\nbase: [base/one.yaml, base/two.yaml]\n");
  EXPECT_EQ(c.optim.lr, 0.01);
  EXPECT_EQ(c.model.d_ff, 2);
  EXPECT_EQ(c.train.steps, 300);
}

TEST_F(ConfigReader, bases_are_relative_to_the_file_that_names_them) {
  write("base/deep/root.yaml", "model.d_ff: 5\n");
  write("base/middle.yaml", "base: deep/root.yaml\n");
  EXPECT_EQ(config("base: base/middle.yaml\n").model.d_ff, 5);
}

TEST_F(ConfigReader, a_base_reached_twice_applies_once_at_its_first_position) {
  write("root.yaml", "train.steps: 100\nmodel.d_ff: 1\n");
  write("long.yaml", "base: root.yaml\ntrain.steps: 1000\n");
  write("wide.yaml", "base: root.yaml\nmodel.d_ff: 2\n");
  const Config c = config("base: [long.yaml, wide.yaml]\n");
  EXPECT_EQ(c.train.steps, 1000);
  EXPECT_EQ(c.model.d_ff, 2);
}

TEST_F(ConfigReader, overrides_win_in_their_order_and_take_lists_and_maps) {
  const Config c =
      config("optim.lr: 0.01\n", {"optim.lr=0.02", "optim.lr=0.03", "optim.betas=[0.9,0.99]",
                                  "model={d_ff: 7}", "data.path=a=b.txt", "run.out=\"\""});
  EXPECT_EQ(c.optim.lr, 0.03);
  EXPECT_EQ(c.optim.betas[1], 0.99);
  EXPECT_EQ(c.model.d_ff, 7);
  EXPECT_EQ(c.data.path, std::vector<std::string>{here("a=b.txt")});
}

TEST_F(ConfigReader, every_value_has_an_origin) {
  write("base/b.yaml", "model: {d_ff: 8,\n        d_model: 64}\n");
  write("a.yaml", "base: base/b.yaml\nmodel:\n  d_ff: 9\n");
  const ResolvedConfig r = load_config("a.yaml", {"optim.lr=0.5"});
  EXPECT_EQ(r.origin("model.d_ff").location.str(), "a.yaml:3:3");
  EXPECT_EQ(r.origin("model.d_model").location.origin(), "base/b.yaml:2");
  EXPECT_EQ(r.origin("optim.lr").location.origin(), "--set");
  EXPECT_EQ(r.origin("optim.lr").location.str(), "--set optim.lr=0.5");
  EXPECT_EQ(r.origin("run.seed").location.origin(), "default");
}

TEST_F(ConfigReader, embedded_yaml_is_read_as_strictly_as_a_file_but_has_no_bases) {
  EXPECT_EQ(config_from_yaml("model: {d_ff: 12}\n", "step-1.h5").model.d_ff, 12);
  EXPECT_EQ(
      message(system::Exit::config, [] { config_from_yaml("base: x\nfoo: 1\n", "step-1.h5"); }),
      "step-1.h5:1:1: error: base: only a configuration file can name bases; remove "
      "it\nstep-1.h5:2:1: error: unknown key 'foo'; 'difftape config keys' lists all keys");
}

TEST_F(ConfigReader, a_file_that_cannot_be_read_is_missing_input) {
  const auto load = [](const char* path) {
    return message(system::Exit::missing_input, [&] { load_config(path); });
  };
  write("configs/quickstart.yaml", "");
  write("binary.yaml", std::string("a\0b", 3));
  write("big.yaml", std::string((1 << 20) + 1, '#'));
  EXPECT_EQ(load("nowhere/x.yaml"), "nowhere/x.yaml: no such file");
  EXPECT_EQ(load("configs/quikstart.yaml"),
            "configs/quikstart.yaml: no such file; did you mean 'configs/quickstart.yaml'?");
  EXPECT_EQ(load("configs"), "configs: is a folder, but must be a YAML file");
  EXPECT_EQ(load("/proc/self/mem"), "/proc/self/mem: cannot be read; check its permissions");
  EXPECT_EQ(load("binary.yaml"), "binary.yaml: is binary, but must be a YAML file");
  EXPECT_EQ(load("big.yaml"), "big.yaml: is longer than 64 KiB, but must be a YAML file");
}

class FrameworkAliases : public ConfigFiles {};

TEST_F(FrameworkAliases, of_nanogpt_and_hugging_face_suggest_keys_in_files_and_overrides) {
  EXPECT_EQ(error("learning_rate: 3e-4\nmodel: {n_embd: 64, dropout: 0.1}\nblock_size: 64\n",
                  {"max_iters=20", "model.n_layer=2"}),
            "a.yaml:1:1: error: unknown key 'learning_rate'; it is optim.lr here\n"
            "a.yaml:2:9: error: unknown key 'model.n_embd'; it is model.d_model here\n"
            "a.yaml:2:21: error: unknown key 'model.dropout'; there is no dropout; leave it out\n"
            "a.yaml:3:1: error: unknown key 'block_size'; it is data.seq_len here\n"
            "--set max_iters=20: error: unknown key 'max_iters'; it is train.steps here\n"
            "--set model.n_layer=2: error: unknown key 'model.n_layer'; it is model.num_layers "
            "here");
}

TEST_F(FrameworkAliases, explain_differences) {
  EXPECT_EQ(error("train.epochs: 3\n"),
            "a.yaml:1:1: error: unknown key 'train.epochs'; it is train.steps here: give steps, "
            "not passes over the data");
  EXPECT_EQ(error("optimizer: {lr: 1}\n"),
            "a.yaml:1:1: error: unknown section 'optimizer'; it is optim here");
}

TEST_F(FrameworkAliases, a_known_name_in_another_section_is_found_too) {
  EXPECT_THAT(error("batch_size: 4\n"), HasSubstr("did you mean 'data.batch_size'?"));
  EXPECT_THAT(error("train: {batch_size: 4}\n"), HasSubstr("did you mean 'data.batch_size'?"));
}

TEST(FrameworkAliasTable, maps_names_that_are_not_keys_to_existing_keys) {
  std::set<std::string> names;
  for (const FrameworkAlias& foreign : framework_aliases()) {
    const std::string key(foreign.key);
    EXPECT_TRUE(names.insert(std::string(foreign.name) + (foreign.section ? "/" : "")).second)
        << foreign.name;
    EXPECT_FALSE(foreign.description().empty()) << foreign.name;
    if (foreign.section) {
      EXPECT_TRUE(std::ranges::any_of(fields(), [&](const Field& field) {
        return field.key.starts_with(key + ".");
      })) << key;
      continue;
    }
    EXPECT_TRUE(key.empty() || find_field(key) != nullptr) << key;
    // nanoGPT calls the length of a sequence block_size, which here is the size of sparse blocks.
    for (const Field& field : fields())
      EXPECT_FALSE(field.key.ends_with("." + std::string(foreign.name)) &&
                   field.key != "model.attention.block_size")
          << field.key;
  }
  EXPECT_EQ(names.size(), 33u);
}

class ConfigPercentages : public ConfigFiles {};

TEST_F(ConfigPercentages, warm_up_is_a_twentieth_of_the_steps_unless_it_is_given) {
  EXPECT_EQ(config("").optim.warmup_steps, 25);
  EXPECT_EQ(config("train.steps: 40\n").optim.warmup_steps, 2);
  EXPECT_EQ(config("train.steps: 1\n").optim.warmup_steps, 0);
  EXPECT_EQ(config("optim.warmup_steps: 7\n", {"train.steps=30"}).optim.warmup_steps, 7);
}

TEST_F(ConfigPercentages, the_last_rate_is_zero_or_a_fraction_of_the_peak_without_a_stray_digit) {
  EXPECT_EQ(config("").optim.min_lr, 0);
  EXPECT_EQ(config("optim: {lr: 3.0e-3, min_lr: 10%}\n").optim.min_lr, 3e-4);
  EXPECT_EQ(config("optim: {lr: 0.03, min_lr: 1%}\n").optim.min_lr, 3e-4);
}

TEST_F(ConfigPercentages, max_seq_len_is_the_seq_len_of_the_data_by_default) {
  EXPECT_EQ(config("data.seq_len: 512\n").model.max_seq_len, 512);
  EXPECT_EQ(config("data.seq_len: 64\nmodel.max_seq_len: 200%\n").model.max_seq_len, 128);
  EXPECT_THAT(error("model.max_seq_len: 50%\n"), HasSubstr("lower data.seq_len or raise"));
}

TEST_F(ConfigPercentages, a_percentage_refers_to_the_final_value) {
  write("base.yaml", "train.steps: 1000\noptim.warmup_steps: 5%\n");
  EXPECT_EQ(config("base: base.yaml\ntrain.steps: 200\n").optim.warmup_steps, 10);
  EXPECT_EQ(config("base: base.yaml\n", {"optim.warmup_steps=30"}).optim.warmup_steps, 30);
  EXPECT_EQ(config("optim.warmup_steps: 30\n", {"optim.warmup_steps=2%"}).optim.warmup_steps, 10);
}

TEST_F(ConfigPercentages, the_resolved_configuration_has_the_number_and_its_percentage_as_origin) {
  write("a.yaml", "train.steps: 40\noptim.min_lr: 5%\n");
  const ResolvedConfig resolved = load_config("a.yaml", {"model.max_seq_len=300"});
  EXPECT_THAT(to_yaml(resolved.config), HasSubstr("\n  warmup_steps: 2\n"));
  const std::string text = to_yaml_with_origins(resolved);
  EXPECT_THAT(text, HasSubstr("\n  warmup_steps: 2               # 5% of train.steps, default\n"));
  EXPECT_THAT(text, HasSubstr("\n  min_lr: 5.0e-05               # 5% of optim.lr, a.yaml:2\n"));
  EXPECT_THAT(text, HasSubstr("\n  max_seq_len: 300              # --set\n"));
}

TEST_F(ConfigPercentages, runs_of_a_sweep_resolve_percentages_separately) {
  const study::SweepConfig s = sweep(
      "optim.min_lr: 10%\nsweep: {lr: [0.01, 0.2], grid: {train.steps: [100, 300]}, arms: {a: "
      "}}\n");
  ASSERT_EQ(s.runs.size(), 4u);
  EXPECT_EQ(s.runs[0].config().optim.min_lr, 0.001);
  EXPECT_EQ(s.runs[0].config().optim.warmup_steps, 5);
  EXPECT_EQ(s.runs[3].config().optim.min_lr, 0.02);
  EXPECT_EQ(s.runs[3].config().optim.warmup_steps, 15);
}

TEST_F(ConfigPercentages, a_bad_or_too_large_percentage_is_an_error_at_its_location) {
  EXPECT_EQ(error("optim.warmup_steps: ten\n"),
            "a.yaml:1:21: error: optim.warmup_steps: expected an integer, or a fraction of "
            "train.steps such as 10%, got 'ten'");
  EXPECT_THAT(error("optim.min_lr: -1%\n"),
              HasSubstr("expected a number, or a fraction of optim.lr"));
  EXPECT_THAT(error("train.steps: 10%\n"), HasSubstr("expected an integer, got '10%'"));
  EXPECT_EQ(error("model.max_seq_len: 0%\n"),
            "a.yaml:1:1: error: model.max_seq_len: 0% of data.seq_len (which is 256) is 0, out of "
            "range; need in [1, 1048576]");
  EXPECT_EQ(error("train.steps: 10\n", {"optim.warmup_steps=150%"}),
            "--set optim.warmup_steps=150%: error: optim.warmup_steps: warm-up takes 15 steps, but "
            "the run has 10; lower optim.warmup_steps, for example to 10%, or raise train.steps");
}

TEST_F(ConfigPercentages, a_percentage_of_an_invalid_value_causes_no_second_error) {
  EXPECT_EQ(error("train.steps: 0\n"),
            "a.yaml:1:14: error: train.steps: 0 is out of range; need in [1, 1000000000000]");
}

TEST(ConfigFields, defaults_of_structs_equal_the_percentages_in_the_registry) {
  int shares = 0;
  for (const Field& field : fields()) {
    if (field.spec.constraint.share_of.empty()) continue;
    ++shares;
    const ConfigValue resolved = field.get(config_from_yaml("{}", "nothing.yaml"));
    EXPECT_EQ(field.get(Config{}), resolved) << field.key;
  }
  EXPECT_EQ(shares, 3);
}

}  // namespace
}  // namespace difftape::run
