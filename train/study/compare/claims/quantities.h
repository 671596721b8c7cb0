#pragma once
// What is measured of a run, or of the runs of one seed at all rates, to test a claim.

#include <span>

#include "train/study/compare/summary.h"

namespace difftape::study {

/// At which rates two arms are compared: at all that both were trained at; at those not below the
/// best rate of the arm compared with; or each at its own best rate.
enum class Rates { shared, large, best };

struct Quantity {
  const char* name;
  const char* metric;  ///< that a run must have logged, for "no run logged ..."
  Rates rates;
  bool ratio;  ///< positive and spread over decades: compared as logarithms
  int digits;  ///< behind the point, or significant ones of a ratio
  /// One of the two. NaN: not known for this run, for example because it diverged.
  double (*of_run)(const RunRecord& run) = nullptr;
  /// Of complete runs of one seed, ascending lr, at least two.
  double (*of_ladder)(std::span<const RunRecord* const> runs) = nullptr;
  /// Divergence is a result: runs that all diverged need not have logged `metric`.
  bool divergence_counts = false;
};

/// Final validation loss, nats a token: at each arm's best rate, where a run that diverged counts
/// with its loss at init; and at equal rates, of runs that finished.
extern const Quantity kLossAtBestRate, kLossAtEqualRates;

/// Spike scores, percent, of runs that finished, at large rates.
extern const Quantity kLossSpikes, kGradSpikes;
/// Swept rates, from the lowest up, that trained before the first that did not: a run trained if it
/// finished with a validation loss below its loss at init.
extern const Quantity kRungs;

/// Of the gradient norm of runs that finished: the exponent a of norm ~ step^a over the second half
/// of the steps, and std / median over the last quarter.
extern const Quantity kLateGrowth, kLateVariation;

/// Of the last diagnostic step of runs that finished: the largest over layers of attn/logit_max and
/// act/max; the mean over layers of act/kurtosis, attn/sink_rate and attn/first_token.
extern const Quantity kTopLogit, kTopHidden, kKurtosis, kSinkRate, kFirstToken;

/// attn/context_rms of step 1, mean over layers: after the first step, the earliest diagnostics.
extern const Quantity kFirstContextRms;

/// lr_sensitivity of one seed's runs; NaN if all diverged.
extern const Quantity kSensitivity;
/// Percent of steps, mean over a seed's runs, that were spikes (mean of the loss and gradient
/// scores) or that a diverged run never reached.
extern const Quantity kUnstableSteps;

/// Whether a run has a column of that metric, for example "attn/sink_rate", of any layer.
bool logged_metric(const RunRecord& run, const std::string& metric);

}  // namespace difftape::study
