// Every metric of train/run/diagnostics against PyTorch, from the same tensors: diagnostics.py.
#include "tests/support/test.h"
#include "train/run/diagnostics/attention_measures.h"
#include "train/run/diagnostics/diagnose.h"
#include "train/run/records/h5.h"

namespace difftape {
namespace {

constexpr double kMeasuresTolerance = sizeof(real) == 8 ? 1e-12 : 1e-6;  // relative
constexpr double kMapTolerance = 1e-7;  // the files hold maps in single precision

run::h5::File open(const char* name) {
  return run::h5::File::open(fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "tests/golden/diagnostics" /
                             (std::string(name) + ".h5"));
}

Tensor tensor(const run::h5::File& file, const char* name) {
  if (!file.exists(name)) return {};
  Tensor x = Tensor::empty(file.shape(name));
  file.read<real>(name, x.values());
  return x;
}

AttentionView view_of(const run::h5::File& file) {
  AttentionView view;
  const Index heads = file.int_attribute("/", "heads"), kv = file.int_attribute("/", "kv_heads");
  const std::string wiring = file.string_attribute("/", "wiring");
  view.mapping = wiring == "single"  ? HeadMapping::standard(heads, kv)
                 : wiring == "pairs" ? HeadMapping::paired(heads, kv)
                                     : HeadMapping::doubled(heads, kv, wiring == "split_half");
  view.q = tensor(file, "q");
  view.k = tensor(file, "k");
  view.v = tensor(file, "v");
  view.lambda = tensor(file, "lambda");
  view.sinks = tensor(file, "sinks");
  view.context = tensor(file, "context");
  view.scale = attention_scale(view.q.shape().last());
  view.visible.sliding_window = file.int_attribute("/", "window");
  if (file.exists("blocks")) {
    const auto blocks = file.read<std::int32_t>("blocks");
    view.blocks = {blocks[0], blocks[1], blocks[2] != 0};
  }
  view.gated = file.int_attribute("/", "gated") != 0;
  if (file.exists("document_starts")) {
    view.visible.document_offsets = std::make_shared<const std::vector<std::int32_t>>(
        file.read<std::int32_t>("document_starts"));
  }
  return view;
}

struct GoldenDiagnostics : testing::TestWithParam<const char*> {};

TEST_P(GoldenDiagnostics, every_metric_agrees_with_pytorch) {
  const run::h5::File file = open(GetParam());
  run::Metrics metrics = run::measure_attention(view_of(file)).metrics;
  for (auto& metric : run::activation_metrics(tensor(file, "hidden"))) metrics.push_back(metric);
  EXPECT_EQ(static_cast<std::int64_t>(metrics.size()), file.int_attribute("/", "metrics"));
  for (const auto& [name, value] : metrics) {
    const double expected = file.read<double>("expected/" + name).at(0);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << name;
    } else {
      EXPECT_NEAR(value, expected, kMeasuresTolerance * std::max(1e-3, std::abs(expected))) << name;
    }
  }
}

TEST_P(GoldenDiagnostics, the_maps_agree_with_pytorch) {
  const run::h5::File file = open(GetParam());
  const Tensor maps = run::measure_attention(view_of(file)).first_maps;
  ASSERT_EQ(maps.shape(), file.shape("maps"));
  const auto expected = file.read<double>("maps");
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(maps.values()[i]), expected[i], kMapTolerance) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenDiagnostics,
                         testing::Values("softmax_gqa", "softmax_window_packed", "softmax_gated",
                                         "softmax1", "sink_packed", "v1_gqa", "v1_large_lambda",
                                         "v2_gqa", "v2_raw", "v2_split_half_sinks",
                                         "v2_lambda_one_short", "v2_blocks_separately"),
                         [](const auto& golden) { return std::string(golden.param); });

}  // namespace
}  // namespace difftape
