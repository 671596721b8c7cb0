// Training with operands of products rounded to bfloat16.
#include "tests/support/threads.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/records/metrics.h"

namespace difftape::run {
namespace {

using test::last_checkpoint;
using test::measured;
using test::TinyProject;

/// The kinds that differ in how their products are made.
class Precisions : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string unsupported = unsupported_reason(from_string<Precision>(GetParam()).value());
    if (!unsupported.empty()) GTEST_SKIP() << unsupported;
  }
};

/// A project of one kind and precision.
struct Project : TinyProject {
  Project(const std::string& kind, const std::string& precision) : TinyProject(kind) {
    config = test::wider(config);
    config.train.steps = 4;
    config.train.precision = from_string<Precision>(precision).value();
  }
};

double last_loss(const std::filesystem::path& run) {
  const std::string text = test::contents(run / "metrics.jsonl");
  const size_t line = text.rfind('\n', text.size() - 2) + 1;
  return nlohmann::json::parse(text.substr(line))["train/loss"];
}

TEST_P(Precisions, give_the_same_bits_whatever_the_threads_and_whatever_is_recomputed) {
  for (const std::string kind : {"softmax", "diff_v1", "diff_v2"}) {
    Project tiny(kind, GetParam());
    {
      const test::Threads one(1);
      ASSERT_EQ(tiny.train("1"), system::Exit::ok);
    }
    const test::Threads two(2);
    ASSERT_EQ(tiny.train("2"), system::Exit::ok);
    tiny.config.train.activation_checkpointing = ActivationCheckpointing::blocks;
    ASSERT_EQ(tiny.train("recomputed"), system::Exit::ok);
    EXPECT_EQ(measured(tiny / "1"), measured(tiny / "2"));
    EXPECT_EQ(last_checkpoint(tiny / "1"), last_checkpoint(tiny / "2"));
    EXPECT_EQ(measured(tiny / "1"), measured(tiny / "recomputed"));
  }
}

TEST_P(Precisions, change_the_loss_but_little) {
  Project tiny("diff_v2", GetParam());
  tiny.config.train.steps = 12;
  ASSERT_EQ(tiny.train("rounded"), system::Exit::ok);
  tiny.config.train.precision = Precision::full;
  ASSERT_EQ(tiny.train("full"), system::Exit::ok);
  const double rounded = last_loss(tiny / "rounded"), full = last_loss(tiny / "full");
  EXPECT_NE(rounded, full);
  EXPECT_NEAR(rounded, full, 0.02 * full);
}

INSTANTIATE_TEST_SUITE_P(Words, Precisions, testing::Values("bf16", "bf16_emulated"),
                         [](const auto& word) { return word.param; });

TEST(Precision, is_refused_by_the_program_of_doubles_with_what_to_write_instead) {
  const TinyProject tiny;
  const auto outcome =
      tiny.difftape({"train", "tiny.yaml", "--set", "train.precision=bf16_emulated"},
                    {.program = DIFFTAPE_TEST_PROGRAM_F64});
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.err,
              testing::HasSubstr("train.precision: precision bf16_emulated cannot be had here"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("use full"));
}

}  // namespace
}  // namespace difftape::run
