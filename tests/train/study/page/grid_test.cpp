#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/page/sections.h"

namespace difftape::study::page {
namespace {

using test::records;
using test::Result;
using testing::ElementsAre;
using testing::HasSubstr;

/// Two kinds of attention, three learning rates and two clipping norms, two seeds.
std::vector<Result> grid() {
  std::vector<Result> results;
  for (const char* kind : {"softmax", "diff_v2"}) {
    for (const double lr : {1e-2, 1e-3, 1e-4}) {
      for (const char* clip : {"1", "0.5"}) {
        for (const int seed : {1, 2}) {
          results.push_back({.arm = kind,
                             .attention = {{"kind", kind}},
                             .lr = lr,
                             .seed = seed,
                             .loss = 2 + lr + 0.1 * seed + (clip == std::string("1") ? 0 : 0.5),
                             .config = {{"optim.max_grad_norm", clip}, {"optim.min_lr", "7"}}});
        }
      }
    }
  }
  results.back().state = run::RunState::diverged;
  results[results.size() - 2].state = run::RunState::diverged;
  return results;
}

GridSection section_of(const std::vector<Result>& results) {
  const std::vector<RunRecord> runs = records(results);
  return grid_section(make_study(runs));
}

TEST(Grid, has_an_axis_a_key_and_a_line_a_condition) {
  const GridSection section = section_of(grid());
  EXPECT_EQ(section.data["keys"].dump(),
            R"(["model.attention.kind","optim.lr","optim.max_grad_norm"])");
  EXPECT_EQ(section.data["values"][1].dump(), R"(["0.0001","0.001","0.01"])") << "by size";
  EXPECT_EQ(section.data["values"][2].dump(), R"(["0.5","1"])");
  ASSERT_EQ(section.data["lines"].size(), 12u);
  std::vector<std::string> lines;
  for (const auto& line : section.data["lines"]) lines.push_back(line["values"].dump());
  EXPECT_THAT(lines, testing::Contains(R"(["softmax","0.01","0.5"])"));
  const auto& diverged = section.data["lines"].back();
  EXPECT_TRUE(std::ranges::any_of(section.data["lines"], [](const auto& line) {
    return line["loss"].is_null() && line["values"].dump() == R"(["diff_v2","0.0001","0.5"])";
  })) << diverged.dump();
}

TEST(Grid, is_a_map_of_the_mean_loss_over_two_keys_for_each_kind_of_attention) {
  const GridSection section = section_of(grid());
  EXPECT_THAT(section.html, HasSubstr("<p class=\"arm\">softmax</p><svg"));
  EXPECT_THAT(section.html, HasSubstr("arm,max_grad_norm,lr,value%0A"
                                      "softmax,0.5,0.0001,2.6501%0A"));
  EXPECT_THAT(section.html, HasSubstr("<title>max_grad_norm 1, lr 0.01: 2.16</title>"));
  EXPECT_THAT(section.html, testing::Not(HasSubstr("lowest over all other keys")));
}

TEST(Grid, of_three_keys_shows_the_lowest_over_the_third) {
  std::vector<Result> results;
  for (const char* ff : {"64", "128"}) {
    for (const char* clip : {"1", "0.5"}) {
      for (const char* decay : {"0", "0.1"}) {
        results.push_back({.loss = decay == std::string("0") ? 2.0 : 3.0,
                           .config = {{"model.d_ff", ff},
                                      {"optim.max_grad_norm", clip},
                                      {"optim.weight_decay", decay}}});
      }
    }
  }
  const GridSection section = section_of(results);
  EXPECT_THAT(section.html, HasSubstr("the lowest over all other keys"));
  EXPECT_THAT(section.html, HasSubstr("<p class=\"constant\">2 everywhere: "));
}

TEST(Grid, stays_within_the_task_of_the_baseline) {
  std::vector<Result> results = grid();
  for (Result result : grid()) {
    result.loss = 0.5;
    result.config["train.steps"] = "40";
    results.push_back(result);
  }
  const GridSection section = section_of(results), alone = section_of(grid());
  EXPECT_EQ(section.data["keys"], alone.data["keys"]);
  EXPECT_EQ(section.data["lines"].size(), alone.data["lines"].size());
  EXPECT_THAT(section.html, HasSubstr("nats per token; 20 steps"));
  EXPECT_THAT(section.html, testing::Not(HasSubstr("0.5%0A")));
}

TEST(Grid, is_none_of_learning_rates_or_kinds_alone) {
  std::vector<Result> lrs, kinds;
  for (const double lr : {1e-4, 1e-3, 1e-2, 1e-1}) {
    for (const char* kind : {"softmax", "diff_v2"}) {
      // A size that follows from the kind is no key of its own.
      lrs.push_back({.arm = kind,
                     .attention = {{"kind", kind}},
                     .lr = lr,
                     .config = {{"model.d_ff", kind == std::string("softmax") ? "344" : "340"}}});
    }
  }
  EXPECT_EQ(section_of(lrs).html, "");
  EXPECT_EQ(section_of({{}}).html, "");
}

}  // namespace
}  // namespace difftape::study::page
