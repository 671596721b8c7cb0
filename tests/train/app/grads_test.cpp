// `difftape dump-grads`: loss, logits and gradients of a batch in a file.
#include "train/run/loop/grads.h"

#include "tests/train/run/loop/tiny.h"
#include "train/run/config/reader.h"
#include "train/run/records/h5.h"

namespace difftape::app {
namespace {

struct Grads : testing::Test {
  Grads() { batch({2, 5}, {1, 2, 3, 4, 5, 250, 251, 252, 253, 254}); }

  /// Writes tokens.h5.
  void batch(const Shape& shape, const std::vector<std::int32_t>& tokens,
             const std::string& name = "tokens") {
    run::h5::File file = run::h5::File::create(project / "tokens.h5");
    file.write<std::int32_t>(name, shape, tokens);
    file.save();
  }
  Outcome grads(const std::string& model, Words more = {}, const test::Conditions& with = {}) {
    return project.difftape(
        joined({"dump-grads", model, "--batch", "tokens.h5", "--out", "grads.h5"}, more), with);
  }
  std::string error(int exit, const std::string& model = "tiny.yaml", Words more = {}) {
    const std::string outcome = test::error(exit, grads(model, std::move(more)));
    EXPECT_FALSE(fs::exists(project / "grads.h5"));
    return outcome;
  }
  run::h5::File written() { return run::h5::File::open(project / "grads.h5"); }

  TinyProject project{"diff_v2"};
};

TEST_F(Grads, of_a_configuration_contain_loss_logits_weights_and_every_gradient) {
  EXPECT_THAT(test::output(grads("tiny.yaml")),
              MatchesRegex("loss 5\\.[0-9]+ nats per byte, [0-9]+ "
                           "gradients: grads.h5\n"));
  const run::h5::File file = written();
  EXPECT_EQ(file.string_attribute("/", "config_yaml"), run::to_yaml(project.config));
  EXPECT_EQ(file.shape("loss"), Shape{});
  EXPECT_EQ(file.shape("logits"), (Shape{2, 4, 256}));
  EXPECT_EQ(file.read<std::int32_t>("tokens"),
            (std::vector<std::int32_t>{1, 2, 3, 4, 5, 250, 251, 252, 253, 254}));
  LanguageModel model(project.config.model);
  model.parameters().initialize(project.config.run.seed);
  ASSERT_EQ(file.children("grad").size(), model.parameters().size());
  for (const Parameter& p : model.parameters()) {
    EXPECT_EQ(file.shape("grad/" + p.name), p.shape);
    EXPECT_TRUE(std::ranges::equal(file.read<real>("model/" + p.name), p.value.values()));
  }
}

TEST_F(Grads, repeat_the_loss_from_the_weights_and_logits_in_the_file) {
  ASSERT_EQ(grads("tiny.yaml").exit, 0);
  const auto logits = written().read<double>("logits");
  const auto tokens = written().read<std::int32_t>("tokens");
  double total = 0;
  for (size_t i = 0; i < 8; ++i) {
    const auto target = static_cast<size_t>(tokens[i / 4 * 5 + i % 4 + 1]);
    double sum = 0;
    for (size_t v = 0; v < 256; ++v) sum += std::exp(logits[i * 256 + v]);
    total += std::log(sum) - logits[i * 256 + target];
  }
  EXPECT_NEAR(written().read<double>("loss")[0], total / 8, 1e-5);
}

TEST_F(Grads, count_only_the_targets_that_are_scored) {
  const auto with_scored = [this](const Shape& shape, const std::vector<std::int32_t>& scored) {
    run::h5::File file = run::h5::File::create(project / "tokens.h5");
    file.write<std::int32_t>("tokens", {2, 5},
                             std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 0});
    file.write<std::int32_t>("scored", shape, scored);
    file.save();
  };
  with_scored({2, 4}, {0, 0, 0, 0, 0, 1, 0, 0});
  ASSERT_EQ(grads("tiny.yaml").exit, 0);
  const auto logits = written().read<double>("logits");
  double sum = 0;
  for (size_t v = 0; v < 256; ++v) sum += std::exp(logits[5 * 256 + v]);
  EXPECT_NEAR(written().read<double>("loss")[0], std::log(sum) - logits[5 * 256 + 8], 1e-5);
  EXPECT_EQ(written().read<std::int32_t>("scored")[5], 1);
  fs::remove(project / "grads.h5");
  with_scored({8}, {1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(
      error(65),
      "difftape: tokens.h5: /scored has shape (8), but must be (2, 4), one number per target; "
      "reshape it\n");
  with_scored({2, 4}, {0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_THAT(error(65), HasSubstr("all 8 targets are ignored"));
}

TEST_F(Grads, of_a_checkpoint_use_its_weights_and_its_configuration) {
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  ASSERT_EQ(grads("tiny.yaml").exit, 0);
  const double initial = written().read<double>("loss")[0];
  ASSERT_EQ(grads("run").exit, 0);
  const auto of_run = contents(project / "grads.h5");
  EXPECT_NE(written().read<double>("loss")[0], initial);
  const run::h5::File checkpoint = run::h5::File::open(run::find_checkpoint(project / "run"));
  for (const std::string& name : checkpoint.children("model"))
    EXPECT_EQ(written().read<real>("model/" + name), checkpoint.read<real>("model/" + name));
  ASSERT_EQ(grads("run/checkpoints/step-00000012.h5").exit, 0);
  EXPECT_EQ(contents(project / "grads.h5"), of_run);
}

TEST_F(Grads, in_double_precision_agree_with_single) {
  ASSERT_EQ(grads("tiny.yaml").exit, 0);
  const auto single = written().read<double>("grad/lm_head.weight");
  // The same weights: a checkpoint of either precision can be read by both programs.
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  ASSERT_EQ(grads("run").exit, 0);
  const double loss = written().read<double>("loss")[0];
  const auto gradient = written().read<double>("grad/lm_head.weight");
  ASSERT_EQ(grads("run", {}, {.program = DIFFTAPE_TEST_PROGRAM_F64}).exit, 0);
  EXPECT_NEAR(written().read<double>("loss")[0], loss, 1e-5 * loss);
  const auto exact = written().read<double>("grad/lm_head.weight");
  double top = 0, worst = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    top = std::max(top, std::abs(exact[i]));
    worst = std::max(worst, std::abs(exact[i] - gradient[i]));
  }
  EXPECT_GT(top, 0);
  EXPECT_LT(worst, 1e-5 * top);
  EXPECT_GT(worst, 0) << "both programs are the same";
  EXPECT_NE(single, gradient);
}

TEST_F(Grads, tokens_out_of_range_are_named) {
  batch({2, 3}, {1, 2, 3, 4, 256, 6});
  EXPECT_EQ(
      error(65),
      "difftape: --batch: /tokens[1, 1] is 256, but must be 0 to 255, because model.vocab_size is "
      "256; use tokens of this model\n");
  batch({1, 4}, {1, 2, 3, 999});
  EXPECT_THAT(error(65), HasSubstr("/tokens[0, 3] is 999, but")) << "the last is only a target";
  batch({1, 4}, {-1, 2, 3, 4});
  EXPECT_THAT(error(65), HasSubstr("/tokens[0, 0] is -1, but"));
}

TEST_F(Grads, tokens_of_more_than_32_bits_are_named_and_fractions_rejected) {
  const auto stored = [&](const auto& values) {
    run::h5::File file = run::h5::File::create(project / "tokens.h5");
    file.write<typename std::decay_t<decltype(values)>::value_type>("tokens", {1, 3}, values);
    file.save();
  };
  stored(std::vector<std::int64_t>{1, 5'000'000'000, 2});
  EXPECT_THAT(error(65), HasSubstr("/tokens[0, 1] is 5000000000, but must fit into 32 bits"));
  stored(std::vector<std::int64_t>{1, 2, std::numeric_limits<std::int64_t>::max()});
  EXPECT_THAT(error(65), HasSubstr("/tokens[0, 2] is 9223372036854775807 or more, but"));
  stored(std::vector<float>{1, 1.5F, 2});
  EXPECT_THAT(error(65),
              HasSubstr("tokens.h5: tokens holds floating-point numbers, but must hold"));
}

TEST_F(Grads, tokens_of_a_wrong_shape_state_the_shape_and_the_rule) {
  batch({4}, {1, 2, 3, 4});
  EXPECT_EQ(
      error(65),
      "difftape: tokens.h5: /tokens has shape (4), but must be (B, T + 1): B rows of T inputs "
      "and the last target, B and T at least 1; reshape it\n");
  batch({4, 1}, {1, 2, 3, 4});
  EXPECT_THAT(error(65), HasSubstr("/tokens has shape (4, 1), but must be (B, T + 1)"));
  batch({1, 18}, std::vector<std::int32_t>(18, 1));
  EXPECT_EQ(error(65),
            "difftape: --batch: /tokens has 18 tokens per row, but must have at most "
            "model.max_seq_len + 1, "
            "with model.max_seq_len 16; shorten the rows\n");
}

TEST_F(Grads, a_missing_or_invalid_batch_is_named) {
  batch({1, 4}, {1, 2, 3, 4}, "words");
  EXPECT_THAT(error(65), HasSubstr("difftape: tokens.h5: cannot read tokens: "));
  put(project / "tokens.h5", "hello");
  EXPECT_EQ(error(65),
            "difftape: tokens.h5: is not an HDF5 file, but must be one; restore the "
            "file or write it again\n");
  fs::remove(project / "tokens.h5");
  EXPECT_EQ(error(66), "difftape: cannot read tokens.h5: No such file or directory\n");
}

TEST_F(Grads, a_missing_or_invalid_model_is_named) {
  EXPECT_EQ(error(66, "nowhere.yaml"), "difftape: nowhere.yaml: no such file\n");
  EXPECT_EQ(error(66, "gone.h5"),
            "difftape: gone.h5: no checkpoint found; give a .h5 file, or a run directory with "
            "checkpoints/\n");
  EXPECT_THAT(error(65, "tokens.h5"), HasSubstr("tokens.h5: is not a difftape checkpoint"));
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_EQ(error(64, "run", {"--set", "run.seed=2"}),
            "difftape: --set run.seed=2: is fixed by the checkpoint; only data.*, train.*, "
            "model.max_seq_len, model.rope_theta and model.rope_scaling.* can be set\n");
  EXPECT_THAT(error(64, "run", {"--set", "model={norm_eps: 1}"}), HasSubstr("is fixed by"));
  EXPECT_THAT(error(78, "run", {"--set", "dat.path=x"}), HasSubstr("unknown key 'dat.path'"));
}

TEST_F(Grads, out_is_never_an_input_and_never_another_kind_of_file) {
  const std::string tokens = contents(project / "tokens.h5");
  const Outcome input = grads("tiny.yaml", {"--out", "./tokens.h5"});
  EXPECT_EQ(input.exit, 64) << "given twice";
  EXPECT_EQ(test::error(74, project.difftape({"dump-grads", "tiny.yaml", "--batch", "tokens.h5",
                                              "--out", "./tokens.h5"})),
            "difftape: ./tokens.h5 already exists and is an input of this command; choose another "
            "name with --out\n");
  EXPECT_EQ(contents(project / "tokens.h5"), tokens);
  EXPECT_EQ(test::error(64, project.difftape({"dump-grads", "tiny.yaml", "--batch", "tokens.h5",
                                              "--out", "text.txt"})),
            "difftape: --out: text.txt does not end in .h5; choose a name that does\n");
  put(project / "mine.h5", tokens);
  const Outcome mine =
      project.difftape({"dump-grads", "tiny.yaml", "--batch", "tokens.h5", "--out", "mine.h5"});
  EXPECT_EQ(mine.exit, 74);
  EXPECT_THAT(mine.err, HasSubstr("mine.h5 already exists and is not an output of dump-grads"));
  EXPECT_EQ(contents(project / "mine.h5"), tokens);
  EXPECT_EQ(test::error(74, project.difftape({"dump-grads", "tiny.yaml", "--batch", "tokens.h5",
                                              "--out", "gone/grads.h5"})),
            "difftape: cannot write gone/grads.h5: gone is not an existing directory; create it "
            "first\n");
}

}  // namespace
}  // namespace difftape::app
