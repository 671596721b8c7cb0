#pragma once
// Interfaces of training and validation data: batches of token sequences.

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

class TokenSource;

/// Positions [begin, end).
struct Span {
  Index begin, end;
  Index size() const { return end - begin; }
  friend bool operator==(const Span&, const Span&) = default;
};

/// An answer: targets of one row that count as correct only together, and its cell in the accuracy
/// grid of the dataset.
struct AnswerSpan {
  Index row;     ///< row in the batch
  Span targets;  ///< input positions; positions that are not scored do not matter
  Index grid_row, grid_column;
};

/// Location of the answer for one input token, to measure attention on answer and noise.
struct RetrievalTarget {
  Index row;       ///< row in the batch
  Index position;  ///< input token whose target is part of the answer
  Span answer;     ///< tokens that contain the answer
  Span noise;      ///< the context, of which only `answer` helps
};

/// Sequences of T + 1 tokens, so that each of the T inputs has a target.
struct Batch {
  Index batch = 0;                            ///< B, number of sequences
  Index seq = 0;                              ///< T, inputs per sequence
  std::vector<std::int32_t> tokens;           ///< (B, T + 1), row-major
  std::vector<std::uint8_t> scored = {};      ///< (B, T), 1 if the target counts; empty: all count
  std::vector<AnswerSpan> answers = {};       ///< by row; empty if the dataset has no grid
  std::vector<RetrievalTarget> queries = {};  ///< by row; empty if the dataset has no answers

  std::vector<std::int32_t> inputs() const { return columns(0); }  ///< (B, T)
  /// Returns the next token of each input, (B, T); kIgnoreIndex for targets that are not scored.
  std::vector<std::int32_t> targets() const;
  Index scored_targets() const;  ///< number of scored targets
  /// Returns the tokens and scored targets of some rows, without answers and queries.
  Batch rows(Span which) const;
  /// Returns the first position of each input token's document within its row, (B, T). The token
  /// `eos_token_id` is the last of a document; returns null if it is negative.
  DocumentOffsets document_offsets(Index eos_token_id) const;

 private:
  std::vector<std::int32_t> columns(Index first) const;
};

/// Names of the rows and columns of a table of accuracies. AnswerSpan refers to its cells.
struct AccuracyGrid {
  std::vector<std::string> rows, columns;
  bool exact_match = false;  ///< an answer consists of all scored targets of its sequence
};

/// Lowest expected loss of any model, in nats per scored token, and highest expected accuracy, a
/// fraction of the scored tokens.
struct BestAchievable {
  double loss = 0, accuracy = 0;
};

/// Batches for validation.
class ValidationData {
 public:
  virtual ~ValidationData() = default;

  /// Returns validation batch i, the same for every seed.
  virtual Batch val_batch(Index i) const = 0;
  /// Returns the number of validation batches, at least 1.
  virtual Index val_batches() const = 0;

  /// Returns the domain, an index into domains(), of the first token of each row of validation
  /// batch i; empty unless it is held-out text.
  virtual std::vector<Index> val_domains(Index /*i*/) const { return {}; }
  /// Returns the names of the domains of held-out text; empty if there is only one.
  virtual std::vector<std::string> domains() const { return {}; }

  /// Returns the vocabulary size; tokens are in [0, vocab_size()).
  virtual Index vocab_size() const = 0;

  /// Returns the description for env.json: type, size and digest, or the parameters of a task.
  virtual nlohmann::ordered_json info() const = 0;

  /// Returns the optimum of a task. If it has a value, accuracy is measured.
  virtual std::optional<BestAchievable> best() const { return std::nullopt; }

  /// Returns the tokenizer of the tokens; unknown by default.
  virtual TokenizerFile tokenizer() const { return {}; }

  /// Returns the files that the batches are cut from; null for generated data.
  virtual const TokenSource* source() const { return nullptr; }

  /// Returns notes on the files that were read and left out.
  virtual std::vector<std::string> notes() const { return {}; }

  /// Returns the accuracy grid; without rows, answers are not scored as a whole.
  virtual AccuracyGrid grid() const { return {}; }
};

/// A stateless source of batches. A batch is a function of its arguments, the seed and the number
/// of sequences per step. So a run can resume at any step, and the order of the data does not
/// depend on the model.
class Dataset : public ValidationData {
 public:
  /// Returns micro-batch `micro` of an optimizer step. Its row b is sequence micro * batch_size + b
  /// of the step, so a step reads the same sequences for every split into micro-batches.
  virtual Batch train_batch(Index step, Index micro) const = 0;

  /// Returns a warning to print at the start of a run; empty without one.
  virtual std::string warning() const { return {}; }
};

/// A dataset of batches in memory. Batch i is micro-batch i of every step and validation batch i;
/// the last batch repeats.
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

/// Throws DataError unless info() of `data` equals `recorded`, which the file `made` contains.
void require_same_data(const ValidationData& data, const nlohmann::json& recorded,
                       const std::filesystem::path& made);

/// Makes the dataset of a configuration that has passed validate(). A step reads `micro_batches`
/// micro-batches (train.gradient_accumulation_steps), and the next step continues after them.
/// Throws MissingInput or DataError, which name data.path, for unusable data, and ConfigError if
/// model.vocab_size is too small for the tokens.
std::unique_ptr<Dataset> make_dataset(const DataConfig& config, const ModelConfig& model,
                                      std::uint64_t seed, Index micro_batches = 1);

/// Returns all tokens of data.path, which --data of eval sets, of type text or tokens, for
/// validation: every token except the first of each file is a target once, predicted from up to
/// seq_len tokens. Text is tokenized by `tokenizer` if that is known and its tokens are not bytes.
/// Throws like make_dataset, but names --data, and DataError for fewer than two tokens.
std::unique_ptr<ValidationData> make_whole_data(const DataConfig& config, const ModelConfig& model,
                                                const TokenizerFile& tokenizer);

}  // namespace difftape::run
