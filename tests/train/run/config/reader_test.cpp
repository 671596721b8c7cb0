#include "train/run/config/reader.h"

#include "tests/train/run/config/config_files.h"

namespace difftape::run {
namespace {

using ConfigReader = ConfigFiles;

std::string here(const std::string& path) {
  return (std::filesystem::current_path() / path).string();
}

TEST_F(ConfigReader, an_empty_file_is_the_defaults) {
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

TEST_F(ConfigReader, a_single_path_may_stand_alone) {
  EXPECT_EQ(config("data.path: a.txt\n").data.path, std::vector<std::string>{here("a.txt")});
}

TEST_F(ConfigReader, paths_are_seen_from_the_file_that_says_them_and_become_absolute) {
  write("deep/base.yaml", "data.path: [../a.txt, texts/*.txt, /b.txt, ~/c.txt]\n");
  EXPECT_EQ(config("base: deep/base.yaml\n").data.path,
            (std::vector<std::string>{here("a.txt"), here("deep/texts/*.txt"), "/b.txt",
                                      std::string(std::getenv("HOME")) + "/c.txt"}));
  EXPECT_EQ(load_config("deep/base.yaml", {"data.path=a.txt"}).config.data.path,
            std::vector<std::string>{here("a.txt")})
      << "on the command line they are seen from the working directory";
  write("d[1]/c.yaml", "data.path: ['*.txt', e.txt]\n");
  EXPECT_EQ(load_config("d[1]/c.yaml").config.data.path,
            (std::vector<std::string>{here("d\\[1]/*.txt"), here("d[1]/e.txt")}))
      << "of a pattern the folder stands for itself";
  write("run/env.json", "{}");
  write("run/config.yaml", "data.path: a.txt\ntrain.init_from: /runs/old\n");
  EXPECT_EQ(load_config("run").config.data.path, std::vector<std::string>{"a.txt"})
      << "those of a run stay as they are";
  write("own/config.yaml", "data.path: a.txt\n");
  EXPECT_EQ(load_config("own").config.data.path, std::vector<std::string>{here("own/a.txt")})
      << "a folder that is no run";
  EXPECT_EQ(config("data.path: []\ntrain.init_from: \"\"\n").train.init_from, "");
}

TEST_F(ConfigReader, numbers_keep_every_bit_and_whole_numbers_serve_as_doubles) {
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

TEST_F(ConfigReader, a_base_reached_twice_applies_once_at_its_first_place) {
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

TEST_F(ConfigReader, every_value_knows_where_it_came_from) {
  write("base/b.yaml", "model: {d_ff: 8,\n        d_model: 64}\n");
  write("a.yaml", "base: base/b.yaml\nmodel:\n  d_ff: 9\n");
  const ResolvedConfig r = load_config("a.yaml", {"optim.lr=0.5"});
  EXPECT_EQ(r.origin("model.d_ff").location.str(), "a.yaml:3:3");
  EXPECT_EQ(r.origin("model.d_model").location.origin(), "base/b.yaml:2");
  EXPECT_EQ(r.origin("optim.lr").location.origin(), "--set");
  EXPECT_EQ(r.origin("optim.lr").location.str(), "--set optim.lr=0.5");
  EXPECT_EQ(r.origin("run.seed").location.origin(), "default");
}

TEST_F(ConfigReader, embedded_text_is_read_as_strictly_as_a_file_but_has_no_bases) {
  EXPECT_EQ(config_from_yaml("model: {d_ff: 12}\n", "step-1.h5").model.d_ff, 12);
  EXPECT_EQ(
      message(system::Exit::config, [] { config_from_yaml("base: x\nfoo: 1\n", "step-1.h5"); }),
      "step-1.h5:1:1: error: base: only a configuration file can name its bases\n"
      "step-1.h5:2:1: error: unknown key 'foo'; 'difftape config keys' lists all keys");
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
  EXPECT_EQ(load("configs"), "configs: is a folder; need a YAML file");
  EXPECT_EQ(load("/proc/self/mem"), "/proc/self/mem: cannot be read; check its permissions");
  EXPECT_EQ(load("binary.yaml"), "binary.yaml: is not text; need a YAML file");
  EXPECT_EQ(load("big.yaml"), "big.yaml: longer than 64 KiB; need a YAML file");
}

}  // namespace
}  // namespace difftape::run
