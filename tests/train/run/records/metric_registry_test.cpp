#include "train/run/records/metric_registry.h"

#include "tests/support/test.h"

namespace difftape::run {
namespace {

/// Returns the suffix of the name in metrics.jsonl.
const char* suffix(Per per) {
  switch (per) {
    case Per::run:
      return "";
    case Per::layer:
      return "/<layer>";
    case Per::expert:
      return "/<layer>/<expert>";
    case Per::parameter:
      return "/<parameter>";
    case Per::domain:
      return "/<domain>";
    case Per::grid:
      break;
  }
  return "/<row>/<column>";
}

TEST(MetricRegistry, has_each_name_once_per_index) {
  std::set<std::string> names;
  for (const Metric& metric : kMetrics) {
    EXPECT_TRUE(names.insert(std::string(metric.name) + suffix(metric.per)).second) << metric.name;
    EXPECT_FALSE(std::string(metric.unit).empty() || std::string(metric.what).empty());
    const bool drawable =
        metric.per == Per::run || metric.per == Per::layer || metric.per == Per::expert;
    EXPECT_TRUE(metric.picture.title == nullptr || drawable) << metric.name;
  }
}

TEST(MetricRegistry, names_metrics_of_layers_and_parameters) {
  static_assert(std::string_view(metric("attn/entropy")) == "attn/entropy");
  EXPECT_EQ(metric_of(metric("attn/entropy"), "3"), "attn/entropy/3");
}

}  // namespace
}  // namespace difftape::run
