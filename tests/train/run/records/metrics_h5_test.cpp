#include "train/run/records/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "tests/support/scratch.h"
#include "train/run/records/h5.h"

namespace difftape::run {
namespace {

using test::ScratchDir;
using testing::ElementsAre;
using testing::ThrowsMessage;

TEST(MetricsH5, has_one_dataset_a_metric_and_the_steps) {
  const ScratchDir dir;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  write_metrics_h5(dir / "metrics.h5", {{1, 2, 3},
                                        {{"train/loss", {5.5, 5.25, 5.1}},
                                         {"val/loss", {nan, 5.3, nan}},
                                         {"attn/lambda/0", {0.2, 0.3, 0.4}},
                                         {"attn/lambda/1", {0.5, 0.6, 0.7}}}});
  const h5::File in = h5::File::open(dir / "metrics.h5");
  EXPECT_THAT(in.read<std::int64_t>("step"), ElementsAre(1, 2, 3));
  EXPECT_THAT(in.read<double>("train/loss"), ElementsAre(5.5, 5.25, 5.1));
  EXPECT_TRUE(std::isnan(in.read<double>("val/loss")[0]));
  EXPECT_THAT(in.children("attn/lambda"), ElementsAre("0", "1"));
  EXPECT_THAT(in.read<double>("attn/lambda/1"), ElementsAre(0.5, 0.6, 0.7));
}

TEST(MetricsH5, a_metric_that_others_extend_is_a_dataset_beside_their_group) {
  const ScratchDir dir;
  write_metrics_h5(dir / "metrics.h5", {{1},
                                        {{"optim/grad_norm", {3}},
                                         {"optim/grad_norm/lm_head.weight", {2}},
                                         {"optim/grad_norm/lm_head.weight/row", {4}},
                                         {"optim/grad_norm_x", {1}},
                                         {"optim/lr", {0.5}}}});
  const h5::File in = h5::File::open(dir / "metrics.h5");
  EXPECT_THAT(in.read<double>("optim/grad_norm"), ElementsAre(3.0));
  EXPECT_THAT(in.read<double>("optim/grad_norm_of/lm_head.weight"), ElementsAre(2.0));
  EXPECT_THAT(in.read<double>("optim/grad_norm_of/lm_head.weight_of/row"), ElementsAre(4.0));
  EXPECT_THAT(in.read<double>("optim/grad_norm_x"), ElementsAre(1.0));
  EXPECT_THAT(in.read<double>("optim/lr"), ElementsAre(0.5));
}

TEST(MetricsH5, a_list_is_a_matrix_with_nan_where_there_is_nothing) {
  const ScratchDir dir;
  MetricsTable table{{1, 2, 3}, {{"attn/head/lambda", {4, 5, 6}}}};
  table.lists = {{"attn/head/lambda/0", {{0.25, 0.5}, {}, {0.75}}}, {"none", {{}, {}, {}}}};
  write_metrics_h5(dir / "metrics.h5", table);
  const h5::File in = h5::File::open(dir / "metrics.h5");
  EXPECT_EQ(in.shape("attn/head/lambda_of/0"), (Shape{3, 2}));
  EXPECT_THAT(in.read<double>("attn/head/lambda_of/0"),
              ElementsAre(0.25, 0.5, testing::IsNan(), testing::IsNan(), 0.75, testing::IsNan()));
  EXPECT_EQ(in.shape("none"), (Shape{3, 0}));
  EXPECT_THAT(in.read<double>("attn/head/lambda"), ElementsAre(4, 5, 6));
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
