#pragma once
// Validation of a model during and after training.

#include <exception>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "layers/language_model.h"
#include "train/run/data/dataset.h"
#include "train/run/records/metrics.h"

namespace difftape::run {

/// Sums losses on held-out text by domain and by part of the sequence. Data without
/// ValidationData::val_domains have no sums.
class HeldOutLosses {
 public:
  /// Prepares sums for the first `batches` validation batches.
  HeldOutLosses(const ValidationData& data, Index batches);

  /// Adds validation batch i, with its LossTerms::row_losses in nats.
  void add(Index i, const Batch& batch, std::span<const double> row_losses);

  /// All-reduces the sums. All processes must call it; the result does not depend on their number.
  void share();

  /// Returns val/loss/<domain>, nats per scored token, of domains with scored tokens, and
  /// val/context_gain if tokens in both of its ranges of positions were scored.
  std::vector<std::pair<std::string, double>> metrics() const;

 private:
  struct Sum {
    double loss = 0;
    Index tokens = 0;
    void add(const Sum& other) {
      loss += other.loss;
      tokens += other.tokens;
    }
    double mean() const { return tokens > 0 ? loss / static_cast<double>(tokens) : kNaN; }
  };
  /// Losses of one sequence: of all positions, of the second quarter, and of the second half.
  struct Sequence {
    Sum all, near, far;
  };

  std::vector<std::string> names_;
  std::vector<Index> domains_;         ///< domain of each sequence
  std::vector<std::size_t> first_of_;  ///< index of the first sequence of each batch
  std::vector<Sequence> sequences_;
};

/// Counts hits: scored targets whose logit is above all others; a tie is a miss.
class TaskAccuracy {
 public:
  explicit TaskAccuracy(const AccuracyGrid& grid);

  /// Adds a batch with its logits (B, T, V).
  void add(const Batch& batch, const Tensor& logits);

  /// All-reduces the counts; all processes must call it.
  void share();

  /// Returns val/accuracy, the fraction of scored targets that are hits. With a grid, also
  /// task/accuracy/ROW/COLUMN, the fraction of answers in a cell whose scored targets are all hits;
  /// with AccuracyGrid::exact_match, also task/exact_match, that fraction over all answers.
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

/// Parameters of a validation.
struct ValidationRequest {
  Index batches = 0;        ///< number of first batches to read
  Index eos_token_id = -1;  ///< attention stays within documents that this token ends
  Precision precision = Precision::full;
  Tape::Events events{};   ///< events of the tapes
  bool positions = false;  ///< also measure loss_by_position
  /// Asked before each batch, unless empty: true ends the validation by ValidationStopped.
  std::function<bool()> stopped{};
};

/// Thrown by validate() if ValidationRequest::stopped returns true.
class ValidationStopped : public std::exception {};

/// Results of a validation.
struct Validation {
  double loss = 0;  ///< nats per scored token, without z-loss
  /// TaskAccuracy::metrics for a task, else HeldOutLosses::metrics.
  std::vector<std::pair<std::string, double>> metrics;
  Index tokens = 0;  ///< number of scored tokens
  /// Nats per scored token by position in the sequence, from 0; NaN for unscored positions. Empty
  /// unless requested.
  std::vector<double> loss_by_position = {};
};

/// Returns means over the scored tokens of at least one validation batch. Processes of a
/// distributed run share the batches; all must call it.
Validation validate(LanguageModel& model, const ValidationData& data,
                    const ValidationRequest& request);

/// Loss by position in the sequence, which shows the use of context and the extrapolation to
/// sequences longer than in training.
class PositionLosses {
 public:
  /// Adds a batch with its LossTerms::row_losses in nats.
  void add(const Batch& batch, std::span<const double> row_losses);
  /// All-reduces the sums; all processes must call it.
  void share();
  /// Returns the mean cross-entropy by position, nats per scored token; NaN if none is scored.
  std::vector<double> means() const;

 private:
  std::vector<double> sums_;
  std::vector<Index> counts_;
};

/// A validation with bits per byte of the text and the speed.
struct Evaluation : Validation {
  double bits_per_byte = kNaN;        ///< NaN if the size of the scored text is unknown
  std::string no_bits_per_byte = {};  ///< why it is unknown; empty for data that is not text
  double tokens_per_sec = 0;
};

/// Validates as validate() does.
Evaluation evaluate(LanguageModel& model, const ValidationData& data,
                    const ValidationRequest& request);

}  // namespace difftape::run
