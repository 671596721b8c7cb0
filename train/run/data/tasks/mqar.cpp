// data.type mqar: multi-query associative recall (Arora et al. 2023, `multiquery_ar` of Zoology).
// A sequence has D distinct keys and D distinct values; pair i is at token 2i. The query of a pair
// with gap g is its key at token 2D + 2g, followed by its value. Gaps in [0, (T - 2D) / 2) are
// drawn without replacement, p(g) ~ (g + 1)^(a - 1), a = `gap_power`. All other tokens are uniform
// over the tokens that are not keys of the sequence. The grid has D by gap. Zoology differs in two
// ways. Its inputs have a random token in place of the value; here, targets are the inputs shifted
// by one. Its other tokens may be keys, which is rare with its 8192 tokens but would make false
// pairs with 128.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "train/run/data/tasks/task.h"

namespace difftape::run {
namespace {

/// Returns the columns "gap0", "gap1", "gap2-3", "gap4-7", ... for gaps in [0, count).
std::vector<std::string> gap_columns(Index count) {
  std::vector<std::string> names;
  for (Index first = 0; first < count; first = first == 0 ? 1 : 2 * first) {
    names.push_back(first < 2 ? fmt::format("gap{}", first)
                              : fmt::format("gap{}-{}", first, 2 * first - 1));
  }
  return names;
}
Index gap_column(Index gap) { return std::bit_width(static_cast<std::uint64_t>(gap)); }

class Mqar : public Task {
 public:
  Mqar(const DataConfig& config, std::uint64_t seed)
      : Task(config, config.mqar.vocab_size(), seed) {
    for (Index gap = 0; gap < gaps(); ++gap)
      weights_.push_back(std::pow(static_cast<double>(gap + 1), config.mqar.gap_power - 1));
  }

  AccuracyGrid grid() const override {
    return {{fmt::format("pairs{}", sizes().pairs)}, gap_columns(gaps())};
  }

  nlohmann::ordered_json info() const override {
    nlohmann::ordered_json info = base_info();
    info.update({{"pairs", sizes().pairs},
                 {"gap_power", sizes().gap_power},
                 {"keys", sizes().keys},
                 {"values", sizes().values}});
    return info;
  }

 protected:
  // Keys are the first tokens, values the next.
  Sequence train_sequence(Sampler& sampler) const override {
    const Index pairs = sizes().pairs;
    const auto keys = sampler.distinct(pairs, sizes().keys);
    const auto values = sampler.distinct(pairs, sizes().values);
    const auto gap = drawn_gaps(sampler);
    Sequence made;
    made.tokens.resize(length());
    made.scored.assign(config().seq_len, 0);
    const std::vector<std::int32_t> others = tokens_but(keys);
    for (std::int32_t& token : made.tokens) token = others[sampler.below(std::ssize(others))];
    const auto put_pair = [&](Index i, Index at) {
      const auto place = made.tokens.begin() + at;
      place[0] = static_cast<std::int32_t>(keys[i]);
      place[1] = static_cast<std::int32_t>(sizes().keys + values[i]);
    };
    for (Index i = 0; i < pairs; ++i) {
      const Index g = gap[i], query = 2 * pairs + 2 * g;
      put_pair(i, 2 * i);
      put_pair(i, query);
      made.scored[query] = 1;
      made.answers.push_back({0, {query, query + 1}, 0, gap_column(g)});
    }
    return made;
  }

 private:
  const MqarConfig& sizes() const { return config().mqar; }
  /// Returns the number of positions for a query and its value after the pairs.
  Index gaps() const { return (config().seq_len - 2 * sizes().pairs) / 2; }

  /// Draws D different gaps in sequence, with probabilities proportional to the weights of the
  /// remaining gaps. They are the indices of the D smallest E_g / w_g with E_g exponential
  /// (Efraimidis and Spirakis 2006).
  std::vector<Index> drawn_gaps(Sampler& sampler) const {
    std::vector<std::pair<double, Index>> times;
    for (size_t g = 0; g < weights_.size(); ++g)
      times.emplace_back(-std::log(sampler.uniform()) / weights_[g], static_cast<Index>(g));
    std::partial_sort(times.begin(), times.begin() + sizes().pairs, times.end());
    std::vector<Index> selected;
    for (Index i = 0; i < sizes().pairs; ++i) selected.push_back(times[i].second);
    return selected;
  }

  /// Returns all tokens except the keys, for positions without a query.
  std::vector<std::int32_t> tokens_but(const std::vector<Index>& keys) const {
    std::vector<bool> taken(vocab_size());
    for (const Index key : keys) taken[key] = true;
    std::vector<std::int32_t> others;
    for (size_t token = 0; token < taken.size(); ++token)
      if (!taken[token]) others.push_back(static_cast<std::int32_t>(token));
    return others;
  }

  std::vector<double> weights_;  // by gap
};

}  // namespace

std::unique_ptr<Dataset> make_mqar(const DataConfig& config, std::uint64_t seed) {
  return std::make_unique<Mqar>(config, seed);
}

}  // namespace difftape::run
