#include "train/run/records/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/scratch.h"
#include "train/run/records/h5.h"

namespace difftape::run {
namespace {

using test::ScratchDir;
using testing::ElementsAre;
using testing::ThrowsMessage;

TEST(MetricsH5, has_the_steps_and_a_matrix_per_list_with_nan_where_there_is_nothing) {
  const ScratchDir dir;
  MetricsTable table{{1, 2, 3}, {{"train/loss", {4, 5, 6}}}};
  table.lists = {{"attn/head/lambda/0", {{0.25, 0.5}, {}, {0.75}}}, {"none", {{}, {}, {}}}};
  write_metrics_h5(dir / "metrics.h5", table);
  const h5::File in = h5::File::open(dir / "metrics.h5");
  EXPECT_THAT(in.read<std::int64_t>("step"), ElementsAre(1, 2, 3));
  EXPECT_EQ(in.shape("attn/head/lambda/0"), (Shape{3, 2}));
  EXPECT_THAT(in.read<double>("attn/head/lambda/0"),
              ElementsAre(0.25, 0.5, testing::IsNan(), testing::IsNan(), 0.75, testing::IsNan()));
  EXPECT_EQ(in.shape("none"), (Shape{3, 0}));
  EXPECT_FALSE(in.exists("train/loss")) << "numbers are in metrics.jsonl alone";
}

TEST(MetricsH5, a_list_of_the_last_step_alone_has_no_axis_of_steps) {
  const ScratchDir dir;
  MetricsTable table{{1, 2, 3}, {}};
  table.lists["val/group_loss"].set(2, {0.5, 0.25});
  write_metrics_h5(dir / "metrics.h5", table);
  EXPECT_THAT(h5::File::open(dir / "metrics.h5").read<double>("val/group_loss"),
              ElementsAre(0.5, 0.25));
}

TEST(MetricsH5, keeps_attention_maps_of_any_number_of_layers_in_single_precision) {
  const ScratchDir dir;
  AttentionMaps maps{50, {}};
  for (int layer = 0; layer < 11; ++layer) {
    maps.layers.push_back(Tensor::full({2, 3, 4, 4}, real(layer) / 8));
  }
  write_metrics_h5(dir / "metrics.h5", {}, maps);
  const auto found = read_attention_maps(dir / "metrics.h5");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, 50);
  ASSERT_EQ(found->layers.size(), 11u);
  for (size_t layer = 0; layer < 11; ++layer) {
    EXPECT_EQ(found->layers[layer].shape(), (Shape{2, 3, 4, 4}));
    EXPECT_EQ(found->layers[layer].data()[95], real(layer) / 8);
  }
  write_metrics_h5(dir / "without.h5", {});
  EXPECT_FALSE(read_attention_maps(dir / "without.h5").has_value());
}

TEST(MetricsH5, of_a_run_without_steps_is_a_valid_file) {
  const ScratchDir dir;
  write_metrics_h5(dir / "metrics.h5", {});
  EXPECT_TRUE(h5::File::open(dir / "metrics.h5").read<std::int64_t>("step").empty());
}

TEST(MetricsH5, a_directory_that_is_not_there_is_an_output_error) {
  const ScratchDir dir;
  const auto path = dir / "gone" / "metrics.h5";
  EXPECT_THAT(
      [&] { write_metrics_h5(path, {}); },
      ThrowsMessage<OutputError>("cannot write " + path.string() + ": No such file or directory"));
}

}  // namespace
}  // namespace difftape::run
