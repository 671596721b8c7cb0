#pragma once
// Claims about runs, preregistered in a YAML file before the runs are trained.
//
//   alpha: 0.05                  # default
//   seeds: [11, 12, 21..28]      # seeds that count, in this order; default: all trained seeds
//   learning_rates: lr_star.csv  # lr_optimum.csv in the same folder: each arm's own learning rate
//   margins:                     # one per metric: differences below it count as zero
//     val_loss: {margin: 0.010, reason: half of the published lead}
//     val_loss_per_decade: {margin: 0.010, reason: ...}  # of slopes
//     grad_norm_median: {margin: 1.2, reason: ...}       # a factor if compared by ratio
//   arms: {softmax: , v2: }      # names of arms (run.arm), if the claims are about several sweeps;
//                                # default: the arms of the sweep
//   claims:
//     v2_loss:
//       statement: V2's loss is lower than the baseline's
//       source: V2 article
//       family: loss             # default: the claim's own name
//       endpoint: primary        # primary, secondary or exploratory (default)
//       arm: v2
//       reference: softmax
//       compared_with: {arm: v2_unit, reference: softmax_unit, where: {optim.lr: 0.02}}
//                                # optional: compares the claim's difference with this one, whose
//                                # `where` replaces keys of the claim's
//       metric: val_loss         # docs/quantities.md
//       where: {optim.lr: 0.01}  # selects runs by their configuration; a list: any of its values
//       lr: own                  # each arm at its own learning rate; 4 x own; [own, 4 x own]
//       seeds: {32: [11, 12], 64: [11..14]}  # replaces the seeds of the file: a list, or a map
//                                # from model.d_model, which selects the sizes that count
//       slope_over: parameters   # the difference per factor of ten in the parameters of the
//                                # reference; or mean_over: parameters, the mean over the sizes
//       expect: lower            # lower, higher, equivalent, not_higher
//       published: [-0.03, -0.02]  # a note, which nothing reads
//       controls: [{arm: softmax, metric: grad_spikes, from: 5, to: 30}]
//       planned_sd: 0.011        # for --power: standard deviation of differences of single seeds

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/names.h"
#include "core/real.h"
#include "train/run/config/yaml.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/compare/quantities.h"

namespace difftape::study {

/// Expected comparison; `not_higher` means at most the margin above the reference.
enum class Expect { lower, higher, equivalent, not_higher };
/// Secondary claims are tested, in order, once the primary claim of their family is decided.
enum class Rank { primary, secondary, exploratory };
/// Combination of a claim's differences at several sizes.
enum class Over { no_sizes, mean, slope };

constexpr auto names_of(Expect) {
  return std::to_array<Named<Expect>>({{"lower", Expect::lower},
                                       {"higher", Expect::higher},
                                       {"equivalent", Expect::equivalent},
                                       {"not_higher", Expect::not_higher}});
}
constexpr auto names_of(Rank) {
  return std::to_array<Named<Rank>>({{"primary", Rank::primary},
                                     {"secondary", Rank::secondary},
                                     {"exploratory", Rank::exploratory}});
}
constexpr auto names_of(Over) {
  return std::to_array<Named<Over>>(
      {{"", Over::no_sizes}, {"mean", Over::mean}, {"slope", Over::slope}});
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Keys of a configuration, each with its accepted values. Numbers compare as numbers.
using Regime = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// A condition for the claim to be testable: a range of an arm's mean over its seeds, on the
/// metric's axis.
struct Control {
  std::string arm;
  const Quantity* metric = nullptr;
  double from = -kInfinity;
  double to = kInfinity;
};

/// A cell of a contrast: an arm (run.arm) among runs within a regime, with its weight.
struct Term {
  double weight;
  std::string arm;
  Regime where;
};

/// Seeds that count, in their order.
using Seeds = std::vector<std::uint64_t>;

/// A claim of the file. Margin and planned deviation are as written: factors if the metric is
/// compared by ratio.
struct Claim {
  std::string id, statement, source, family;
  Rank endpoint = Rank::exploratory;
  const Quantity* metric = nullptr;
  /// The contrast at one size: +1 arm, -1 reference; with compared_with, -1 and +1 of that pair.
  std::vector<Term> terms;
  Expect expect = Expect::lower;
  Over over = Over::no_sizes;
  std::vector<double> own_lr;  ///< multiples of each arm's own learning rate; empty: all rates
  Seeds seeds;                 ///< at every size; empty: all
  std::map<Index, Seeds> seeds_of_size;  ///< by model.d_model; empty: `seeds` at every size found
  double margin = kNone;                 ///< margin of the metric or of its slope
  std::vector<Control> controls;
  double planned_sd = kNone;
  run::SourceLocation location;

  /// Converts a difference as written to the axis of comparison: a factor to its logarithm.
  double on_axis(double difference) const;
  double margin_on_axis() const;  ///< NaN without a margin
  bool expects_difference() const { return expect == Expect::lower || expect == Expect::higher; }
  /// Returns whether a seed counts at any size.
  bool counts(std::uint64_t seed) const;
  /// Returns the number of planned pairs at each size; 0: all available pairs.
  std::vector<Index> planned_pairs() const;
};

struct Margin {
  double margin = kNone;  ///< as written
  std::string reason;
};

struct ClaimsFile {
  std::string path, text, digest;  ///< XXH3 of the text
  double alpha = 0.05;
  Seeds seeds;                            ///< default of claims without seeds; empty: all
  std::map<std::string, Margin> margins;  ///< by metric, or metric and kPerDecade
  std::vector<std::string> arms;          ///< empty: claims may name any run.arm
  std::vector<Claim> claims;
  std::string learning_rates;         ///< a file in the same folder; empty: none
  std::optional<OwnRates> own_rates;  ///< nothing as long as that file does not exist
  std::string rates_digest;           ///< XXH3 of its text
};

/// Suffix of a margin's name for slopes over sizes.
inline constexpr std::string_view kPerDecade = "_per_decade";

std::string margin_name(const Claim& claim);

/// Throws MissingInput, ConfigError with every error, and DataError for damaged learning rates.
ClaimsFile load_claims(const std::string& path);
ClaimsFile claims_from_text(const std::string& text, const std::string& path);

}  // namespace difftape::study
