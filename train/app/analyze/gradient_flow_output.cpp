// What measure_gradient_flow has found, as text and as an HDF5 file.

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "train/app/analyze/gradient_flow.h"
#include "train/run/records/h5.h"
#include "train/stats/descriptive.h"
#include "train/stats/interval.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

/// Over the seeds that got as far as one of the steps.
stats::Ratio over_seeds(const GradientFlow& flow, const SeedsBySteps& values, size_t step) {
  std::vector<double> logs;
  for (size_t at = step; at < values.size(); at += flow.steps.size()) {
    if (std::isfinite(values[at])) logs.push_back(std::log(values[at]));
  }
  return stats::geometric_mean(logs);
}

std::string cell(const stats::Ratio& ratio, fmt::string_view format) {
  if (std::isnan(ratio.value)) return "-";
  const auto number = [&](double x) { return fmt::format(fmt::runtime(format), x); };
  return number(ratio.value) +
         (std::isnan(ratio.low) ? ""
                                : fmt::format(" ({}-{})", number(ratio.low), number(ratio.high)));
}

std::string norm_cell(const GradientFlow& flow, const KindFlow& kind, const GradientGroup& group,
                      size_t step) {
  const auto found = kind.norms.find(group);
  return found == kind.norms.end() ? "-" : cell(over_seeds(flow, found->second, step), "{:.2e}");
}

/// The ratio, or the norm itself of a group that the baseline lacks.
std::string ratio_cell(const GradientFlow& flow, const KindFlow& kind, const GradientGroup& group,
                       size_t step) {
  const SeedsBySteps ratios = gradient_ratios(flow, kind, group);
  if (!ratios.empty()) return cell(over_seeds(flow, ratios, step), "{:.3f}");
  const std::string norm = norm_cell(flow, kind, group, step);
  return norm == "-" ? norm : "norm " + norm;
}

std::set<GradientGroup> groups_of(const GradientFlow& flow) {
  std::set<GradientGroup> groups;
  for (const auto& [group, norms] : flow.baseline.norms) groups.insert(group);
  for (const KindFlow& kind : flow.kinds) {
    for (const auto& [group, norms] : kind.norms) groups.insert(group);
  }
  return groups;
}

system::Table table_of(const GradientFlow& flow) {
  system::Table table{{{"", "layer"}, {"", "group", true}}, {}};
  const auto add_columns = [&](const std::string& label) {
    for (const Index step : flow.steps) table.columns.push_back({label, fmt::format("{}", step)});
  };
  add_columns(flow.baseline.kind + ", norm at step");
  for (const KindFlow& kind : flow.kinds) {
    add_columns(fmt::format("{} / {} at step", kind.kind, flow.baseline.kind));
  }
  for (const GradientGroup& group : groups_of(flow)) {
    std::vector<std::string> row{group.layer_name(), group.name};
    for (size_t step = 0; step < flow.steps.size(); ++step) {
      row.push_back(norm_cell(flow, flow.baseline, group, step));
    }
    for (const KindFlow& kind : flow.kinds) {
      for (size_t step = 0; step < flow.steps.size(); ++step) {
        row.push_back(ratio_cell(flow, kind, group, step));
      }
    }
    table.rows.push_back(row);
  }
  return table;
}

/// How far the ratios of single layers spread at one step.
std::string spread(const GradientFlow& flow, const KindFlow& kind, size_t step) {
  std::vector<double> ratios;
  for (const auto& [group, norms] : kind.norms) {
    if (group.layer < 0) continue;
    const SeedsBySteps found = gradient_ratios(flow, kind, group);
    const double mean = found.empty() ? NAN : over_seeds(flow, found, step).value;
    if (std::isfinite(mean)) ratios.push_back(mean);
  }
  if (ratios.empty()) return "";
  return fmt::format(
      "{} at step {}: {} ratios of single layers from {:.3f} to {:.3f}, median {:.3f}\n", kind.kind,
      flow.steps[step], ratios.size(), std::ranges::min(ratios), std::ranges::max(ratios),
      stats::quantile(ratios, 0.5));
}

void write_kind(run::h5::File& file, const GradientFlow& flow, const KindFlow& kind) {
  const Shape shape{static_cast<Index>(flow.seeds.size()), static_cast<Index>(flow.steps.size())};
  file.write<double>("loss/" + kind.kind, shape, kind.loss);
  for (const auto& [group, norms] : kind.norms) {
    const std::string layer =
        group.layer == GradientGroup::kOutside ? "outside" : group.layer_name();
    const std::string place = fmt::format("/{}/{}/{}", kind.kind, layer, group.name);
    file.write<double>("norm" + place, shape, norms);
    const SeedsBySteps ratios = gradient_ratios(flow, kind, group);
    if (&kind != &flow.baseline && !ratios.empty()) {
      file.write<double>("ratio" + place, shape, ratios);
    }
  }
}

}  // namespace

std::string describe_gradient_flow(const GradientFlow& flow) {
  std::string text = fmt::format(
      "L2 norms of the gradient of one step's batch, before clipping, after so many steps; the "
      "same\n"
      "data in the same order for every kind. Groups that {} lacks show their norm.\n"
      "{}: {}.\n\n",
      flow.baseline.kind, flow.seeds.size() > 1 ? "Seeds" : "Seed",
      flow.seeds.size() > 1
          ? fmt::format("{}; geometric means with 95 % t-intervals, over those that got so far",
                        fmt::join(flow.seeds, ", "))
          : fmt::format("{}, and so no interval", flow.seeds.front()));
  text += to_text(table_of(flow)) + "\n";
  text += fmt::format("parameters: {} {}", flow.baseline.kind,
                      system::grouped(flow.baseline.parameters));
  for (const KindFlow& kind : flow.kinds) {
    text += fmt::format(", {} {}", kind.kind, system::grouped(kind.parameters));
  }
  text += "\n";
  for (const KindFlow& kind : flow.kinds) {
    for (size_t step = 0; step < flow.steps.size(); ++step) text += spread(flow, kind, step);
  }
  return text;
}

void write_gradient_flow(const std::filesystem::path& path, const GradientFlow& flow,
                         const std::string& config_yaml) {
  run::h5::File file = run::h5::File::create(path);
  file.set_attribute("/", "config_yaml", config_yaml);
  file.set_attribute("/", "baseline", flow.baseline.kind);
  file.write<std::int64_t>("steps", {static_cast<Index>(flow.steps.size())},
                           std::vector<std::int64_t>(flow.steps.begin(), flow.steps.end()));
  file.write<std::int64_t>("seeds", {static_cast<Index>(flow.seeds.size())},
                           std::vector<std::int64_t>(flow.seeds.begin(), flow.seeds.end()));
  write_kind(file, flow, flow.baseline);
  for (const KindFlow& kind : flow.kinds) write_kind(file, flow, kind);
  file.save();
}

}  // namespace difftape::app
