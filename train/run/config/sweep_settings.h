#pragma once
// The section `sweep:` of a configuration file, which only `difftape sweep` reads, and the registry
// of its keys.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "train/run/config/fields.h"
#include "train/run/config/reader.h"

namespace difftape::run {

/// What the section says, without the combinations that follow from it.
struct SweepSettings {
  std::string name = {};               ///< empty: the name of the file
  std::string baseline = {};           ///< empty: the first arm
  std::string claims = {};             ///< a file, seen from the one that names it; empty: none
  std::string results = {};            ///< a folder with an index.csv, likewise; empty: none
  std::vector<std::string> only = {};  ///< empty: all arms
  std::vector<Index> seeds = {};       ///< empty: that of run.seed alone
  std::optional<YamlNode> lr = {};     ///< numbers of optim.lr, wortsman, or the arms' own
  std::optional<YamlNode> grid = {};   ///< lists of values by key, nested or dotted; zip likewise
  std::optional<YamlNode> zip = {};
  std::optional<YamlNode> arms = {};  ///< what is set in each arm, by its name
};

/// A key of the section. One without a plain value has no spec.initial, and says its type itself.
struct SweepField : KeyInfo {
  std::variant<std::string SweepSettings::*, std::vector<std::string> SweepSettings::*,
               std::vector<Index> SweepSettings::*, std::optional<YamlNode> SweepSettings::*>
      member;
};

/// Every key, in the order of the struct.
const std::vector<SweepField>& sweep_fields();
/// "sweep.name", ...: what Assignments has to know besides the keys of a run.
std::vector<std::string> sweep_keys();

/// `settings` with what is given. Adds values of the wrong type or range to `errors`; they count as
/// not given.
SweepSettings read_sweep_settings(const Assignments& given, SweepSettings settings,
                                  ConfigErrors& errors);

/// The learning rates that sweep.lr: wortsman stands for (Wortsman et al. 2023, arXiv:2309.14322,
/// section 3), as they are written.
inline constexpr const char* kWortsman = "wortsman";
const std::vector<std::string>& wortsman_lrs();

}  // namespace difftape::run
