#include "train/run/records/spike_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/real.h"
#include "train/run/records/metric_registry.h"
#include "train/system/files.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::run {
namespace {

constexpr Index kLargestGap = 20;       // steps between two spikes of one event
constexpr Index kLongestLead = 10;      // steps without a gradient spike before a loss spike
constexpr double kRecoveredWithin = 2;  // spreads
constexpr const char* kLoss = "loss";
constexpr const char* kGradNorm = "grad_norm";

std::string text_of(const std::optional<Index>& value) {
  return value ? fmt::format("{}", *value) : "";
}

stats::SpikeSeries series_of(const std::string& quantity) {
  return quantity == kGradNorm ? stats::SpikeSeries::grad_norm : stats::SpikeSeries::loss;
}

/// Returns true if `value` is further from the center than the value of the record. Values that are
/// not finite are further than all finite ones.
bool further(double value, const SpikeRecord& than) {
  if (!std::isfinite(than.value)) return false;
  if (!std::isfinite(value)) return true;
  return std::abs(value - than.center) > std::abs(than.value - than.center);
}

std::optional<Index> lead_of(const SpikeRecord& loss, std::span<const SpikeRecord> gradients) {
  std::optional<Index> lead;
  for (const SpikeRecord& gradient : gradients) {
    if (gradient.step > loss.step) break;
    if (loss.step - gradient.last_step <= kLongestLead) lead = loss.step - gradient.step;
  }
  return lead;
}

bool recovered(const SpikeRecord& record, double value, double threshold) {
  if (!std::isfinite(value)) return false;
  if (std::isnan(record.center)) return true;
  const double within = std::min(kRecoveredWithin, threshold) * record.spread;
  return record.depth < 0 ? value >= record.center - within : value <= record.center + within;
}

void extend(SpikeRecord& record, Index step, double value) {
  record.last_step = step;
  record.spikes += 1;
  if (record.spikes > 1 && !further(value, record)) return;
  record.peak_step = step;
  record.value = value;
  record.depth = value - record.center;
  record.deviations = record.depth / record.spread;
}

/// Returns the events of one quantity in the order of their first steps, without leads.
std::vector<SpikeRecord> events_of(const char* quantity, std::span<const double> steps,
                                   std::span<const double> values, const stats::SpikeRule& rule) {
  stats::SpikeDetector detector(rule, series_of(quantity));
  std::vector<SpikeRecord> records;
  std::vector<std::size_t> open;  // indices of records that have not recovered
  for (std::size_t at = 0; at < values.size(); ++at) {
    const auto step = static_cast<Index>(steps[at]);
    const stats::SpikeVerdict verdict = detector.take(values[at]);
    std::erase_if(open, [&](std::size_t i) {
      if (!recovered(records[i], values[at], detector.threshold())) return false;
      records[i].recovery = step - records[i].step;
      return true;
    });
    if (!verdict.spike) continue;
    const bool goes_on = !open.empty() && open.back() + 1 == records.size() &&
                         step - records.back().last_step <= kLargestGap;
    if (!goes_on) {
      SpikeRecord record;
      record.quantity = quantity;
      record.step = step;
      record.center = verdict.center;
      record.spread = verdict.spread;
      open.push_back(records.size());
      records.push_back(std::move(record));
    }
    extend(records.back(), step, values[at]);
  }
  return records;
}

}  // namespace

double size_of(const SpikeRecord& record) {
  const double size = std::abs(record.deviations);
  return std::isfinite(size) ? size : kInfinity;
}

std::vector<SpikeRecord> spike_records(std::span<const double> steps, std::span<const double> loss,
                                       std::span<const double> grad, const stats::SpikeRule& rule) {
  std::vector<SpikeRecord> records = events_of(kGradNorm, steps, grad, rule);
  std::vector<SpikeRecord> losses = events_of(kLoss, steps, loss, rule);
  for (SpikeRecord& event : losses) event.lead = lead_of(event, records);
  records.insert(records.end(), losses.begin(), losses.end());
  std::ranges::stable_sort(records, {}, &SpikeRecord::step);
  return records;
}

std::vector<SpikeRecord> spike_records(const MetricsTable& metrics, const stats::SpikeRule& rule) {
  const auto column = [&](const char* name) {
    std::vector<double> values;
    const auto found = metrics.columns.find(name);
    if (found == metrics.columns.end()) return values;
    for (std::size_t row = 0; row < metrics.step.size(); ++row)
      values.push_back(found->second[row]);
    return values;
  };
  return spike_records(metrics.step, column(metric("train/loss")),
                       column(metric("optim/grad_norm")), rule);
}

void write_spikes_csv(const std::filesystem::path& path, std::span<const SpikeRecord> records) {
  std::string text =
      "quantity,step,last_step,spikes,peak_step,value,center,spread,depth,deviations,recovery,"
      "lead\n";
  for (const SpikeRecord& r : records) {
    text += system::csv_line(std::vector<std::string>{
        r.quantity, fmt::to_string(r.step), fmt::to_string(r.last_step), fmt::to_string(r.spikes),
        fmt::to_string(r.peak_step), system::json_number(r.value), system::json_number(r.center),
        system::json_number(r.spread), system::json_number(r.depth),
        system::json_number(r.deviations), text_of(r.recovery), text_of(r.lead)});
  }
  system::replace_text(path, text);
}

std::string spike_summary(std::span<const SpikeRecord> records) {
  std::string text;
  for (const char* quantity : {kLoss, kGradNorm}) {
    const SpikeRecord* largest = nullptr;
    Index count = 0;
    for (const SpikeRecord& record : records) {
      if (record.quantity != quantity) continue;
      count += 1;
      if (!largest || size_of(record) > size_of(*largest)) largest = &record;
    }
    if (!largest) continue;
    const std::string size = std::isfinite(size_of(*largest))
                                 ? fmt::format("{:.1f} deviations", size_of(*largest))
                                 : "not finite";
    const std::string back = largest->recovery
                                 ? fmt::format("back after {} step{}", *largest->recovery,
                                               *largest->recovery == 1 ? "" : "s")
                                 : "not recovered";
    text += fmt::format("{}{} {} (largest {} at step {}, {})", text.empty() ? "spikes: " : ", ",
                        quantity, count, size, largest->peak_step, back);
  }
  return text;
}

}  // namespace difftape::run
