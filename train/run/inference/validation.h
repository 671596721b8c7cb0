#pragma once
// How good a model is at predicting batches: while it trains, and afterwards.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "layers/language_model.h"
#include "train/run/data/dataset.h"
#include "train/run/records/metrics.h"

namespace difftape::run {

/// Adds up what ValidationData::val_origins tells apart; nothing of data without.
class OriginLosses {
 public:
  /// For the first `batches`.
  OriginLosses(const ValidationData& data, Index batches);

  /// Validation batch i, with LossTerms::row_losses.
  void add(Index i, const Batch& batch, std::span<const double> row_losses);

  /// Sums up what all processes that train together added; all must call it, and then get the same
  /// bits whatever their number.
  void share();

  /// val/loss/<domain>, nats per scored token, of the domains that have any.
  std::vector<std::pair<std::string, double>> domains() const;
  GroupLosses groups() const;

 private:
  struct Sum {
    double loss = 0;
    Index tokens = 0;
  };
  /// Over the sequences of each part; `part_of` tells which of so many.
  std::vector<Sum> sums(std::size_t parts, Index RowOrigin::*part_of) const;

  std::vector<std::string> names_;
  std::vector<RowOrigin> origins_;     ///< of each sequence
  std::vector<std::size_t> first_of_;  ///< sequence of each batch
  std::vector<Sum> sequences_;
};

/// Counts hits: a scored target whose logit is above all others; a tie is a miss.
class TaskAccuracy {
 public:
  explicit TaskAccuracy(const AccuracyGrid& grid);

  /// logits (B, T, V) of the batch.
  void add(const Batch& batch, const Tensor& logits);

  /// Counts what all processes that train together counted; all must call it.
  void share();

  /// val/accuracy, the share of scored targets that were hit; with a grid task/accuracy/ROW/COLUMN,
  /// the share of answers all of whose scored targets were, where there were any; with
  /// AccuracyGrid::exact_match also task/exact_match, that share of all answers.
  std::vector<std::pair<std::string, double>> metrics() const;

 private:
  struct Share {
    Index hits = 0, total = 0;
    void add(bool hit) {
      hits += hit ? 1 : 0;
      ++total;
    }
    double value() const { return static_cast<double>(hits) / static_cast<double>(total); }
  };
  Share& cell(Index row, Index column);

  AccuracyGrid grid_;
  Share targets_, answers_;
  std::vector<Share> cells_;  // (rows, columns)
};

/// What a validation reads, and how.
struct ValidationRequest {
  Index batches = 0;        ///< the first ones
  Index eos_token_id = -1;  ///< attention stays within the documents that it ends
  Precision precision = Precision::full;
  Tape::Events events{};   ///< see the tapes
  bool positions = false;  ///< measures loss_by_position too, which needs all logits of a batch
};

/// What it measures.
struct Validation {
  double loss = 0;  ///< nats per scored token, without z-loss
  /// Of a task TaskAccuracy::metrics, of several domains their losses.
  std::vector<std::pair<std::string, double>> metrics;
  Index tokens = 0;    ///< scored
  GroupLosses groups;  ///< of held-out text
  /// Nats per scored token at each place of a sequence, from 0; NaN where none is scored.
  std::vector<double> loss_by_position = {};
};

/// Means over the scored tokens of validation batches. batches >= 1. Processes that train together
/// share the batches and must all call it.
Validation validate(LanguageModel& model, const ValidationData& data,
                    const ValidationRequest& request);

/// How well each place of a sequence is predicted: what a model makes of more context, and of
/// positions beyond those of its training.
class PositionLosses {
 public:
  /// logits (B, T, V) of the batch.
  void add(const Batch& batch, const Tensor& logits);
  /// Mean cross-entropy at each place, nats per scored token; NaN where none is scored.
  std::vector<double> means() const;

 private:
  std::vector<double> sums_;
  std::vector<Index> counts_;
};

/// A validation, and what the text behind the tokens and the clock say of it.
struct Evaluation : Validation {
  double bits_per_byte = kNaN;  ///< NaN: the tokenizer is not known
  double tokens_per_sec = 0;
};

/// `tokenizer` made the tokens. Otherwise as validate().
Evaluation evaluate(LanguageModel& model, const ValidationData& data,
                    const ValidationRequest& request, const TokenizerFile& tokenizer);

}  // namespace difftape::run
