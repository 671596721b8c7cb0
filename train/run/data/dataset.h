#pragma once
// What a model is trained and validated on: batches of token sequences.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/attention.h"
#include "train/run/config/config.h"
#include "train/run/records/h5.h"

namespace difftape::run {

/// Positions [begin, end).
struct Span {
  Index begin, end;
  Index size() const { return end - begin; }
  friend bool operator==(const Span&, const Span&) = default;
};

/// Targets of one row that are right together or not at all, and their place in the grid of the
/// dataset.
struct AnswerSpan {
  Index row;     ///< of the batch
  Span targets;  ///< input positions; those among them that are not scored do not matter
  Index grid_row, grid_column;
};

/// Where an input token finds what it has to retrieve, to measure attention on answer and noise.
struct RetrievalTarget {
  Index row;       ///< of the batch
  Index position;  ///< of the input token whose target is part of the answer
  Span answer;     ///< the tokens that hold the answer
  Span noise;      ///< the context of which only `answer`, which lies within, helps
};

/// Sequences with one token more than the model reads, so that every input has its target.
struct Batch {
  Index batch = 0;                            ///< B, sequences
  Index seq = 0;                              ///< T, tokens the model reads of each
  std::vector<std::int32_t> tokens;           ///< (B, T + 1), row-major
  std::vector<std::uint8_t> scored = {};      ///< (B, T), 1 where the target counts; empty: all do
  std::vector<AnswerSpan> answers = {};       ///< by row; empty if the dataset has no grid
  std::vector<RetrievalTarget> queries = {};  ///< by row; empty if the dataset does not know them

  std::vector<std::int32_t> inputs() const { return columns(0); }  ///< (B, T)
  /// (B, T), inputs one later; kIgnoreIndex where it is not scored.
  std::vector<std::int32_t> targets() const;
  Index scored_targets() const;  ///< their number
  /// Where the document of each input token begins in its row, the token `eos_token_id` being the
  /// last of a document; null if it is negative.
  DocumentOffsets document_offsets(Index eos_token_id) const;

 private:
  std::vector<std::int32_t> columns(Index first) const;
};

/// Names of the rows and columns of a table of accuracies, which answers refer to.
struct AccuracyGrid {
  std::vector<std::string> rows, columns;
  bool exact_match = false;  ///< an answer is all of its sequence that is scored
};

/// The least loss that any model can expect, in nats per scored token, and the largest share of
/// scored tokens whose likeliest target is the right one.
struct BestAchievable {
  double loss = 0, accuracy = 0;
};

/// The loss on held-out text is also measured in so many groups of neighboring documents.
inline constexpr Index kLossGroups = 64;

/// Which part of held-out text a validation sequence is from: that of its first token.
struct RowOrigin {
  Index domain = 0;  ///< number in domains()
  Index group = 0;   ///< in [0, kLossGroups)
};

/// Batches that a model is scored on.
class ValidationData {
 public:
  virtual ~ValidationData() = default;

  /// Validation batch i of val_batches(), at least 1. The same for every seed.
  virtual Batch val_batch(Index i) const = 0;
  virtual Index val_batches() const = 0;

  /// Where the rows of that batch are from; empty of data that are no held-out part of a text.
  virtual std::vector<RowOrigin> val_origins(Index /*i*/) const { return {}; }
  /// The names of the domains of held-out text; empty if they are not told apart.
  virtual std::vector<std::string> domains() const { return {}; }

  /// Tokens are in [0, vocab_size()).
  virtual Index vocab_size() const = 0;

  /// What env.json records: type, size and digest, or the numbers that make a task.
  virtual nlohmann::ordered_json info() const = 0;

  /// Of a task, whose answers are right or wrong, so that accuracy is measured; else nothing.
  virtual std::optional<BestAchievable> best() const { return std::nullopt; }

  /// What made its tokens of text, if that is known.
  virtual TokenizerFile tokenizer() const { return {}; }

  /// Without rows: answers are not counted one by one.
  virtual AccuracyGrid grid() const { return {}; }
};

/// A source of batches without state: each is a function of its arguments, the seed and the number
/// of sequences of a step, so a run continues anywhere, and the order of the data does not depend
/// on the model.
class Dataset : public ValidationData {
 public:
  /// Micro-batch `micro` of an optimiser step. Its row b is sequence micro * batch_size + b of the
  /// step: a step sees the same sequences however they are split into micro-batches.
  virtual Batch train_batch(Index step, Index micro) const = 0;

  /// The entropy of a token given the one before it, nats, from the pairs in what trains: a model
  /// that does not get below it has learned less than a table of pairs. Of generated data nothing.
  virtual std::optional<double> bigram_entropy() const { return std::nullopt; }
};

/// Batches in memory in place of a data set: batch i of each step and of validation. The last batch
/// repeats after that.
class FixedBatches : public Dataset {
 public:
  FixedBatches(std::vector<Batch> batches, Index vocab_size)
      : batches_(std::move(batches)), vocab_size_(vocab_size) {}

  Batch train_batch(Index, Index micro) const override { return val_batch(micro); }
  Batch val_batch(Index i) const override { return batches_[std::min(i, val_batches() - 1)]; }
  Index val_batches() const override { return std::ssize(batches_); }
  Index vocab_size() const override { return vocab_size_; }
  nlohmann::ordered_json info() const override;

 protected:
  std::vector<Batch> batches_;
  Index vocab_size_;
};

/// Throws DataError unless `data` are those of which `made` recorded this info.
void require_same_data(const ValidationData& data, const nlohmann::json& recorded,
                       const std::filesystem::path& made);

/// `config` and `model` have passed validate(). Throws MissingInput or DataError about the data,
/// each naming data.path, and ConfigError for a model.vocab_size too small for the tokens. A step
/// has `micro_batches` (train.gradient_accumulation_steps), so that the next one goes on behind
/// their sequences.
std::unique_ptr<Dataset> make_dataset(const DataConfig& config, const ModelConfig& model,
                                      std::uint64_t seed, Index micro_batches = 1);

/// The tokens of data.path, of kind text or tokens, all of them to be predicted: every token but
/// the first is a target once, after the up to seq_len tokens of its sequence. Throws as
/// make_dataset does, and DataError for fewer than two tokens.
std::unique_ptr<ValidationData> make_whole_data(const DataConfig& config, const ModelConfig& model);

}  // namespace difftape::run
