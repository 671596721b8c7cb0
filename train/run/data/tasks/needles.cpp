// data.type needles: needle-in-a-haystack, facts hidden in filler (V1 paper, section 3.4).
// A setting (N, R) is a pair from `facts` and `queries`; all S settings are equally likely. The
// context is cut into slots of 1 + `digits` tokens; remaining tokens come first and are filler. N
// facts [city, digits] about different cities are in N random slots; the other slots are filler. R
// of the facts, in random order, are queried.
// In validation, sequence n has setting n mod S and depth n / S mod 5. The fact queried first is in
// slot round(depth x (slots - 1)), with depth 0, 25, 50, 75 or 100 %; the others are in random
// slots. The grid has N by depth; a sequence counts as correct if all R answers are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/run/data/tasks/task.h"

namespace difftape::run {
namespace {

// Tokens in order: the question marker, ten digits, cities, filler.
constexpr std::int32_t kMarker = 0, kDigit = 1, kCity = 11;

/// A fact "city -> number" in a slot of the context.
struct Fact {
  std::int32_t city;
  std::vector<std::int32_t> number;
  Index begin;  ///< position of the city
};

class Needles : public Task {
 public:
  Needles(const DataConfig& config, std::uint64_t seed)
      : Task(config, config.needles.vocab_size(), seed), rows_(config.needles.facts) {
    std::ranges::sort(rows_);
    rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
  }

  AccuracyGrid grid() const override {
    AccuracyGrid grid;
    for (const Index facts : rows_) grid.rows.push_back(fmt::format("n{}", facts));
    for (Index depth = 0; depth < NeedlesConfig::kDepths; ++depth)
      grid.columns.push_back(fmt::format("depth{}", 100 * depth / (NeedlesConfig::kDepths - 1)));
    grid.exact_match = true;
    return grid;
  }

  nlohmann::ordered_json info() const override {
    nlohmann::ordered_json info = base_info();
    info.update({{"facts", sizes().facts},
                 {"queries", sizes().queries},
                 {"cities", sizes().cities},
                 {"digits", sizes().digits},
                 {"filler", sizes().filler}});
    return info;
  }

 protected:
  Sequence train_sequence(Sampler& sampler) const override {
    const auto setting = static_cast<size_t>(sampler.below(settings()));
    return sequence(sampler, setting, sampler.distinct(sizes().facts[setting], slots(setting)));
  }

  Sequence val_sequence(Sampler& sampler, Index n) const override {
    const auto setting = static_cast<size_t>(n % settings());
    const Index depth = n / settings() % NeedlesConfig::kDepths;
    Sequence made = sequence(sampler, setting, slots_with_answer_at(sampler, setting, depth));
    const Index row = std::ranges::find(rows_, sizes().facts[setting]) - rows_.begin();
    made.answers.push_back({0, {context(setting), config().seq_len}, row, depth});
    return made;
  }

 private:
  const NeedlesConfig& sizes() const { return config().needles; }
  Index settings() const { return std::ssize(sizes().facts); }
  /// Returns the number of tokens before the questions.
  Index context(size_t setting) const {
    return length() - sizes().queries[setting] * sizes().question_tokens();
  }
  Index slots(size_t setting) const { return context(setting) / sizes().fact_tokens(); }

  /// Draws a slot for each fact: the first at the given depth, the others at random.
  std::vector<Index> slots_with_answer_at(Sampler& sampler, size_t setting, Index depth) const {
    const double share = static_cast<double>(depth) / (NeedlesConfig::kDepths - 1);
    const Index last = slots(setting) - 1;
    const Index answer = std::llround(share * static_cast<double>(last));
    std::vector<Index> selected{answer};
    for (const Index other : sampler.distinct(sizes().facts[setting] - 1, last))
      selected.push_back(other < answer ? other : other + 1);
    return selected;
  }

  std::int32_t filler(Sampler& sampler) const {
    return static_cast<std::int32_t>(kCity + sizes().cities + sampler.below(sizes().filler));
  }

  /// Draws facts about different cities for the given slots.
  std::vector<Fact> facts_at(Sampler& sampler, size_t setting, const std::vector<Index>& at) const {
    const Index left_over = context(setting) - slots(setting) * sizes().fact_tokens();
    const auto cities = sampler.distinct(std::ssize(at), sizes().cities);
    std::vector<Fact> facts;
    for (size_t i = 0; i < at.size(); ++i) {
      Fact fact{static_cast<std::int32_t>(kCity + cities[i]),
                {},
                left_over + at[i] * sizes().fact_tokens()};
      for (Index digit = 0; digit < sizes().digits; ++digit)
        fact.number.push_back(static_cast<std::int32_t>(kDigit + sampler.below(10)));
      facts.push_back(std::move(fact));
    }
    return facts;
  }

  Sequence sequence(Sampler& sampler, size_t setting, const std::vector<Index>& at) const {
    Sequence made;
    made.scored.assign(config().seq_len, 0);
    const Index end = context(setting);
    for (Index t = 0; t < end; ++t) made.tokens.push_back(filler(sampler));
    const std::vector<Fact> facts = facts_at(sampler, setting, at);
    for (const Fact& fact : facts) {
      made.tokens[fact.begin] = fact.city;
      std::ranges::copy(fact.number, made.tokens.begin() + fact.begin + 1);
    }
    for (Index q = 0; q < sizes().queries[setting]; ++q) ask(made, facts[q], end);
    return made;
  }

  /// Appends marker, city and number; only the digits are scored.
  void ask(Sequence& made, const Fact& fact, Index context_end) const {
    made.tokens.insert(made.tokens.end(), {kMarker, fact.city});
    for (const std::int32_t digit : fact.number) {
      const auto position = std::ssize(made.tokens) - 1;
      made.scored[position] = 1;
      made.queries.push_back(
          {0, position, {fact.begin, fact.begin + sizes().fact_tokens()}, {0, context_end}});
      made.tokens.push_back(digit);
    }
  }

  std::vector<Index> rows_;  // the different N, ascending
};

}  // namespace

std::unique_ptr<Dataset> make_needles(const DataConfig& config, std::uint64_t seed) {
  return std::make_unique<Needles>(config, seed);
}

}  // namespace difftape::run
