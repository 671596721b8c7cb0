// data.type backcopy: Bigram-backcopy (Guo et al. 2024), a Markov chain in which trigger symbols
// copy the symbol before them.
// A sequence is token 0, then a uniform symbol that is not a trigger. A trigger is followed by the
// symbol before it. Any other symbol v is followed by a draw from row v of the table,
// softmax_w(a_w + 1.5 z_vw), with a and z standard normal from the stream `data/bigrams` of seed 0;
// all seeds share the table. The `triggers` most frequent symbols of its chain are triggers, as in
// the paper, whose table is the bigram table of Shakespeare's characters. A trigger never follows a
// trigger. The grid has the accuracy after triggers (`copy`) and elsewhere (`bigram`).
// The best achievable loss is the mean entropy of the T targets given all earlier tokens, which is
// 0 after a trigger. With p_t(v) the probability that token t is symbol v, not a trigger, it is
// (log(symbols - triggers) + sum_{t=1}^{T-1} sum_v p_t(v) H(row v)) / T, by exact recursion over t.
// The best accuracy has max row v in place of H(row v), and 1 after a trigger.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/run/data/tasks/task.h"

namespace difftape::run {
namespace {

constexpr std::uint64_t kAnySeed = 0;  // all seeds share one table
constexpr double kRowSpread = 1.5;
constexpr int kPowerIterations = 200;

/// Returns p P, the distribution one step later.
std::vector<double> one_later(const Bigrams& bigrams, const std::vector<double>& p) {
  std::vector<double> next(p.size(), 0.0);
  for (Index v = 0; v < bigrams.symbols; ++v) {
    const double* row = bigrams.row(v);
    for (size_t w = 0; w < next.size(); ++w) next[w] += p[v] * row[w];
  }
  return next;
}

void mark_triggers(Bigrams& bigrams, Index count) {
  const auto size = static_cast<size_t>(bigrams.symbols);
  std::vector<double> p(size, 1.0 / static_cast<double>(size));
  for (int i = 0; i < kPowerIterations; ++i) p = one_later(bigrams, p);
  std::vector<Index> order(size);
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::stable_sort(order, std::greater{}, [&p](Index symbol) { return p[symbol]; });
  bigrams.triggers.assign(size, 0);
  for (Index i = 0; i < count; ++i) bigrams.triggers[order[i]] = 1;
}

double entropy(const double* p, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum -= p[i] > 0 ? p[i] * std::log(p[i]) : 0;
  return sum;
}

class Backcopy : public Task {
 public:
  Backcopy(const DataConfig& config, std::uint64_t seed)
      : Task(config, config.backcopy.vocab_size(), seed),
        bigrams_(make_bigrams(config.backcopy.symbols, config.backcopy.triggers)),
        best_(best_of_backcopy(bigrams_, config.seq_len)) {
    for (Index v = 0; v < bigrams_.symbols; ++v) {
      const double* row = bigrams_.row(v);
      std::partial_sum(row, row + bigrams_.symbols, std::back_inserter(cumulative_));
      if (!bigrams_.is_trigger(v)) starts_.push_back(v);
    }
  }

  std::optional<BestAchievable> best() const override { return best_; }
  AccuracyGrid grid() const override { return {{"bigram", "copy"}, {"all"}}; }

  nlohmann::ordered_json info() const override {
    nlohmann::ordered_json info = base_info();
    std::vector<Index> triggers;
    for (Index v = 0; v < bigrams_.symbols; ++v)
      if (bigrams_.is_trigger(v)) triggers.push_back(v + 1);
    info.update({{"symbols", config().backcopy.symbols}, {"triggers", triggers}});
    return info;
  }

 protected:
  // Token 0 begins every sequence; symbol v is token v + 1.
  Sequence train_sequence(Sampler& sampler) const override {
    Sequence made{{0}, {}};
    Index before = 0;
    Index now = starts_[sampler.below(std::ssize(starts_))];
    for (Index t = 1; t < length(); ++t) {
      made.tokens.push_back(static_cast<std::int32_t>(now + 1));
      const bool copies = bigrams_.is_trigger(now);
      if (t < config().seq_len) made.answers.push_back({0, {t, t + 1}, copies ? 1 : 0, 0});
      const Index next = copies ? before : after(now, sampler.uniform());
      before = now;
      now = next;
    }
    return made;
  }

 private:
  Index after(Index symbol, double uniform) const {
    const auto row = cumulative_.begin() + symbol * bigrams_.symbols;
    const auto end = row + bigrams_.symbols;
    return std::min<Index>(std::upper_bound(row, end, uniform * end[-1]) - row,
                           bigrams_.symbols - 1);
  }

  Bigrams bigrams_;
  BestAchievable best_;
  std::vector<double> cumulative_;  // (S, S), cumulative sums of the rows
  std::vector<Index> starts_;       // symbols that are not triggers
};

}  // namespace

Bigrams make_bigrams(Index symbols, Index triggers) {
  const RandomStream stream(kAnySeed, "data/bigrams");
  const auto normal = [&stream](Index i) { return stream.normal(static_cast<std::uint64_t>(i)); };
  Bigrams bigrams{symbols, {}, {}};
  for (Index v = 0; v < symbols; ++v) {
    std::vector<double> row;
    for (Index w = 0; w < symbols; ++w)
      row.push_back(std::exp(normal(w) + kRowSpread * normal(symbols + v * symbols + w)));
    const double total = std::accumulate(row.begin(), row.end(), 0.0);
    for (const double weight : row) bigrams.probability.push_back(weight / total);
  }
  mark_triggers(bigrams, triggers);
  return bigrams;
}

// A trigger never follows a trigger, because the copied symbol is not one. So the state is a symbol
// v that is not a trigger: the last token (probability `fresh` of v), or the one before a trigger
// (`held` of v), after which v follows with certainty.
BestAchievable best_of_backcopy(const Bigrams& bigrams, Index seq_len) {
  const auto size = static_cast<size_t>(bigrams.symbols);
  const auto starts = static_cast<double>(std::ranges::count(bigrams.triggers, 0));
  std::vector<double> fresh(size, 0.0), held(size, 0.0);
  for (size_t v = 0; v < size; ++v) fresh[v] = bigrams.triggers[v] ? 0 : 1 / starts;
  BestAchievable sum{std::log(starts), 1 / starts};
  for (Index t = 1; t < seq_len; ++t) {
    std::vector<double> next = one_later(bigrams, fresh);
    for (Index v = 0; v < bigrams.symbols; ++v) {
      const auto i = static_cast<size_t>(v);
      const double* row = bigrams.row(v);
      sum.loss += fresh[i] * entropy(row, bigrams.symbols);
      sum.accuracy += fresh[i] * *std::max_element(row, row + size) + held[i];
      next[i] = bigrams.triggers[i] ? 0 : next[i] + held[i];
      double to_trigger = 0;
      for (size_t w = 0; w < size; ++w) to_trigger += bigrams.triggers[w] ? row[w] : 0;
      held[i] = fresh[i] * to_trigger;
    }
    fresh = std::move(next);
  }
  const auto targets = static_cast<double>(seq_len);
  return {sum.loss / targets, sum.accuracy / targets};
}

std::unique_ptr<Dataset> make_backcopy(const DataConfig& config, std::uint64_t seed) {
  return std::make_unique<Backcopy>(config, seed);
}

}  // namespace difftape::run
