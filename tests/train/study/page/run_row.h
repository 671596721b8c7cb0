#pragma once
// Recomputes the row of a run in the table of single runs from metrics.jsonl.

#include "tests/support/test.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::study {

/// Statistics of metrics.jsonl, computed without difftape.
struct Logged {
  std::vector<double> train, grad, speed;
  double val = 0;
};

inline Logged logged(const fs::path& run) {
  Logged found;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto row = system::parse_json(line);
    found.train.push_back(row.at("train/loss"));
    found.grad.push_back(row.at("optim/grad_norm"));
    found.speed.push_back(row.at("throughput/tokens_per_sec"));
    found.val = row.value("val/loss", found.val);
  }
  return found;
}

inline double mean_of_last(const std::vector<double>& values, std::size_t count) {
  double sum = 0;
  for (std::size_t i = values.size() - count; i < values.size(); ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

inline double largest(std::vector<double> values) { return *std::ranges::max_element(values); }

inline double middle(std::vector<double> values) {
  std::ranges::sort(values);
  return 0.5 * (values[(values.size() - 1) / 2] + values[values.size() / 2]);
}

/// Compares the row of a run in the table of single runs with its metrics.jsonl.
inline void expect_row(const std::vector<std::string>& row, const fs::path& run,
                       double baseline_val) {
  const Logged metrics = logged(run);
  const std::size_t last = std::max<std::size_t>(10, metrics.train.size() / 20);
  ASSERT_EQ(row.size(), 13u);
  EXPECT_EQ(row[2], fmt::format("{:.4f}", mean_of_last(metrics.train, last)));
  EXPECT_EQ(row[3], fmt::format("{:.4f}", metrics.val));
  EXPECT_EQ(row[4],
            baseline_val == metrics.val ? "-" : fmt::format("{:+.4f}", metrics.val - baseline_val));
  EXPECT_EQ(row[5], "0.0") << "of the steps after the first 64, the history of the rule";
  EXPECT_EQ(row[6], "0.0");
  EXPECT_EQ(row[7], fmt::format("{:.3f}", middle(metrics.grad)));
  EXPECT_EQ(row[9], fmt::format("{:.3f}", largest(metrics.grad)));
  EXPECT_EQ(row[10], system::grouped(std::llround(middle(metrics.speed))));
  EXPECT_EQ(row[11], "finished");
  EXPECT_EQ(row[12], "configmetricslog");
}

}  // namespace difftape::study
