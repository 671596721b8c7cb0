#include "train/run/records/metrics.h"

#include <rapidcheck/gtest.h>

#include <bit>

#include "core/random.h"
#include "tests/support/test.h"

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
  const Column& val = table.columns.at("val/loss");
  EXPECT_EQ(val.values(), (std::vector<double>{2.5}));
  EXPECT_EQ(val.row(0), 1u);
  EXPECT_THAT((std::vector<double>{val[0], val[1], val[2]}),
              ElementsAre(testing::IsNan(), 2.5, testing::IsNan()));
  EXPECT_EQ(table.columns.size(), 2u);
}

TEST(ReadMetrics, gives_the_wanted_metrics_and_all_steps) {
  const ScratchDir dir;
  MetricsWriter writer(dir / "m");
  writer.write(1, {{"a", 1}, {"b", 2}, {"c", 3}});
  writer.write(2, {{"b", kNaN}});
  const MetricsTable table = read_metrics(dir / "m", {"a", "b"});
  EXPECT_EQ(table.step, (std::vector<double>{1, 2}));
  EXPECT_EQ(table.columns.size(), 2u);
  EXPECT_EQ(table.columns.at("a").values(), std::vector<double>{1});
  EXPECT_TRUE(std::isnan(table.columns.at("b").values().at(1)));
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
  message(
      "{\"step\":6,\"a\":null}",
      "a is null, but must be a number, \"NaN\", \"Infinity\" or \"-Infinity\"; remove the line");
  message("{\"step\":6,\"a\":\"nan\"}",
          "a is \"nan\", but must be a number, \"NaN\", \"Infinity\" or \"-Infinity\"; remove the "
          "line");
  message(
      "{\"step\":6,\"a\":[1,2]}",
      "a is [1,2], but must be a number, \"NaN\", \"Infinity\" or \"-Infinity\"; remove the line");
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

TEST(Column, maps_rows_in_any_order_of_insertion) {
  const RandomStream random(7, "rows");
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    Column column;
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

}  // namespace
}  // namespace difftape::run
