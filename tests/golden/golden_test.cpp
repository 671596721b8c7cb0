// Loss, logits and every gradient against an independent PyTorch model in double precision. The
// reference files hold weights and results; README.md says how they were made.

#include "core/gemm_backend.h"
#include "tests/support/scratch.h"
#include "tests/support/test.h"
#include "train/run/config/reader.h"
#include "train/run/loop/grads.h"
#include "train/run/records/h5.h"
#include "train/system/text_table.h"

namespace difftape {
namespace {

/// Relative to the largest magnitude.
constexpr double kTolerance = sizeof(real) == 8 ? 1e-12 : 1e-5;

fs::path path_of(const std::string& name) {
  return fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "tests/golden" / (name + ".h5");
}

/// Largest |ours - theirs| over the largest |theirs|, in double: the reference is not rounded.
double error_of(const Tensor& ours, const std::vector<double>& theirs) {
  EXPECT_EQ(ours.size(), static_cast<Index>(theirs.size()));
  double worst = 0, top = 0;
  for (size_t i = 0; i < theirs.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(ours.values()[i]) - theirs[i]));
    top = std::max(top, std::abs(theirs[i]));
  }
  EXPECT_GT(top, 0);
  EXPECT_TRUE(ours.all_finite());
  return worst / top;
}

/// A golden case: a model with the weights of its file.
struct Golden : testing::TestWithParam<const char*> {
  const fs::path path = path_of(GetParam());
  const run::h5::File file = run::h5::File::open(path);
  const run::Config config =
      run::config_from_yaml(file.string_attribute("/", "config_yaml"), path.string());
  LanguageModel model{config.model};

  void SetUp() override {
    model.parameters().initialize(1);
    ASSERT_EQ(file.children("model").size(), model.parameters().size());
    for (Parameter& parameter : model.parameters()) {
      ASSERT_EQ(file.shape("model/" + parameter.name), parameter.shape) << parameter.name;
      file.read<real>("model/" + parameter.name, parameter.value.values());
    }
  }
  run::LossAndLogits computed(Precision precision) {
    return run::forward_backward(model, run::read_token_batch(path), config.data.eos_token_id,
                                 precision);
  }
  /// Calls f with the gradients of a parameter, ours and theirs.
  template <class F>
  void for_each_gradient(F&& f) {
    for (const Parameter& parameter : model.parameters())
      if (parameter.role != Role::state) f(parameter, file.read<double>("grad/" + parameter.name));
  }
};

TEST_P(Golden, loss_logits_and_every_gradient_agree_with_pytorch) {
  const run::LossAndLogits result = computed(Precision::full);
  EXPECT_LE(error_of(Tensor::scalar(result.loss), file.read<double>("loss")), kTolerance);
  EXPECT_LE(error_of(result.logits, file.read<double>("logits")), kTolerance);
  double worst = 0;
  for_each_gradient([&](const Parameter& parameter, const std::vector<double>& theirs) {
    const double error = error_of(parameter.grad, theirs);
    EXPECT_LE(error, kTolerance) << parameter.name;
    worst = std::max(worst, error);
  });
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.role != Role::state) continue;
    EXPECT_TRUE(std::ranges::all_of(parameter.grad.values(), [](real g) { return g == 0; }));
  }
  RecordProperty("worst_gradient_error", fmt::format("{:.2e}", worst));
}

#ifndef DIFFTAPE_F64  // doubles are not rounded to bfloat16
/// A relative error in the Euclidean norm over tensors.
struct EuclideanError {
  double difference = 0, reference = 0;
  void add(const Tensor& ours, const std::vector<double>& theirs) {
    ASSERT_EQ(ours.size(), std::ssize(theirs));
    for (size_t i = 0; i < theirs.size(); ++i) {
      difference += std::pow(static_cast<double>(ours.values()[i]) - theirs[i], 2);
      reference += theirs[i] * theirs[i];
    }
  }
  double relative() const { return std::sqrt(difference / reference); }
};

/// The errors of PyTorch's autocast in one case (autocast.py).
struct Autocast {
  double logits, gradients;
};
Autocast autocast_of(const std::string& name) {
  for (const auto& row :
       system::read_csv(test::contents(path_of(name).replace_filename("autocast.csv"))))
    if (row[0] == name) return {std::stod(row[1]), std::stod(row[2])};
  ADD_FAILURE() << name << " is not in autocast.csv";
  return {};
}

TEST_P(Golden, in_bfloat16_logits_and_gradients_are_as_exact_as_autocast_of_pytorch) {
  const Autocast theirs = autocast_of(GetParam());
  for (const Precision precision : {Precision::bf16_emulated, Precision::bf16}) {
    if (!unsupported_reason(precision).empty()) continue;
    // The largest error is 0.98 of autocast's. Without fused multiply-add other values are rounded.
    const double most = unsupported_reason(Engine::portable).empty() ? 1 : 1.1;
    EuclideanError logits, gradients;
    logits.add(computed(precision).logits, file.read<double>("logits"));
    for_each_gradient([&](const Parameter& parameter, const std::vector<double>& reference) {
      gradients.add(parameter.grad, reference);
    });
    EXPECT_LE(logits.relative(), most * theirs.logits);
    EXPECT_LE(gradients.relative(), most * theirs.gradients);
    EXPECT_GT(gradients.relative(), 0.01 * theirs.gradients);  // it does round
    RecordProperty(fmt::format("gradient_error_over_autocast_{}", to_string(precision)),
                   fmt::format("{:.2f}", gradients.relative() / theirs.gradients));
  }
}
#endif

INSTANTIATE_TEST_SUITE_P(
    PyTorch, Golden,
    testing::Values(
        "softmax_mha", "softmax_gqa", "softmax_tied", "diff_v1_mha", "diff_v1_gqa", "diff_v2_mha",
        "diff_v2_gqa", "diff_v2_mqa", "softmax_2h_gqa", "softmax1_mha", "sink_gqa", "gated_mha",
        "gated_head_mqa", "v2_split_half_gqa", "v2_lambda_raw", "v2_lambda_none", "v1_no_subln",
        "v1_lambda_init_constant", "v1_lambda_sigmoid_gqa", "v2_sink_gqa", "v2_exponential_subln",
        "v2_qk_norm_no_rope", "v2_window_gqa", "v1_packed_gqa",
        "v1_sink_gate_qk_norm_packed_window", "softmax_window_packed", "v2_split_half_sink_packed",
        "softmax_softcaps_gqa", "v1_embedding_norm_z_loss", "v2_all_remedies_sink_packed",
        "v2_yarn_mqa", "v1_ntk", "softmax_linear", "moe_mixtral", "moe_qwen_v1", "moe_deepseek_v2",
        "softmax_blocks_gqa", "v1_blocks_separately", "v2_blocks_gqa_packed",
        "v2_split_half_sink_blocks_separately", "yoco_v1_qk_norm_packed", "yoco_v2_sink_gate_mqa"),
    [](const auto& golden) { return std::string(golden.param); });

}  // namespace
}  // namespace difftape
