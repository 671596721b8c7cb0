#pragma once
// The section `sweep:` of a configuration file and the registry of its keys. Only `difftape sweep`
// reads it.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "train/run/config/fields.h"
#include "train/run/config/reader.h"

namespace difftape::run {

/// Values of the section, before they are expanded to runs.
struct SweepSettings {
  std::string name = {};               ///< empty: the name of the file
  std::string baseline = {};           ///< empty: the first arm
  std::string claims = {};             ///< file, relative to this one; empty: none
  std::vector<std::string> only = {};  ///< empty: all arms
  std::vector<Index> seeds = {};       ///< empty: run.seed
  std::optional<YamlNode> lr = {};     ///< values of optim.lr, wortsman, or one value per arm
  std::optional<YamlNode> grid = {};   ///< lists of values by key, nested or dotted
  std::optional<YamlNode> zip = {};    ///< likewise, combined by position
  std::optional<YamlNode> arms = {};   ///< settings by name of the arm
};

/// A key of the section. If its value is a structure, spec.form describes the type.
struct SweepField : KeyInfo {
  std::variant<std::string SweepSettings::*, std::vector<std::string> SweepSettings::*,
               std::vector<Index> SweepSettings::*, std::optional<YamlNode> SweepSettings::*>
      member;
};

/// Returns every key, in the order of the struct.
const std::vector<SweepField>& sweep_fields();
/// Returns "sweep.name", ...: the extra keys of Assignments.
std::vector<std::string> sweep_keys();

/// Returns `settings` updated with the given values. A value of the wrong type or range is added to
/// `errors` and ignored.
SweepSettings read_sweep_settings(const Assignments& given, SweepSettings settings,
                                  ConfigErrors& errors);

/// Learning rates of `sweep.lr: wortsman`, as strings (Wortsman et al. 2023, arXiv:2309.14322,
/// section 3).
inline constexpr const char* kWortsman = "wortsman";
const std::vector<std::string>& wortsman_lrs();

}  // namespace difftape::run
