#pragma once
// Data that is generated: its kinds, and what they have in common. The head of <kind>.cpp defines
// each; the sizes come from the keys of section data, which validate() has found possible.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/random.h"
#include "train/run/data/dataset.h"

namespace difftape::run {

/// N facts "city -> number" in filler, R cities asked for at the end (V1 paper, section 3.4).
std::unique_ptr<Dataset> make_needles(const DataConfig& config, std::uint64_t seed);
/// Multi-query associative recall, MQAR (Arora et al. 2023, "Zoology").
std::unique_ptr<Dataset> make_mqar(const DataConfig& config, std::uint64_t seed);
/// Bigram-backcopy (Guo et al. 2024, "Active-Dormant Attention Heads").
std::unique_ptr<Dataset> make_backcopy(const DataConfig& config, std::uint64_t seed);

/// Random numbers drawn one after the other, for one sequence.
class Sampler {
 public:
  explicit Sampler(std::uint64_t seed) : stream_(seed, "data/sequence") {}

  /// Uniform on [0, bound). bound > 0.
  Index below(Index bound) {
    return static_cast<Index>(stream_.below(next_++, static_cast<std::uint64_t>(bound)));
  }
  /// Uniform on (0, 1).
  double uniform() { return stream_.uniform(next_++); }
  /// `count` different numbers of [0, bound), every choice and order as likely.
  std::vector<Index> distinct(Index count, Index bound);

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

/// One row of a batch.
struct Sequence {
  std::vector<std::int32_t> tokens;           ///< T + 1
  std::vector<std::uint8_t> scored;           ///< T, or empty: all
  std::vector<AnswerSpan> answers = {};       ///< row 0
  std::vector<RetrievalTarget> queries = {};  ///< row 0
};

/// A dataset whose sequence number n of a step is drawn from (seed, step, n) alone, and that of
/// validation from n.
class Task : public Dataset {
 public:
  Batch train_batch(Index step, Index micro) const override;
  Batch val_batch(Index i) const override;
  Index val_batches() const override;
  Index vocab_size() const override { return vocab_size_; }
  std::optional<BestAchievable> best() const override { return BestAchievable{0, 1}; }

 protected:
  Task(const DataConfig& config, Index vocab_size, std::uint64_t seed);

  /// T + 1
  Index length() const { return config_.seq_len + 1; }
  const DataConfig& config() const { return config_; }

  virtual Sequence train_sequence(Sampler& sampler) const = 0;
  /// Sequence n of validation; drawn like those of training unless a task says otherwise.
  virtual Sequence val_sequence(Sampler& sampler, Index /*n*/) const {
    return train_sequence(sampler);
  }
  /// type and vocab_size; a task adds its own numbers.
  nlohmann::ordered_json base_info() const;

 private:
  DataConfig config_;
  Index vocab_size_;
  RandomStream train_, val_;
};

/// The fixed table of data.type backcopy: transition probabilities of the symbols 0 to S - 1, the
/// same for every run of these sizes.
struct Bigrams {
  Index symbols = 0;                   ///< S
  std::vector<double> probability;     ///< (S, S), rows sum to 1; those of triggers are not used
  std::vector<std::uint8_t> triggers;  ///< (S), 1 for a trigger

  const double* row(Index symbol) const { return probability.data() + symbol * symbols; }
  bool is_trigger(Index symbol) const { return triggers[symbol] != 0; }
};

/// Row v is softmax_w(a_w + 1.5 z_vw), a and z standard normal from the stream "data/bigrams" of
/// seed 0. The triggers are the symbols that are most frequent in the long run of the table alone.
Bigrams make_bigrams(Index symbols, Index triggers);

/// Means over the T targets of a sequence of backcopy: of the entropy of the target given all
/// before it, in nats, and of the probability of the likeliest target.
BestAchievable best_of_backcopy(const Bigrams& bigrams, Index seq_len);

}  // namespace difftape::run
