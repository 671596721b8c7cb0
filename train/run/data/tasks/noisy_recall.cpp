// data.type noisy_recall: in-context recall among noise.
// MAD; Poli et al. 2024, with several queries. T + 1 tokens are slots of two; an odd token, the
// first, is noise. A slot is noise with probability `noise` or else a pair: a key, uniform with
// replacement, and its value, drawn when the key first comes. One slot, drawn at random, is a pair
// in any case; the last slot is the pair of a key that was there. MAD's own training scores every
// token; here only those values are scored whose key was there before, as in its evaluation. Grid:
// noise in percent by slots between a key and its last occurrence.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "train/run/data/tasks/task.h"

namespace difftape::run {

namespace {

class NoisyRecall : public Task {
 public:
  NoisyRecall(const DataConfig& config, std::uint64_t seed)
      : Task(config, config.noisy_recall.vocab_size(), seed) {}

  AccuracyGrid grid() const override {
    return {{fmt::format("noise{}", std::lround(100 * sizes().noise))}, gap_columns(slots() - 1)};
  }

  nlohmann::ordered_json info() const override {
    nlohmann::ordered_json info = base_info();
    info.update({{"noise", sizes().noise},
                 {"keys", sizes().keys},
                 {"values", sizes().values},
                 {"filler", sizes().filler}});
    return info;
  }

 protected:
  // Tokens: keys, values, noise.
  Sequence train_sequence(Sampler& sampler) const override {
    Sequence made;
    made.scored.assign(static_cast<size_t>(config().seq_len), 0);
    if (length() % 2 == 1) made.tokens.push_back(noise(sampler));
    Pairs pairs;
    const Index surely_a_pair = sampler.below(slots() - 1);
    for (Index slot = 0; slot < slots() - 1; ++slot) {
      const bool is_noise = sampler.chance(sizes().noise) && slot != surely_a_pair;
      if (is_noise) {
        made.tokens.push_back(noise(sampler));
        made.tokens.push_back(noise(sampler));
      } else {
        put_pair(made, pairs, static_cast<std::int32_t>(sampler.below(sizes().keys)), slot,
                 sampler);
      }
    }
    const auto probe = std::next(pairs.begin(), sampler.below(static_cast<Index>(pairs.size())));
    put_pair(made, pairs, probe->first, slots() - 1, sampler);
    return made;
  }

 private:
  const NoisyRecallConfig& sizes() const { return config().noisy_recall; }
  struct Pair {
    std::int32_t value;
    Index slot;  ///< where it was seen last
  };
  using Pairs = std::map<std::int32_t, Pair>;  // by key

  Index slots() const { return length() / 2; }

  std::int32_t noise(Sampler& sampler) const {
    return static_cast<std::int32_t>(sizes().keys + sizes().values + sampler.below(sizes().filler));
  }

  /// The key and its value, which is scored if the key was there before.
  void put_pair(Sequence& made, Pairs& pairs, std::int32_t key, Index slot,
                Sampler& sampler) const {
    const auto position = static_cast<Index>(made.tokens.size());
    const auto found = pairs.find(key);
    if (found == pairs.end()) {
      const auto value = static_cast<std::int32_t>(sizes().keys + sampler.below(sizes().values));
      pairs[key] = {value, slot};
    } else {
      made.scored[static_cast<size_t>(position)] = 1;
      made.answers.push_back(
          {0, {position, position + 1}, 0, gap_column(slot - found->second.slot - 1)});
      found->second.slot = slot;
    }
    made.tokens.push_back(key);
    made.tokens.push_back(pairs[key].value);
  }
};

}  // namespace

std::unique_ptr<Dataset> make_noisy_recall(const DataConfig& config, Index, std::uint64_t seed) {
  return std::make_unique<NoisyRecall>(config, seed);
}

}  // namespace difftape::run
