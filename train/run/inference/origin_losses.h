#pragma once
// The loss on held-out text by domain, and in groups of neighboring documents.

#include <span>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace difftape::run
