#pragma once
// Generated tasks and their common base. The head of <type>.cpp defines each task. Sizes come from
// keys in the section `data:` that have passed validate().

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/random.h"
#include "train/run/data/dataset.h"

namespace difftape::run {

/// Makes needle-in-a-haystack: N facts "city -> number" in filler, then R queried cities (V1 paper,
/// section 3.4).
std::unique_ptr<Dataset> make_needles(const DataConfig& config, std::uint64_t seed);
/// Makes multi-query associative recall, MQAR (Arora et al. 2023, "Zoology").
std::unique_ptr<Dataset> make_mqar(const DataConfig& config, std::uint64_t seed);
/// Makes Bigram-backcopy (Guo et al. 2024, "Active-Dormant Attention Heads").
std::unique_ptr<Dataset> make_backcopy(const DataConfig& config, std::uint64_t seed);

/// Sequential random numbers for one sequence.
class Sampler {
 public:
  explicit Sampler(std::uint64_t seed) : stream_(seed, "data/sequence") {}

  /// Draws uniformly from [0, bound), bound > 0.
  Index below(Index bound) {
    return static_cast<Index>(stream_.below(next_++, static_cast<std::uint64_t>(bound)));
  }
  /// Draws uniformly from (0, 1).
  double uniform() { return stream_.uniform(next_++); }
  /// Draws `count` different numbers from [0, bound); all choices and orders are equally likely.
  std::vector<Index> distinct(Index count, Index bound);

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

/// One row of a batch.
struct Sequence {
  std::vector<std::int32_t> tokens;           ///< (T + 1)
  std::vector<std::uint8_t> scored;           ///< (T), or empty if all targets are scored
  std::vector<AnswerSpan> answers = {};       ///< with row 0
  std::vector<RetrievalTarget> queries = {};  ///< with row 0
};

/// A dataset that draws sequence n of a step from (seed, step, n), and sequence n of validation
/// from n.
class Task : public Dataset {
 public:
  Batch train_batch(Index step, Index micro) const override;
  Batch val_batch(Index i) const override;
  Index val_batches() const override;
  Index vocab_size() const override { return vocab_size_; }
  std::optional<BestAchievable> best() const override { return BestAchievable{0, 1}; }

 protected:
  Task(const DataConfig& config, Index vocab_size, std::uint64_t seed);

  /// Returns T + 1, the tokens per sequence.
  Index length() const { return config_.seq_len + 1; }
  const DataConfig& config() const { return config_; }

  virtual Sequence train_sequence(Sampler& sampler) const = 0;
  /// Draws validation sequence n, by default like a training sequence.
  virtual Sequence val_sequence(Sampler& sampler, Index /*n*/) const {
    return train_sequence(sampler);
  }
  /// Returns type and vocab_size, to which a task adds its parameters.
  nlohmann::ordered_json base_info() const;

 private:
  DataConfig config_;
  Index vocab_size_;
  RandomStream train_, val_;
};

/// Table of data.type backcopy: transition probabilities of the symbols 0 to S - 1. It depends only
/// on the sizes.
struct Bigrams {
  Index symbols = 0;                   ///< S
  std::vector<double> probability;     ///< (S, S), rows sum to 1; rows of triggers are unused
  std::vector<std::uint8_t> triggers;  ///< (S), 1 for a trigger

  const double* row(Index symbol) const { return probability.data() + symbol * symbols; }
  bool is_trigger(Index symbol) const { return triggers[symbol] != 0; }
};

/// Makes the table. Row v is softmax_w(a_w + 1.5 z_vw), with a and z standard normal from the
/// stream "data/bigrams" of seed 0. The triggers are the most frequent symbols in the stationary
/// distribution of the table.
Bigrams make_bigrams(Index symbols, Index triggers);

/// Returns the optimum of backcopy, averaged over the T targets of a sequence. The loss is the
/// entropy of the target given all earlier tokens, in nats; the accuracy is the probability of the
/// most likely target.
BestAchievable best_of_backcopy(const Bigrams& bigrams, Index seq_len);

}  // namespace difftape::run
