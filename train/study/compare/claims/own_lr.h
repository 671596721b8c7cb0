#pragma once
// Which runs of an arm a claim means: those of its seeds, at all learning rates or at the arm's
// own.

#include "train/study/compare/claims/arms.h"
#include "train/study/compare/claims/claims_file.h"

namespace difftape::study {

/// The complete runs of an arm that count for a claim.
struct Selected {
  ArmRuns arm;
  std::vector<double> rates;  ///< of each run: optim.lr, or the multiple of the arm's own rate
  double own = kNone;         ///< learning rate of the arm's own; NaN without
};

/// Says in `reason` why there are none: no run of these seeds has ended, the arm has no learning
/// rate of its own at this size, or no run at it.
Selected select_runs(const ArmRuns& arm, const Claim& claim, const ClaimsFile& file,
                     const Seeds& seeds, std::string& reason);

/// "lr 0.001, 0.01"; of own learning rates "their own lr (v2 0.0123, softmax 0.008)".
std::string rates_text(const Claim& claim, const Selected& arm, const Selected& reference,
                       const std::vector<double>& rates);

}  // namespace difftape::study
