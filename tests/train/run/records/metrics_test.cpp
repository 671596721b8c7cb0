#include "train/run/records/metrics.h"

#include <rapidcheck/gtest.h>

#include <bit>

#include "core/random.h"
#include "tests/support/test.h"
#include "train/run/records/h5.h"

namespace difftape::run {
namespace {

TEST(MetricsWriter, writes_one_json_object_per_step_in_the_given_order) {
  const ScratchDir dir;
  MetricsWriter writer(dir / "metrics.jsonl");
  writer.write(1, {{"train/loss", 5.5}, {"optim/lr", 1e-3}});
  EXPECT_EQ(contents(dir / "metrics.jsonl"), "{\"step\":1,\"train/loss\":5.5,\"optim/lr\":0.001}\n")
      << "a line is on disk as soon as it is written";
  writer.write(2, {{"train/loss", 5.25}});
  EXPECT_EQ(contents(dir / "metrics.jsonl"),
            "{\"step\":1,\"train/loss\":5.5,\"optim/lr\":0.001}\n"
            "{\"step\":2,\"train/loss\":5.25}\n");
}

TEST(MetricsWriter, writes_nan_and_infinities_as_strings) {
  const ScratchDir dir;
  MetricsWriter(dir / "m").write(3, {{"a", kNaN}, {"b", kInfinity}, {"c", -kInfinity}});
  EXPECT_EQ(contents(dir / "m"),
            "{\"step\":3,\"a\":\"NaN\",\"b\":\"Infinity\",\"c\":\"-Infinity\"}\n");
}

TEST(MetricsWriter, continues_an_existing_file) {
  const ScratchDir dir;
  MetricsWriter(dir / "m").write(1, {{"a", 1}});
  MetricsWriter(dir / "m").write(2, {{"a", 2}});
  EXPECT_EQ(read_metrics(dir / "m").step, (std::vector<double>{1, 2}));
}

TEST(MetricsWriter, a_full_disk_is_an_output_error) {
  MetricsWriter writer("/dev/full");
  EXPECT_THAT(
      [&] {
        writer.write(1, {{"train/loss", 5.5}});
      },
      ThrowsMessage<OutputError>("cannot write /dev/full: No space left on device"));
}

TEST(MetricsWriter, a_path_that_cannot_be_opened_is_an_output_error) {
  EXPECT_THAT(
      [] { MetricsWriter("/nowhere/metrics.jsonl"); },
      ThrowsMessage<OutputError>("cannot write /nowhere/metrics.jsonl: No such file or directory"));
}

TEST(ReadMetrics, gives_columns_with_nan_for_steps_without_the_metric) {
  const ScratchDir dir;
  MetricsWriter writer(dir / "m");
  writer.write(10, {{"train/loss", 3}});
  writer.write(20, {{"train/loss", 2}, {"val/loss", 2.5}});
  writer.write(30, {{"train/loss", -kInfinity}});
  const MetricsTable table = read_metrics(dir / "m");
  EXPECT_EQ(table.step, (std::vector<double>{10, 20, 30}));
  EXPECT_EQ(table.columns.at("train/loss").values(), (std::vector<double>{3, 2, -kInfinity}));
  const Column<double>& val = table.columns.at("val/loss");
  EXPECT_EQ(val.values(), (std::vector<double>{2.5}));
  EXPECT_EQ(val.row(0), 1u);
  EXPECT_THAT((std::vector<double>{val[0], val[1], val[2]}),
              ElementsAre(testing::IsNan(), 2.5, testing::IsNan()));
  EXPECT_EQ(table.columns.size(), 2u);
}

TEST(ReadMetrics, gives_lists_of_any_length_and_empty_ones_for_other_steps) {
  const ScratchDir dir;
  MetricsWriter writer(dir / "m");
  writer.write(1, {{"a", 1}});
  writer.write(2, {{"a", 2}, {"heads", std::vector<double>{1.5, kInfinity}}});
  writer.write(3, {{"heads", std::vector<double>{-0.25}}});
  writer.write(4, {{"heads", std::vector<double>{}}});
  EXPECT_THAT(contents(dir / "m"), HasSubstr("\"heads\":[1.5,\"Infinity\"]}"));
  const MetricsTable table = read_metrics(dir / "m");
  EXPECT_EQ(table.columns.size(), 1u);
  const Column<std::vector<double>>& heads = table.lists.at("heads");
  EXPECT_EQ(heads.values(), (std::vector<std::vector<double>>{{1.5, kInfinity}, {-0.25}, {}}));
  EXPECT_EQ(heads[0], std::vector<double>());
  EXPECT_EQ(heads[2], std::vector<double>{-0.25});
}

TEST(ReadMetrics, rejects_a_metric_that_is_both_a_number_and_a_list) {
  const ScratchDir dir;
  const std::string path = (dir / "m").string();
  const std::string rule =
      ", but must be a number in every line or a list in every line; remove the line";
  put(path, "{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":[1]}\n");
  EXPECT_THAT([&] { read_metrics(path); }, ThrowsMessage<DataError>(path + ":2: a is [1]" + rule));
  put(path, "{\"step\":1,\"a\":[1]}\n{\"step\":2,\"a\":1}\n");
  EXPECT_THAT([&] { read_metrics(path); }, ThrowsMessage<DataError>(path + ":2: a is 1" + rule));
}

RC_GTEST_PROP(ReadMetrics, returns_every_finite_double_bit_for_bit, (std::uint64_t bits)) {
  const double value = std::bit_cast<double>(bits);
  RC_PRE(std::isfinite(value));
  const ScratchDir dir;
  MetricsWriter(dir / "m").write(1, {{"a", value}});
  RC_ASSERT(std::bit_cast<std::uint64_t>(read_metrics(dir / "m").columns.at("a")[0]) == bits);
}

TEST(ReadMetrics, ignores_a_last_line_that_a_crash_cut_off) {
  const ScratchDir dir;
  MetricsWriter(dir / "m").write(1, {{"a", 1}});
  put(dir / "m", contents(dir / "m") + "{\"step\":2,\"a\":1");
  EXPECT_EQ(read_metrics(dir / "m").step, std::vector<double>{1});
}

TEST(ReadMetrics, reads_an_empty_file_as_an_empty_table) {
  const ScratchDir dir;
  put(dir / "m", "");
  EXPECT_TRUE(read_metrics(dir / "m").step.empty());
  EXPECT_TRUE(read_metrics(dir / "m").columns.empty());
}

TEST(ReadMetrics, names_file_and_line_of_foreign_content) {
  const ScratchDir dir;
  const std::string path = (dir / "m").string();
  const auto message = [&](const std::string& line, const std::string& expected) {
    put(path, "{\"step\":5}\n" + line + "\n");
    EXPECT_THAT([&] { read_metrics(path); }, ThrowsMessage<DataError>(path + ":2: " + expected))
        << line;
  };
  const std::string not_metrics =
      "is not a line of metrics, but must be a JSON object with an integer \"step\"; remove the "
      "line";
  message("epoch 1 loss 2.5", not_metrics);
  message("[1, 2]", not_metrics);
  message("", not_metrics);
  message("{\"loss\":1}", not_metrics);
  message("{\"step\":1.5}", not_metrics);
  message("{\"step\":-1}", not_metrics);
  message("{\"step\":9007199254740993}", not_metrics);
  message("{\"step\":5}", "step 5 follows step 5, but steps must increase; remove the line");
  message("{\"step\":6,\"a\":null}",
          "a is null, but must be a number, \"NaN\", \"Infinity\" or \"-Infinity\", or a list of "
          "these; remove the line");
  message("{\"step\":6,\"a\":\"nan\"}",
          "a is \"nan\", but must be a number, \"NaN\", \"Infinity\" or \"-Infinity\", or a list "
          "of these; remove the line");
  message("{\"step\":6,\"a\":[1,[2]]}",
          "a is [1,[2]], but must be a number, \"NaN\", \"Infinity\" or \"-Infinity\", or a list "
          "of these; remove the line");
}

TEST(ReadMetrics, a_missing_file_is_missing_input) {
  const ScratchDir dir;
  EXPECT_THAT([&] { read_metrics(dir / "m"); },
              ThrowsMessage<MissingInput>("cannot read " + (dir / "m").string() +
                                          ": No such file or directory"));
  EXPECT_THAT(
      [&] { read_metrics(dir.path()); },
      ThrowsMessage<MissingInput>("cannot read " + dir.path().string() + ": Is a directory"));
}

TEST(TruncateMetrics, keeps_the_lines_of_the_first_steps) {
  const ScratchDir dir;
  MetricsWriter writer(dir / "m");
  for (const Index step : {1, 2, 3}) writer.write(step, {{"a", 1}});
  const std::string whole = contents(dir / "m");
  put(dir / "m", whole + "{\"st");
  truncate_metrics(dir / "m", 3);
  EXPECT_EQ(contents(dir / "m"), whole);
  truncate_metrics(dir / "m", 2);
  EXPECT_EQ(read_metrics(dir / "m").step, (std::vector<double>{1, 2}));
  truncate_metrics(dir / "m", 0);
  EXPECT_EQ(contents(dir / "m"), "");
}

TEST(TruncateMetrics, reports_missing_and_damaged_lines_and_does_not_change_the_file) {
  const ScratchDir dir;
  const std::string two = "{\"step\":1}\n{\"step\":2}\n";
  const auto refuses = [&](const std::string& text, Index steps, const std::string& message) {
    put(dir / "m", text);
    EXPECT_THAT([&] { truncate_metrics(dir / "m", steps); },
                ThrowsMessage<DataError>(HasSubstr((dir / "m").string() + message)));
    EXPECT_EQ(contents(dir / "m"), text);
  };
  refuses(two, 3, ": line 3 is not that of step 3, ");
  refuses(two + "{\"st", 3, ": line 3 is not that of step 3, ");
  refuses(two + "{\"step\":5}\n", 3, ": line 3 is not that of step 3, ");
  refuses(two + std::string(20, '\0') + "\n", 3, ":3: is not a line of metrics, but must be");
}

TEST(ReadMetric, equals_a_column_of_the_table_and_checks_every_line) {
  const ScratchDir dir;
  MetricsWriter writer(dir / "m");
  for (const Index step : {10, 20, 30}) writer.write(step, {{"a", 1.0}, {"b", 0.5 * step}});
  writer.write(40, {{"a", 2.0}});
  writer.write(50, {{"a", std::vector<double>{1, 2}}, {"b", kInfinity}});
  writer.write(60, {{"b", kNaN}});
  put(dir / "m", contents(dir / "m") + "{\"st");
  auto found = read_metric(dir / "m", "b");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.back().first, 60);
  EXPECT_TRUE(std::isnan(found.back().second));
  found.pop_back();
  EXPECT_EQ(found,
            (std::vector<std::pair<Index, double>>{{10, 5}, {20, 10}, {30, 15}, {50, kInfinity}}));
  put(dir / "m", "x\n" + contents(dir / "m"));
  EXPECT_THROW(read_metric(dir / "m", "b"), DataError);
}

TEST(Column, maps_rows_in_any_order_of_insertion) {
  const RandomStream random(7, "rows");
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    Column<double> column;
    std::map<std::size_t, double> expected;
    for (std::uint64_t i = 0; i < 60; ++i) {
      const std::uint64_t at = 100 * trial + i;
      // First consecutive rows, as in files; then random rows.
      const std::size_t row = trial % 2 == 0 && i < 30 ? i : random.below(at, 50);
      column.set(row, static_cast<double>(at));
      expected[row] = static_cast<double>(at);
    }
    ASSERT_EQ(column.values().size(), expected.size());
    std::size_t i = 0;
    for (const auto& [row, value] : expected) {
      EXPECT_EQ(column.row(i), row);
      EXPECT_EQ(column.values()[i++], value);
    }
    for (std::size_t row = 0; row < 60; ++row) {
      if (expected.contains(row)) {
        EXPECT_EQ(column[row], expected[row]);
      } else {
        EXPECT_TRUE(std::isnan(column[row]));
      }
    }
  }
}

TEST(Column, has_an_empty_list_for_a_row_without_one) {
  Column<std::vector<double>> lists;
  lists.set(3, {1, 2});
  EXPECT_TRUE(lists[2].empty());
  EXPECT_EQ(lists[3], (std::vector<double>{1, 2}));
  EXPECT_TRUE(lists[4].empty());
}

TEST(MetricsH5, has_the_steps_and_one_matrix_per_list_padded_with_nan) {
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

TEST(MetricsH5, keeps_attention_maps_of_any_number_of_layers_in_single_precision) {
  const ScratchDir dir;
  AttentionMaps maps{50, {}};
  for (int layer = 0; layer < 11; ++layer)
    maps.layers.push_back(Tensor::full({2, 3, 4, 4}, real(layer) / 8));
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

TEST(MetricsH5, is_a_valid_file_for_a_run_without_steps) {
  const ScratchDir dir;
  write_metrics_h5(dir / "metrics.h5", {});
  EXPECT_TRUE(h5::File::open(dir / "metrics.h5").read<std::int64_t>("step").empty());
}

TEST(MetricsH5, a_missing_directory_is_an_output_error) {
  const ScratchDir dir;
  const auto path = dir / "gone" / "metrics.h5";
  EXPECT_THAT(
      [&] { write_metrics_h5(path, {}); },
      ThrowsMessage<OutputError>("cannot write " + path.string() + ": No such file or directory"));
}

}  // namespace
}  // namespace difftape::run
