#include "train/study/page/selection.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/train/study/compare/synthetic_study.h"

namespace difftape::study::page {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// A run that logged quantities of layers, heads and parameters beside the usual ones.
RunRecord logging() {
  RunRecord run = test::record({});
  const std::size_t rows = run.metrics.step.size();
  for (const char* name : {"attn/entropy/0", "attn/entropy/2", "attn/entropy/10",
                           "optim/update_ratio/lm_head.weight", "val/old_name"}) {
    run.metrics.columns[name] = std::vector<double>(rows, 0.5);
  }
  for (const char* name : {"attn/head/entropy/0", "attn/head/entropy/1"}) {
    run.metrics.lists[name] = std::vector(rows, std::vector<double>{1, 2, 3});
  }
  return run;
}

Charts charts(const std::vector<std::string>& names) {
  const std::vector<RunRecord> runs{logging()};
  return select_charts(make_study(runs), names);
}

template <class T>
std::vector<std::string> names_of(const std::vector<T>& all) {
  std::vector<std::string> names;
  for (const T& each : all) names.push_back(each.name);
  return names;
}

TEST(Charts, are_those_with_a_picture_that_were_logged_unless_named) {
  EXPECT_THAT(names_of(charts({}).curves),
              ElementsAre("train/loss", "val/loss", "optim/grad_norm"));
  EXPECT_EQ(charts({}).curves[0].title, "Training loss");
  EXPECT_THAT(names_of(charts({}).maps), testing::Contains("attn/logit_max"));
}

TEST(Charts, may_be_of_any_quantity_that_was_logged) {
  const Charts found =
      charts({"spike_score/loss", "attn/entropy", "attn/entropy/2", "attn/head/entropy",
              "attn/head/entropy/1", "spike_score/loss", "optim/update_ratio", "val/old_name"});
  EXPECT_THAT(names_of(found.curves),
              ElementsAre("spike_score/loss", "attn/entropy/2", "val/old_name"));
  EXPECT_THAT(names_of(found.maps), ElementsAre("attn/entropy", "attn/head/entropy",
                                                "attn/head/entropy/1", "optim/update_ratio"));
  EXPECT_EQ(found.curves[0].caption, "%: steps so far whose loss was a spike by log.spike_rule");
  EXPECT_EQ(found.curves[1].title, "attn/entropy, layer 2");
  EXPECT_TRUE(found.notes.empty());
}

TEST(Charts, may_be_of_domains_and_of_groups_of_documents) {
  RunRecord run = logging();
  const std::size_t rows = run.metrics.step.size();
  run.metrics.columns["val/loss/code"] = std::vector<double>(rows, 2);
  run.metrics.lists["val/group_loss"] = std::vector(rows, std::vector<double>{1, 2});
  const std::vector<RunRecord> runs{run};
  const std::vector<std::string> names{"val/loss", "val/group_loss", "val/loss/code"};
  const Charts found = select_charts(make_study(runs), names);
  EXPECT_THAT(names_of(found.curves), ElementsAre("val/loss", "val/loss/code"));
  EXPECT_EQ(found.curves[1].title, "val/loss, code");
  EXPECT_THAT(names_of(found.maps), ElementsAre("val/loss", "val/group_loss"));
  EXPECT_EQ(map_rows(run.metrics, "val/loss").at(0).name, "code");
  EXPECT_EQ(map_rows(run.metrics, "val/group_loss").size(), 2u);
}

TEST(Charts, of_what_no_run_logged_are_said_and_of_no_quantity_refused) {
  EXPECT_THAT(charts({"attn/lambda", "attn/entropy/7"}).notes,
              ElementsAre("not drawn: no run logged attn/lambda",
                          "not drawn: no run logged attn/entropy/7"));
  EXPECT_THAT([] { charts({"atn/entropy"}); },
              ThrowsMessage<UsageError>(
                  "report --charts: 'atn/entropy' is no quantity; did you mean 'attn/entropy'?"));
  EXPECT_THAT([] { charts({"val/old_nam"}); },
              ThrowsMessage<UsageError>(HasSubstr("did you mean 'val/old_name'?")));
  EXPECT_THAT([] { charts({"beauty"}); }, ThrowsMessage<UsageError>(HasSubstr(
                                              "'beauty' is no quantity; need a name of "
                                              "metrics.jsonl, or one of act/kurtosis, act/max")));
}

TEST(MapRows, are_layers_heads_or_parameters_in_the_order_of_their_numbers) {
  const RunRecord run = logging();
  EXPECT_THAT(names_of(map_rows(run.metrics, "attn/entropy")), ElementsAre("0", "2", "10"));
  EXPECT_THAT(names_of(map_rows(run.metrics, "attn/head/entropy")),
              ElementsAre("0.0", "0.1", "0.2", "1.0", "1.1", "1.2"));
  EXPECT_THAT(names_of(map_rows(run.metrics, "attn/head/entropy/1")), ElementsAre("0", "1", "2"));
  EXPECT_EQ(map_rows(run.metrics, "attn/head/entropy/1")[2].values.value.back(), 3);
  EXPECT_TRUE(map_rows(run.metrics, "attn/lambda").empty());
}

}  // namespace
}  // namespace difftape::study::page
