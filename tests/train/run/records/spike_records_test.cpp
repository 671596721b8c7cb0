#include "train/run/records/spike_records.h"

#include "core/random.h"
#include "tests/support/test.h"

namespace difftape::run {
namespace {

using Values = std::vector<double>;

/// Returns 50 values with mean 0 and std 1, followed by `more` from step 51 on.
Values after_fifty(const Values& more) {
  Values all;
  for (int i = 0; i < 50; ++i) all.push_back(i % 2 == 0 ? 1 : -1);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<SpikeRecord> records(const Values& loss, const Values& grad = {},
                                 const stats::SpikeRule& rule = {}) {
  Values steps(std::max(loss.size(), grad.size()));
  std::iota(steps.begin(), steps.end(), 1);
  return spike_records(steps, loss, grad, rule);
}

TEST(SpikeRecords, have_step_depth_and_recovery) {
  const auto found = records(after_fifty({20, 5, 2.5, 1.5, 0}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].quantity, "loss");
  EXPECT_EQ(found[0].step, 51);
  EXPECT_EQ(found[0].last_step, 51);
  EXPECT_EQ(found[0].spikes, 1);
  EXPECT_EQ(found[0].value, 20);
  EXPECT_EQ(found[0].center, 0);
  EXPECT_EQ(found[0].spread, 1);
  EXPECT_EQ(found[0].depth, 20);
  EXPECT_EQ(found[0].deviations, 20);
  EXPECT_EQ(found[0].recovery, 3) << "1.5 is the first that is within two deviations";
  EXPECT_FALSE(found[0].lead);
}

TEST(SpikeRecords, have_no_recovery_if_the_value_stays_high) {
  const auto found = records(after_fifty(Values(30, 20)));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].recovery);
}

TEST(SpikeRecords, below_the_mean_recover_upwards) {
  const auto found = records(after_fifty({-20, -5, -1}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].depth, -20);
  EXPECT_EQ(found[0].deviations, -20);
  EXPECT_EQ(found[0].recovery, 2);
}

TEST(SpikeRecords, of_one_burst_form_one_event_with_its_furthest_value) {
  const auto found = records(after_fifty({20, 200, 3, 0, 400, 0}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].step, 51);
  EXPECT_EQ(found[0].last_step, 52);
  EXPECT_EQ(found[0].spikes, 2);
  EXPECT_EQ(found[0].peak_step, 52);
  EXPECT_EQ(found[0].value, 200);
  EXPECT_EQ(found[0].deviations, 200) << "by the window before the event";
  EXPECT_EQ(found[0].recovery, 3);
  EXPECT_EQ(found[1].step, 55) << "it had recovered";
}

TEST(SpikeRecords, begin_a_new_event_after_20_quiet_steps_without_recovery) {
  for (const int quiet : {19, 20}) {
    Values more{20};
    more.insert(more.end(), static_cast<std::size_t>(quiet), 10);
    more.push_back(1e6);
    const auto found = records(after_fifty(more));
    EXPECT_EQ(found.size(), quiet == 19 ? 1u : 2u) << quiet;
  }
}

TEST(SpikeRecords, treat_a_value_that_is_not_finite_as_the_furthest) {
  const auto found = records(after_fifty({20, kNaN, 1e9, 0}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].spikes, 3);
  EXPECT_EQ(found[0].peak_step, 52);
  EXPECT_TRUE(std::isnan(found[0].value));
  EXPECT_EQ(size_of(found[0]), kInfinity);
  EXPECT_EQ(found[0].recovery, 3);
}

TEST(SpikeRecords, without_a_window_recover_at_the_first_finite_value) {
  const auto found = records({1, kInfinity, kNaN, 5});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].step, 2);
  EXPECT_TRUE(std::isnan(found[0].center));
  EXPECT_TRUE(std::isnan(found[0].depth));
  EXPECT_EQ(found[0].recovery, 2);
}

TEST(SpikeRecords, of_the_loss_have_the_lead_of_the_gradient) {
  for (const auto& [before, lead] : std::vector<std::pair<int, std::optional<Index>>>{
           {0, 0}, {1, 1}, {10, 10}, {11, std::nullopt}}) {
    Values loss = after_fifty(Values(20, 0)), grad = loss;
    loss[65] = 30;
    grad[static_cast<std::size_t>(65 - before)] = 30;
    const auto found = records(loss, grad);
    ASSERT_EQ(found.size(), 2u);
    const SpikeRecord& of_loss = found[1];
    EXPECT_EQ(of_loss.quantity, "loss") << "of one step the gradient's comes first";
    EXPECT_EQ(of_loss.lead, lead) << before;
    EXPECT_EQ(found[0].quantity, "grad_norm");
    EXPECT_FALSE(found[0].lead);
  }
  Values loss = after_fifty(Values(20, 0)), grad = loss;
  loss[60] = 30, grad[61] = 30;
  EXPECT_FALSE(records(loss, grad)[0].lead) << "a gradient that follows does not lead";
}

TEST(SpikeRecords, use_the_given_rule) {
  const Values series = after_fifty({3, 0});
  EXPECT_TRUE(records(series).empty());
  EXPECT_EQ(records(series, {}, stats::make_spike_rule(stats::SpikeDefinition::zclip)).size(), 1u);
}

TEST(SpikeRecords, contain_every_spike_of_the_detector_once) {
  const RandomStream stream(1, "records");
  for (const std::string& word : names<stats::SpikeDefinition>()) {
    Values series;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const double far = stream.below(4 * i, 50) == 0 ? 20 : 1;
      series.push_back(stream.below(4 * i + 1, 200) == 0 ? kNaN : far * stream.normal(4 * i + 2));
    }
    const stats::SpikeRule rule =
        stats::make_spike_rule(from_string<stats::SpikeDefinition>(word).value());
    stats::SpikeDetector detector(rule);
    for (const double value : series) detector.add(value);
    Index spikes = 0, last = 0;
    for (const SpikeRecord& record : records(series, {}, rule)) {
      spikes += record.spikes;
      EXPECT_GT(record.step, last) << "events do not overlap";
      EXPECT_LE(record.step, record.peak_step);
      EXPECT_LE(record.peak_step, record.last_step);
      last = record.last_step;
      if (!record.recovery) continue;
      EXPECT_GE(record.step + *record.recovery, record.last_step + 1);
    }
    EXPECT_EQ(spikes, detector.spikes());
    EXPECT_GT(spikes, 15) << word;
  }
}

TEST(SpikeRecords, depend_only_on_the_metrics) {
  MetricsTable table;
  table.columns["train/loss"] = after_fifty({20, 0});
  for (int i = 1; i <= 52; ++i) table.step.push_back(10 * i);
  const auto found = spike_records(table, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].step, 510);
  EXPECT_EQ(found[0].recovery, 10) << "in steps, not in lines";
}

TEST(SpikesCsv, has_one_line_per_record_with_empty_fields_for_absent_values) {
  const ScratchDir dir;
  Values loss = after_fifty({20.5, 0}), grad = after_fifty({0, kNaN});
  write_spikes_csv(dir / "spikes.csv", records(loss, grad));
  EXPECT_EQ(
      contents(dir / "spikes.csv"),
      "quantity,step,last_step,spikes,peak_step,value,center,spread,depth,deviations,recovery,"
      "lead\n"
      "loss,51,51,1,51,20.5,0,1,20.5,20.5,1,\n"
      "grad_norm,52,52,1,52,NaN,0,0.9901475429766743,NaN,NaN,,\n");
}

TEST(SpikeSummary, is_one_line_with_counts_and_the_largest_event) {
  EXPECT_EQ(spike_summary({}), "");
  Values loss = after_fifty({20, 0, 0, 0, 90, 0}), grad = after_fifty({0, 0, 0, kNaN});
  EXPECT_EQ(spike_summary(records(loss, grad)),
            "spikes: loss 2 (largest 31.3 deviations at step 55, back after 1 step), grad_norm 1 "
            "(largest "
            "not finite at step 54, not recovered)");
}

}  // namespace
}  // namespace difftape::run
