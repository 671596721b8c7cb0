// Tests when diagnostics run, their metrics and files, and that they do not affect training.
#include "tests/train/run/loop/tiny.h"
#include "train/run/records/attention_maps.h"
#include "train/run/records/h5.h"
#include "train/run/records/metrics.h"

namespace difftape::run {
namespace {

using test::steps_with;

bool is_diagnostic(const std::string& name) {
  return name.starts_with("attn/") || name.starts_with("act/") ||
         name.starts_with("optim/update_ratio/");
}

/// Returns the logged lines of a run without diagnostics and throughput.
std::string training_of(const fs::path& run) {
  std::string text;
  for (const nlohmann::ordered_json& line : metrics_lines(run)) {
    for (const auto& [name, value] : line.items())
      if (!is_diagnostic(name) && !name.starts_with("throughput/")) text += name + value.dump();
  }
  return text;
}

struct Diagnosed : testing::TestWithParam<std::string> {};

TEST_P(Diagnosed, training_has_the_bits_of_training_without_diagnostics) {
  TinyProject project(GetParam());
  project.config.train.precision = Precision::bf16_emulated;
  for (const Index every : {1, 0}) {
    project.config.log.diagnostics_interval = every;
    ASSERT_EQ(project.train(std::to_string(every)), system::Exit::ok);
  }
  EXPECT_EQ(training_of(project / "1"), training_of(project / "0"));
  const LanguageModel model(project.config.model);
  const auto tensors = [&](const char* run) {
    const h5::File file = h5::File::open(find_checkpoint(project / run));
    std::vector<std::vector<double>> all;
    for (const Parameter& p : model.parameters()) {
      all.push_back(file.read<double>("model/" + p.name));
      all.push_back(file.read<double>("optim/" + p.name + "/m"));
      all.push_back(file.read<double>("optim/" + p.name + "/v"));
    }
    return all;
  };
  EXPECT_EQ(tensors("1"), tensors("0")) << "the files differ in the interval that they record";
  EXPECT_EQ(steps_with(project / "1", "attn/context_rms/0").size(), 12u);
  EXPECT_EQ(steps_with(project / "0", "attn/context_rms/1"), std::vector<Index>{12});
  EXPECT_EQ(metrics_lines(project / "1").back()["attn/entropy/1"],
            metrics_lines(project / "0").back()["attn/entropy/1"]);
}

INSTANTIATE_TEST_SUITE_P(Attention, Diagnosed, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

TEST(Diagnostics, run_at_the_interval_and_at_the_end_for_every_layer_and_parameter) {
  TinyProject project("diff_v2");
  project.config.log.diagnostics_interval = 5;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const MetricsTable table = read_metrics(project / "run/metrics.jsonl");
  for (const char* name : {"attn/context_rms/0", "attn/lambda/1", "act/max/1",
                           "optim/update_ratio/model.layers.1.self_attn.lambda_proj.weight"}) {
    ASSERT_TRUE(table.columns.contains(name)) << name;
    EXPECT_EQ(steps_with(project / "run", name), (std::vector<Index>{1, 5, 10, 12})) << name;
    EXPECT_TRUE(std::isfinite(table.columns.at(name).values().back())) << name;
  }
  EXPECT_FALSE(table.columns.contains("attn/context_rms/2"));
  const AttentionMaps maps = read_attention_maps(project / "run/attention_maps.h5");
  EXPECT_EQ(maps.step, 12);
  ASSERT_EQ(maps.layers.size(), 2u);
  EXPECT_EQ(maps.layers[1].shape(), (Shape{2, 3, 16, 16}));
}

TEST(Diagnostics, the_update_ratio_compares_weights_before_and_after_the_step) {
  TinyProject project;
  project.config.log.diagnostics_interval = 1;
  project.config.train.checkpoint_interval = 1;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const auto weights = [&](int step) {
    return h5::File::open(project / fmt::format("run/checkpoints/step-{:08}.h5", step))
        .read<double>("model/lm_head.weight");
  };
  const std::vector<double> before = weights(11), after = weights(12);
  double change = 0, size = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    change += (after[i] - before[i]) * (after[i] - before[i]);
    size += before[i] * before[i];
  }
  ASSERT_GT(change, 0);
  EXPECT_NEAR(
      metrics_lines(project / "run").back()["optim/update_ratio/lm_head.weight"].get<double>(),
      std::sqrt(change / size), 1e-12);
}

TEST(Diagnostics, on_other_sequences_do_not_change_training) {
  TinyProject project;
  ASSERT_EQ(project.train("two"), system::Exit::ok);
  project.config.log.diagnostics_sequences = 5;  // more than the rows of a batch
  ASSERT_EQ(project.train("five"), system::Exit::ok);
  EXPECT_EQ(training_of(project / "two"), training_of(project / "five"));
  EXPECT_NE(metrics_lines(project / "two").back()["attn/entropy/0"],
            metrics_lines(project / "five").back()["attn/entropy/0"]);
}

TEST(Diagnostics, of_a_diverged_run_measure_its_last_model) {
  TinyProject project;
  project.config = test::explosive(project.config);
  ASSERT_EQ(project.train("run"), system::Exit::diverged);
  const auto last = metrics_lines(project / "run").back();
  EXPECT_FALSE(last.contains("optim/update_ratio/lm_head.weight")) << "there was no update";
  ASSERT_TRUE(last.contains("act/max/1"));
  EXPECT_TRUE(last["act/max/1"].is_string() || last["act/max/1"].get<double>() > 1e6);
  EXPECT_EQ(read_attention_maps(project / "run/attention_maps.h5").step, last["step"]);
}

TEST(Diagnostics, of_a_resumed_run_keep_the_earlier_maps) {
  TinyProject project("diff_v1");
  project.config.log.diagnostics_interval = 5;
  project.config.train.checkpoint_interval = 6;
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  test::cut_after(6, project / "whole", project / "cut");
  ASSERT_EQ(project.train("cut", true), system::Exit::ok);
  test::expect_the_same_run(project / "cut", project / "whole");
}

TEST(Diagnostics, have_answer_and_noise_attention_for_needles_only) {
  TinyProject project("diff_v2");
  ASSERT_EQ(project.train("text"), system::Exit::ok);
  EXPECT_FALSE(metrics_lines(project / "text").back().contains("attn/answer/0"));
  project.config.data.type = DataKind::needles;
  project.config.data.path.clear();
  project.config.data.needles.facts = {2};
  project.config.data.needles.queries = {1};
  project.config.data.seq_len = project.config.model.max_seq_len = 64;
  ASSERT_EQ(project.train("needles"), system::Exit::ok);
  const auto last = metrics_lines(project / "needles").back();
  for (const char* layer : {"0", "1"}) {
    const double answer = last.at(fmt::format("attn/answer/{}", layer));
    const double noise = last.at(fmt::format("attn/noise/{}", layer));
    EXPECT_GT(answer, 0);
    EXPECT_GT(noise, answer) << "nothing is learned in 12 steps";
    EXPECT_LT(answer + noise, 1) << "the question itself is neither";
  }
}

}  // namespace
}  // namespace difftape::run
