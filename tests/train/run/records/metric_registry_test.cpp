#include "train/run/records/metric_registry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/scratch.h"

namespace difftape::run {
namespace {

const std::string kReadme = DIFFTAPE_TEST_SOURCE_DIR "/train/run/records/README.md";

/// What follows the name in metrics.jsonl.
const char* suffix(Per per) {
  switch (per) {
    case Per::run:
      return "";
    case Per::layer:
      return "/<layer>";
    case Per::head:
    case Per::rank:
      return "/<layer> (list)";
    case Per::parameter:
      return "/<parameter>";
    case Per::domain:
      return "/<domain>";
    case Per::group:
      return " (list)";
    case Per::grid:
      break;
  }
  return "/<row>/<column>";
}

std::string when_of(const Metric& metric) {
  const char* const when[] = {"step", "validation", "log.param_grad_norms_interval",
                              "log.diagnostics_interval", "last step"};
  const char* const of[] = {"",
                            ", tasks",
                            ", text",
                            ", domains",
                            ", tasks of long answers",
                            ", needles",
                            ", two maps",
                            ", lambda of each token",
                            ", shared values",
                            ", z-loss",
                            ", QK-clip",
                            ", optim.on_spike"};
  return std::string(when[static_cast<int>(metric.when)]) + of[static_cast<int>(metric.of)];
}

TEST(MetricRegistry, is_the_table_of_its_readme) {
  std::string table = "| metric | unit | logged | what |\n|---|---|---|---|\n";
  for (const Metric& metric : kMetrics) {
    std::string what;
    for (const char* c = metric.what; *c != 0; ++c) what += *c == '|' ? "\\|" : std::string(1, *c);
    table += fmt::format("| `{}{}` | {} | {} | {} |\n", metric.name, suffix(metric.per),
                         metric.unit, when_of(metric), what);
  }
  const std::string readme = test::contents(kReadme);
  EXPECT_NE(readme.find("\n" + table + "\n"), std::string::npos)
      << kReadme << " must hold, between empty lines:\n"
      << table;
}

TEST(MetricRegistry, has_each_name_once_for_what_it_has_a_value_of) {
  std::set<std::string> names;
  for (const Metric& metric : kMetrics) {
    EXPECT_TRUE(names.insert(std::string(metric.name) + suffix(metric.per)).second) << metric.name;
    EXPECT_FALSE(std::string(metric.unit).empty() || std::string(metric.what).empty());
    const bool drawable = metric.per == Per::run || metric.per == Per::layer;
    EXPECT_TRUE(metric.picture.title == nullptr || drawable) << metric.name;
  }
}

TEST(MetricRegistry, names_metrics_of_layers_and_parameters) {
  static_assert(std::string_view(metric("attn/entropy")) == "attn/entropy");
  EXPECT_EQ(metric_of(metric("attn/entropy"), "3"), "attn/entropy/3");
}

}  // namespace
}  // namespace difftape::run
