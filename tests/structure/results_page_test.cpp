// Recomputes the exploratory tables of docs/results.md from the committed runs.

#include "tests/structure/readme_lines.h"
#include "train/stats/interval.h"
#include "train/system/text_table.h"

namespace difftape::test {
namespace {

using BySeed = std::map<std::string, double>;

/// Runs whose `dir` in a file of results/ begins with a string.
struct Part {
  const char *file, *dir = "";
};

/// Returns a column of an arm's finished runs, by seed; those at one rate if it is not 0.
BySeed column(const std::vector<Part>& parts, const std::string& arm, const std::string& name,
              double rate) {
  BySeed found;
  for (const Part& part : parts) {
    const auto rows = system::read_csv(contents(kRoot / "results" / part.file));
    const auto at = [&](const std::string& head) {
      return static_cast<std::size_t>(std::ranges::find(rows[0], head) - rows[0].begin());
    };
    for (const auto& row : rows) {
      if (row.size() != rows[0].size() || row[at("state")] != "finished") continue;
      if (row[at("arm")] != arm || (rate != 0 && std::stod(row[at("lr")]) != rate)) continue;
      if (!row[at("dir")].starts_with(part.dir)) continue;
      EXPECT_TRUE(found.emplace(row[at("seed")], std::stod(row[at(name)])).second) << part.dir;
    }
  }
  return found;
}

/// Returns "mean (low to high)" over pairs of one seed: of differences, or of ratios.
std::string paired(const BySeed& a, const BySeed& b, bool ratio, int digits, int pairs) {
  std::vector<double> each;
  for (const auto& [seed, value] : a)
    if (b.contains(seed)) each.push_back(ratio ? std::log(value / b.at(seed)) : value - b.at(seed));
  EXPECT_EQ(std::ssize(each), pairs);
  const stats::Interval mean = stats::mean_interval(each);
  if (ratio)
    return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", std::exp(mean.mean), digits,
                       std::exp(mean.low()), digits, std::exp(mean.high()), digits);
  return fmt::format("{:+.{}f} ({:+.{}f} to {:+.{}f})", mean.mean, digits, mean.low(), digits,
                     mean.high(), digits);
}

constexpr const char *kLadder = "size_ladder/runs.csv", *kExperts = "experts/runs.csv";

TEST(ResultsPage, table_at_one_equal_rate_equals_the_committed_runs) {
  struct Set {
    const char* row;
    std::vector<Part> parts;
    std::string suffix;  ///< of the names of both arms
    double rate;
    int pairs;
  };
  const std::vector<Set> sets{
      {"| 0.067 M | 0.032, 2.6 | 6 |", {{kLadder, "a1_"}}, "", 0.032, 6},
      {"| 0.23 M | 0.016, 2.7 | 4 |", {{kLadder, "a2_"}}, "", 0.016, 4},
      {"| 0.67 M | 0.008, 2.5 | 2 |", {{kLadder, "a3_"}}, "", 0.008, 2},
      {"| experts study, dense, 0.067 M | 0.032, 2.8 | 4 |", {{kExperts}}, "", 0.032, 4},
      {"| experts study, with experts | 0.032, 2.8 | 4 |", {{kExperts}}, "_experts", 0.032, 4},
      {"| 0.23 M, GPT-2's initialization | 0.016, 8.0 | 4 |",
       {{"conditions/runs.csv", "e_"}, {"conditions/lower_rates.csv"}},
       "",
       0.016,
       4}};
  const std::string page = contents(kRoot / "docs/results.md");
  for (const Set& set : sets) {
    const auto cell = [&](const std::string& name, bool ratio, int digits) {
      return paired(column(set.parts, "v2" + set.suffix, name, set.rate),
                    column(set.parts, "softmax" + set.suffix, name, set.rate), ratio, digits,
                    set.pairs);
    };
    EXPECT_THAT(page, HasSubstr(fmt::format("{} {} | {} |", set.row, cell("val_loss", false, 3),
                                            cell("attention_logit", true, 2))));
  }
}

TEST(ResultsPage, table_at_own_rates_equals_the_committed_runs) {
  struct Quantity {
    const char *row, *arm, *column;
    bool ratio = true;
  };
  const std::string page = contents(kRoot / "docs/results.md");
  for (const Quantity& q : std::vector<Quantity>{
           {"largest attention logit", "v2", "attention_logit"},
           {"largest hidden state", "v2", "hidden_state"},
           {"kurtosis of the hidden states", "v2", "kurtosis"},
           {"rounding error of attention in bf16", "v2", "rounding_error"},
           {"median gradient norm", "v2", "grad_norm_median"},
           {"median gradient norm, V1 / softmax, n = 16, 12, 6", "v1", "grad_norm_median"},
           {"attention entropy, difference in nats", "v2", "attention_entropy", false}}) {
    std::string row = fmt::format("| {} |", q.row);
    const auto add = [&](const std::vector<Part>& runs, int pairs) {
      const auto cell = paired(column(runs, q.arm, q.column, 0),
                               column(runs, "softmax", q.column, 0), q.ratio, 2, pairs);
      row += " " + cell + " |";
    };
    add({{kLadder, "b_d32/"}}, 16);
    add({{kLadder, "b_d64_1/"},
         {kLadder, "b_d64_2/"},
         {kLadder, "b_d64_3/"},
         {kLadder, "b_d64_4/"}},
        q.arm == std::string("v2") ? 24 : 12);
    add({{kLadder, "b_d112_"}}, 6);
    EXPECT_THAT(page, HasSubstr(row));
  }
}

}  // namespace
}  // namespace difftape::test
