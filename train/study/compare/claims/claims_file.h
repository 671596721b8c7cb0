#pragma once
// What is asked of runs, written down before they are trained: a YAML file of claims.
//
//   alpha: 0.05                  # default
//   seeds: [11, 12, 21..28]      # seeds that count, in this order; default: all that were trained
//   learning_rates: lr_star.csv  # beside this file: each arm's own learning rate (lr_optimum.csv)
//   margins:                     # one per metric: a difference this small is none
//     val_loss: {margin: 0.010, reason: half of the published lead}
//     val_loss_per_decade: {margin: 0.010, reason: ...}  # of slopes
//     grad_norm_median: {margin: 1.2, reason: ...}       # a factor if compared by ratio
//   arms:                        # names that claims use; default: those of the runs
//     softmax: {kind: softmax}   # found by their attention, whatever they are called,
//     wide:                      # or called so
//   claims:
//     v2_loss:
//       statement: V2's loss is lower than the baseline's
//       source: V2 article
//       family: loss             # default: the claim's own name
//       endpoint: primary        # primary, secondary or exploratory (default)
//       arm: v2
//       reference: softmax       # or value: 0, a number instead of an arm
//       compared_with: {arm: v2_unit, reference: softmax_unit, where: {optim.lr: 0.02}}
//                                # optional: is the difference of the first two larger or smaller
//                                # than this one? Its keys of `where` replace those of the claim
//       metric: val_loss         # docs/quantities.md
//       where: {optim.lr: 0.01}  # the runs it is about, by their configuration; a list: any of it
//       lr: own                  # each arm at its own learning rate; 4 x own; [own, 4 x own]
//       seeds: {32: [11, 12], 64: [11..14]}  # instead of those of the file: a list, or a map from
//                                # model.d_model, which names the sizes that count
//       slope_over: parameters   # the difference per factor of ten in the parameters of the
//                                # reference; or mean_over: parameters, the mean over the sizes
//       expect: lower            # lower, higher, equivalent, not_higher
//       published: [-0.03, -0.02]
//       controls: [{arm: softmax, metric: grad_spikes, from: 5, to: 30}]
//       planned_sd: 0.011        # for --power: of the differences of single seeds

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

/// How the arm compares; `not_higher`: no more than the margin above the reference.
enum class Expect { lower, higher, equivalent, not_higher };
/// Secondary claims are tested, in order, once the primary claim of their family is decided.
enum class Rank { primary, secondary, exploratory };
/// How a claim combines its differences at several sizes.
enum class Over { no_sizes, mean, slope };

}  // namespace difftape::study

namespace difftape {

template <>
inline constexpr auto kNames<study::Expect> =
    std::to_array<Named<study::Expect>>({{"lower", study::Expect::lower},
                                         {"higher", study::Expect::higher},
                                         {"equivalent", study::Expect::equivalent},
                                         {"not_higher", study::Expect::not_higher}});
template <>
inline constexpr auto kNames<study::Rank> =
    std::to_array<Named<study::Rank>>({{"primary", study::Rank::primary},
                                       {"secondary", study::Rank::secondary},
                                       {"exploratory", study::Rank::exploratory}});
template <>
inline constexpr auto kNames<study::Over> = std::to_array<Named<study::Over>>(
    {{"", study::Over::no_sizes}, {"mean", study::Over::mean}, {"slope", study::Over::slope}});

}  // namespace difftape

namespace difftape::study {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Keys of a configuration, each with the values that are meant. Numbers compare as numbers.
using Regime = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// What an arm must show, mean over its seeds, for the claim to be testable; on the metric's own
/// axis.
struct Control {
  std::string arm;
  const Quantity* metric = nullptr;
  double from = -kInfinity;
  double to = kInfinity;
};

/// Two arms whose difference is meant, of runs within a regime.
struct ArmPair {
  std::string arm, reference;
  Regime where;
};

/// Seeds that count, in their order, and what they are planned for.
using Seeds = std::vector<std::uint64_t>;

/// Margin, published difference and planned deviation are as written: factors if the metric is a
/// ratio.
struct Claim {
  std::string id, statement, source, family;
  Rank endpoint = Rank::exploratory;
  std::string arm, reference;
  const Quantity* metric = nullptr;
  Regime where;
  Expect expect = Expect::lower;
  double value = kNone;  ///< what the arm is compared with instead of `reference`, as written
  std::optional<ArmPair> compared_with;  ///< the claim is of two differences; this is the second
  Over over = Over::no_sizes;
  std::vector<double> own_lr;  ///< multiples of each arm's own learning rate; empty: all rates
  Seeds seeds;                 ///< at every size; empty: all
  std::map<Index, Seeds> seeds_of_size;  ///< by model.d_model; empty: `seeds` at every size found
  double margin = kNone;                 ///< of the metric, or of its slope
  double published_low = kNone, published_high = kNone;
  std::vector<Control> controls;
  double planned_sd = kNone;
  run::SourceLocation location;

  /// A difference as written, on the axis on which it is compared: the logarithm of a factor.
  double on_axis(double difference) const;
  double margin_on_axis() const;  ///< NaN without a margin
  bool has_value() const { return reference.empty(); }
  bool expects_difference() const { return expect == Expect::lower || expect == Expect::higher; }
  std::vector<std::string> arms() const;  ///< all that it names, without those of its controls
  /// Whether a seed counts, at whatever size.
  bool counts(std::uint64_t seed) const;
  /// Pairs that it plans at each size; 0: as many as there are.
  std::vector<Index> planned_pairs() const;
};

/// A name that claims use for an arm.
struct ArmName {
  std::string name;
  std::optional<run::YamlNode> attention;  ///< keys of model.attention; nothing: run.arm itself
};

struct Margin {
  double margin = kNone;  ///< as written
  std::string reason;
};

struct ClaimsFile {
  std::string path, text, digest;  ///< XXH3 of the text
  double alpha = 0.05;
  Seeds seeds;                            ///< of claims that name none; empty: all
  std::map<std::string, Margin> margins;  ///< by metric, or metric and kPerDecade
  std::vector<ArmName> arms;              ///< empty: claims name run.arm
  std::vector<Claim> claims;
  std::string learning_rates;         ///< a file beside this one; empty: none
  std::optional<OwnRates> own_rates;  ///< nothing as long as that file is not there
  std::string rates_digest;           ///< XXH3 of its text
};

/// Ends the name of a margin of slopes over sizes.
inline constexpr std::string_view kPerDecade = "_per_decade";

std::string margin_name(const Claim& claim);

/// Throws MissingInput, ConfigError with every error, and DataError for damaged learning rates.
ClaimsFile load_claims(const std::string& path);
ClaimsFile claims_from_text(const std::string& text, const std::string& path);

}  // namespace difftape::study
