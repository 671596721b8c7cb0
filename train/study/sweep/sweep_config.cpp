#include "train/study/sweep/sweep_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include "core/error.h"
#include "train/run/config/reader.h"
#include "train/study/sweep/index.h"
#include "train/study/sweep/run_list.h"
#include "train/study/sweep/sweep_claims.h"
#include "train/system/suggest.h"

namespace difftape::study {
namespace {

namespace fs = std::filesystem;

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

class SweepReader {
 public:
  SweepReader(const std::string& path, const std::vector<std::string>& overrides)
      : path_(path), overrides_(overrides), file_(errors_, run::sweep_keys()), all_(file_) {
    file_.add_file(path);
    all_ = file_;
    for (const std::string& text : overrides) all_.add_override(text);
    const bool has_seeds = all_.find("sweep.seeds") != nullptr;
    for (const run::Assignment& given : all_.all()) {
      const bool own = given.location.source == path || given.location.line == 0;
      if (own) refuse_decided(given, false, has_seeds, errors_);
    }
  }

  SweepConfig read(const std::string& out, const std::vector<std::string>& only) {
    const run::SweepSettings settings =
        read_sweep_settings(all_, {.name = std::filesystem::path(path_).stem()}, errors_);
    SweepConfig sweep;
    sweep.name = settings.name;
    const std::vector<ArmSource> arms = read_arms(sweep.name, settings);
    for (const ArmSource& arm : arms) arm_names_.push_back(arm.name);
    sweep.baseline = settings.baseline;
    if (!all_.find("sweep.baseline") && !arms.empty()) sweep.baseline = arms.front().name;
    sweep.out = out.empty() ? "runs/" + sweep.name : out;
    check_name(sweep.name);
    sweep.claims = read_claims(settings);
    const auto selected = only.empty() ? check_only(settings.only) : only;
    const std::vector<Index> seeds = seeds_of(settings);
    const Axes axes = read_axes(settings, errors_);
    sweep.swept = swept_keys(axes);
    sweep.runs = make_runs({file_,
                            all_,
                            overrides_,
                            {path_, 1, 1},
                            arms,
                            seeds,
                            axes,
                            sweep.out,
                            sweep.claims ? sweep.claims->digest : ""},
                           errors_);
    if (sweep.claims && !errors_.any())
      check_claims(*sweep.claims, sweep.runs, all_.find("sweep.claims")->value.location, errors_);
    read_results(settings, sweep);
    for (SweepRun& run : sweep.runs)
      run.selected = selected.empty() || contains(selected, run.base_arm);
    check_baseline(sweep);
    errors_.throw_if_any();
    for (const std::string& name : only) require_arm(name);
    return sweep;
  }

 private:
  std::vector<ArmSource> read_arms(const std::string& sweep_name,
                                   const run::SweepSettings& settings) {
    std::vector<ArmSource> arms;
    if (!settings.arms) {
      for (const char* key : {"sweep.lr", "sweep.grid", "sweep.zip", "sweep.seeds"}) {
        if (const run::Assignment* other = all_.find(key))
          return {{sweep_name, {}, other->location}};
      }
      errors_.add({path_, 1, 1},
                  "this file has no 'sweep.arms'; name the arms, or train one model with "
                  "'difftape train'");
      return arms;
    }
    const run::YamlNode& given = *settings.arms;
    if (given.kind != run::YamlNode::Kind::map || given.pairs.empty()) {
      errors_.add(given.location,
                  fmt::format("sweep.arms: expected arms such as 'softmax: {{...}}', got {}",
                              given.kind == run::YamlNode::Kind::map ? "none" : given.describe()));
      return arms;
    }
    std::set<std::string> names;
    for (const auto& [name, values] : given.pairs) {
      if (!names.insert(name.text).second) {
        errors_.add(name.location, fmt::format("sweep.arms: duplicate arm '{}'; every arm needs a "
                                               "name of its own",
                                               name.text));
        continue;
      }
      arms.push_back({name.text, values, name.location});
    }
    return arms;
  }

  void check_name(const std::string& name) {
    const run::Assignment* given = all_.find("sweep.name");
    if (!given || run::can_name_folder(name)) return;
    errors_.add(
        given->value.location,
        fmt::format("sweep.name: '{}' cannot name a folder; need one word without '/'", name));
  }

  std::optional<ClaimsFile> read_claims(const run::SweepSettings& settings) {
    const auto path = existing_path("sweep.claims", settings.claims);
    return path ? std::optional(load_claims(path->string())) : std::nullopt;
  }

  /// The path that a key gives; nothing if it gives none or, which is an error, nothing is there.
  std::optional<fs::path> existing_path(const char* key, const std::string& text) {
    const run::Assignment* given = all_.find(key);
    if (given == nullptr || text.empty()) return std::nullopt;
    const fs::path path = named_path(text, given->location);
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path;
    errors_.add(given->value.location,
                fmt::format("{}: there is no {}; the path is seen from {}", key, path.string(),
                            given->location.line > 0 ? "this file" : "the working directory"));
    return std::nullopt;
  }

  void read_results(const run::SweepSettings& settings, SweepConfig& sweep) {
    const auto folder = existing_path("sweep.results", settings.results);
    if (!folder || errors_.any()) return;
    sweep.results = std::make_shared<const RunIndex>(read_index(*folder / kIndexFile));
    const fs::path from = fs::absolute(path_).parent_path(), named = settings.results;
    sweep.results_folder = named.is_relative() ? named : folder->lexically_relative(from);
    const std::string difference = take_results(sweep);
    if (!difference.empty())
      errors_.add(all_.find("sweep.results")->value.location, "sweep.results: " + difference);
  }

  void require_arm(const std::string& name) const {
    if (!contains(arm_names_, name)) throw UsageError("--arms: " + no_arm(name, arm_names_));
  }

  /// The baseline may be a name of sweep.arms, which means its first run, or a whole run.arm.
  void check_baseline(SweepConfig& sweep) {
    if (sweep.runs.empty()) return;
    std::vector<std::string> names = arm_names_;
    for (const SweepRun& run : sweep.runs) {
      const std::string& arm = run.config().run.arm;
      if (!contains(names, arm)) names.push_back(arm);
      if (arm == sweep.baseline) return;
    }
    for (const SweepRun& run : sweep.runs) {
      if (run.base_arm != sweep.baseline) continue;
      sweep.baseline = run.config().run.arm;
      return;
    }
    const run::Assignment* given = all_.find("sweep.baseline");
    if (given && given->value.kind == run::YamlNode::Kind::scalar)
      errors_.add(given->value.location, "sweep.baseline: " + no_arm(sweep.baseline, names));
  }

  std::vector<std::string> check_only(const std::vector<std::string>& names) {
    const run::Assignment* given = all_.find("sweep.only");
    if (!given) return {};
    if (names.empty() && given->value.kind == run::YamlNode::Kind::list) {
      errors_.add(given->value.location, "sweep.only: is empty; name the arms to train");
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (contains(arm_names_, names[i]) || arm_names_.empty()) continue;
      const bool list = given->value.kind == run::YamlNode::Kind::list;
      errors_.add(list ? given->value.items[i].location : given->value.location,
                  "sweep.only: " + no_arm(names[i], arm_names_));
    }
    return names;
  }

  /// At least one seed, whatever was wrong.
  std::vector<Index> seeds_of(const run::SweepSettings& settings) {
    const run::Assignment* given = all_.find("sweep.seeds");
    if (!given) return {seed_of_runs()};
    const std::vector<Index>& seeds = settings.seeds;
    if (seeds.empty()) {
      const bool list = given->value.kind == run::YamlNode::Kind::list;
      if (list && given->value.items.empty()) {
        errors_.add(given->value.location, "sweep.seeds: is empty; give at least one, such as [1]");
      }
      return {1};
    }
    for (auto seed = seeds.begin(); seed != seeds.end(); ++seed) {
      if (std::find(seeds.begin(), seed, *seed) != seed) {
        errors_.add(given->value.location, fmt::format("sweep.seeds: {} is given twice", *seed));
      }
    }
    return seeds;
  }

  Index seed_of_runs() {
    const run::Field& field = *run::find_field("run.seed");
    const run::Assignment* given = all_.find(field.key);
    const auto seed =
        given ? read_value(given->value, field.key, field.spec, errors_) : std::nullopt;
    return std::get<Index>(seed.value_or(field.spec.initial));
  }

  std::string path_;
  std::vector<std::string> overrides_;
  run::ConfigErrors errors_;
  run::Assignments file_;  ///< the file and its bases
  run::Assignments all_;   ///< and the overrides
  std::vector<std::string> arm_names_;
};

}  // namespace

std::string no_arm(const std::string& name, const std::vector<std::string>& arms) {
  constexpr std::size_t kListed = 6;
  const std::size_t listed = std::min(arms.size(), kListed), more = arms.size() - listed;
  return fmt::format("'{}' is not an arm of this sweep ({}{}){}", name,
                     fmt::join(std::span(arms).first(listed), ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "",
                     system::did_you_mean(name, arms));
}

SweepConfig load_sweep(const std::string& path, const std::vector<std::string>& overrides,
                       const std::string& out, const std::vector<std::string>& only) {
  return SweepReader(path, overrides).read(out, only);
}

}  // namespace difftape::study
