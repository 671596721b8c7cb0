#pragma once
// What is asked of runs, written down before they are trained: a YAML file of claims.
//
//   alpha: 0.05                  # default
//   seeds: [11, 12, 13, 14]      # those that count, in this order; default: all that were trained
//   looks: true                  # decide at 4, 8 and 12 seeds; default: once, when all have ended
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
//       compared_with: {arm: v2_unit, reference: softmax_unit}  # optional: is the first difference
//                                # larger or smaller than that of these two?
//       metric: val_loss         # train/study/compare/README.md
//       where: {optim.lr: 0.01}  # the runs it is about, by their configuration; a list: any of it
//       expect: lower            # lower, higher, equivalent, not_higher
//       margin: 0.010            # differences this small are none; a factor if compared by ratio
//       published: [-0.03, -0.02]
//       controls: [{arm: softmax, metric: grad_spikes, from: 5, to: 30}]
//       plan: {spread: 0.011, effect: -0.025}  # for power: of a pilot, differences of single seeds
//       if_supported: as the article says
//       if_contradicted: the opposite holds

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/names.h"
#include "core/real.h"
#include "train/run/config/yaml.h"
#include "train/study/compare/quantities.h"

namespace difftape::study {

/// What a claim says of an arm beside another. `not_higher`: no more than the margin above it.
enum class Expect { lower, higher, equivalent, not_higher };
/// A family has one primary claim. Its secondary ones are tested, in order, once that is decided;
/// exploratory ones are corrected within it.
enum class Rank { primary, secondary, exploratory };

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

}  // namespace difftape

namespace difftape::study {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Keys of a configuration, each with the values that are meant. Numbers compare as numbers.
using Regime = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// What an arm must show, mean over its seeds, for the claim to be testable; on the quantity's own
/// axis.
struct Control {
  std::string arm;
  const Quantity* metric = nullptr;
  double from = -kInfinity;
  double to = kInfinity;
};

/// Two arms whose difference is meant.
struct ArmPair {
  std::string arm, reference;
};

/// Margin, published difference and plan are as written: factors if the quantity is a ratio.
struct Claim {
  std::string id, statement, source, family;
  Rank endpoint = Rank::exploratory;
  std::string arm, reference;
  const Quantity* metric = nullptr;
  Regime where;
  Expect expect = Expect::lower;
  double value = kNone;  ///< what the arm is compared with instead of `reference`, as written
  std::optional<ArmPair> compared_with;  ///< the claim is of two differences; this is the second
  double margin = kNone;
  double published_low = kNone, published_high = kNone;
  std::vector<Control> controls;
  double planned_spread = kNone, planned_effect = kNone;
  std::string if_supported, if_contradicted;
  run::SourceLocation location;

  /// A difference as written, on the axis on which it is compared: the logarithm of a factor.
  double on_axis(double difference) const;
  double margin_on_axis() const;  ///< NaN without a margin
  bool has_value() const { return reference.empty(); }
  std::vector<std::string> arms() const;  ///< all that it names, without those of its controls
};

/// A name that claims use for an arm.
struct ArmName {
  std::string name;
  std::optional<run::YamlNode> attention;  ///< keys of model.attention; nothing: run.arm itself
};

struct ClaimsFile {
  std::string path, text, digest;  ///< XXH3 of the text
  double alpha = 0.05;
  std::vector<std::uint64_t> seeds;  ///< empty: all
  bool looks = false;
  std::vector<ArmName> arms;  ///< empty: claims name run.arm
  std::vector<Claim> claims;
};

/// Throws MissingInput if the file is not there, and ConfigError with every error: keys, quantities
/// and arms it does not know, margins that are none.
ClaimsFile load_claims(const std::string& path);
/// The same of a text; `path` names it in messages.
ClaimsFile claims_from_text(const std::string& text, const std::string& path);

}  // namespace difftape::study
