#include "train/study/sweep/sweep_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/study/compare/claims/measure.h"
#include "train/study/sweep/run_progress.h"
#include "train/system/files.h"
#include "train/system/suggest.h"

namespace difftape::study {
namespace {

namespace fs = std::filesystem;

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::ranges::find(list, item) != list.end();
}

/// Returns the unique names of arms in their order.
template <class NameOf>
std::vector<std::string> names_of(const std::vector<SweepRun>& runs, NameOf name_of) {
  std::vector<std::string> names;
  for (const SweepRun& run : runs) add_once(names, std::string(std::invoke(name_of, run)));
  return names;
}

const std::string& arm_of(const SweepRun& run) { return run.config().run.arm; }

/// Checks that claims refer to arms of this sweep, by run.arm. Claims with conditions in place of
/// arms can be checked only after training. Two arms are comparable if they train on the same data
/// for equally long; files are compared by their contents after training.
void check_arms(const ClaimsFile& claims, const std::vector<SweepRun>& runs,
                run::ConfigErrors& errors) {
  const std::vector<std::string> arms = names_of(runs, arm_of);
  const auto check_task = [&](const Claim& claim, const std::string& a, const std::string& b) {
    const auto first = std::ranges::find(runs, a, arm_of),
               second = std::ranges::find(runs, b, arm_of);
    if (first == runs.end() || second == runs.end()) return;
    const auto found = differences(first->config(), second->config(), run::kOfTask);
    if (found.empty()) return;
    errors.add(
        claim.location,
        fmt::format("claims.{}: {} and {} cannot be compared: {} is {} and {}; a claim needs "
                    "arms of one task",
                    claim.id, a, b, found[0].key, found[0].a, found[0].b));
  };
  for (const Claim& claim : claims.claims) {
    std::vector<std::string> named = mapped(claim.terms, &Term::arm);
    for (const Control& control : claim.controls) named.push_back(control.arm);
    for (const std::string& name : named) {
      if (contains(arms, name)) continue;
      const bool swept = std::ranges::count(runs, name, &SweepRun::base_arm) > 0;
      std::vector<std::string> meant = arms;
      std::erase_if(meant, [&](const auto& arm) { return swept && !arm.starts_with(name); });
      errors.add(claim.location, fmt::format("claims.{}: {}{}", claim.id, no_arm(name, meant),
                                             swept ? "; names of arms include swept values" : ""));
    }
    for (std::size_t i = 0; i < claim.terms.size(); i += 2)
      check_task(claim, claim.terms[i].arm, claim.terms[i + 1].arm);
  }
}

/// Reports claims that these runs cannot decide, whatever their results. `named_at` is the location
/// in the sweep file that names the claims.
void check_claims(const ClaimsFile& claims, const std::vector<SweepRun>& runs,
                  const run::SourceLocation& named_at, run::ConfigErrors& errors) {
  if (runs.empty()) return;
  if (claims.arms.empty()) check_arms(claims, runs, errors);
  if (seeds_that_count(claims, runs) == 0) {
    errors.add(named_at, fmt::format("sweep.claims: the claims of {} count none of the seeds that "
                                     "this sweep trains; change sweep.seeds",
                                     claims.path));
  }
  if (claims_elsewhere(claims, runs).size() == claims.claims.size()) {
    errors.add(named_at,
               fmt::format("sweep.claims: no run of this sweep matches 'where' of any claim of {}; "
                           "change 'where' or the swept values",
                           claims.path));
  }
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
    arm_names_ = mapped(arms, &ArmSource::name);
    sweep.baseline = settings.baseline;
    if (!all_.find("sweep.baseline") && !arms.empty()) sweep.baseline = arms.front().name;
    sweep.out = out.empty() ? "runs/" + sweep.name : out;
    check_name(sweep.name);
    if (const auto claims = existing_path("sweep.claims", settings.claims))
      sweep.claims = load_claims(claims->string());
    const std::vector<std::string> named = with_commas(only);
    const auto selected = named.empty() ? check_only(settings.only) : named;
    const std::vector<Index> seeds = seeds_of(settings);
    const Axes axes = read_axes(settings, errors_);
    sweep.swept = swept_keys(axes);
    const RunListSource source{file_,         all_,      overrides_,
                               {path_, 1, 1}, arms,      seeds,
                               axes,          sweep.out, sweep.claims ? sweep.claims->digest : ""};
    sweep.runs = make_runs(source, errors_);
    if (sweep.claims && !errors_.any())
      check_claims(*sweep.claims, sweep.runs, all_.find("sweep.claims")->value.location, errors_);
    for (SweepRun& run : sweep.runs)
      run.selected = selected.empty() || contains(selected, run.base_arm);
    check_baseline(sweep);
    errors_.throw_if_any();
    for (const std::string& name : named) {
      if (!contains(arm_names_, name)) throw UsageError("--arms: " + no_arm(name, arm_names_));
    }
    return sweep;
  }

 private:
  /// Joins parts of --arms, which was cut at commas, that are the name of an arm with commas.
  std::vector<std::string> with_commas(const std::vector<std::string>& parts) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::string longest = parts[i], joined = parts[i];
      std::size_t last = i;
      for (std::size_t j = i + 1; j < parts.size(); ++j) {
        joined += "," + parts[j];
        if (!contains(arm_names_, joined)) continue;
        longest = joined;
        last = j;
      }
      names.push_back(longest);
      i = last;
    }
    return names;
  }

  std::vector<ArmSource> read_arms(const std::string& sweep_name,
                                   const run::SweepSettings& settings) {
    std::vector<ArmSource> arms;
    if (!settings.arms) {
      for (const char* key : {"sweep.lr", "sweep.grid", "sweep.zip", "sweep.seeds"}) {
        if (const run::Assignment* other = all_.find(key))
          return {{sweep_name, {}, other->location}};
      }
      errors_.add({path_, 1, 1},
                  "this file has no 'sweep.arms'; list the arms, or train one model with "
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
        errors_.add(name.location, fmt::format("sweep.arms: duplicate arm '{}'; every arm needs "
                                               "another name",
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
        fmt::format("sweep.name: '{}' is not a valid folder name; use one word without '/'", name));
  }

  /// Returns the path that a key sets, or nothing. Reports an error if the path does not exist.
  std::optional<fs::path> existing_path(const char* key, const std::string& text) {
    const run::Assignment* given = all_.find(key);
    if (given == nullptr || text.empty()) return std::nullopt;
    const fs::path path = named_path(text, given->location);
    if (system::is_there(path)) return path;
    errors_.add(given->value.location,
                fmt::format("{}: {} does not exist; the path is relative to {}", key, path.string(),
                            given->location.line > 0 ? "this file" : "the working directory"));
    return std::nullopt;
  }

  /// Resolves the baseline: a name in sweep.arms, which means its first run, or a whole run.arm.
  void check_baseline(SweepConfig& sweep) {
    if (sweep.runs.empty()) return;
    std::vector<std::string> names = arm_names_;
    for (const std::string& arm : names_of(sweep.runs, arm_of)) {
      add_once(names, arm);
      if (arm == sweep.baseline) return;
    }
    const auto meant = std::ranges::find(sweep.runs, sweep.baseline, &SweepRun::base_arm);
    if (meant != sweep.runs.end()) {
      sweep.baseline = meant->config().run.arm;
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
      errors_.add(given->value.location, "sweep.only: the list is empty; list the arms to train");
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (contains(arm_names_, names[i]) || arm_names_.empty()) continue;
      const bool list = given->value.kind == run::YamlNode::Kind::list;
      errors_.add(list ? given->value.items[i].location : given->value.location,
                  "sweep.only: " + no_arm(names[i], arm_names_));
    }
    return names;
  }

  /// Returns at least one seed, even after an error.
  std::vector<Index> seeds_of(const run::SweepSettings& settings) {
    const run::Assignment* given = all_.find("sweep.seeds");
    if (!given) return {seed_of_runs()};
    const std::vector<Index>& seeds = settings.seeds;
    if (seeds.empty()) {
      const bool list = given->value.kind == run::YamlNode::Kind::list;
      if (list && given->value.items.empty()) {
        errors_.add(given->value.location,
                    "sweep.seeds: the list is empty; give at least one seed, such as [1]");
      }
      return {1};
    }
    for (auto seed = seeds.begin(); seed != seeds.end(); ++seed) {
      if (std::find(seeds.begin(), seed, *seed) != seed) {
        errors_.add(given->value.location,
                    fmt::format("sweep.seeds: {} appears twice; remove one", *seed));
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
  run::Assignments all_;   ///< the file, its bases, and the overrides
  std::vector<std::string> arm_names_;
};

/// Returns whether a file or one of its bases has the section `sweep`. Reading the file as a whole
/// reports its errors.
bool is_sweep(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return false;
  run::ConfigErrors errors;
  run::Assignments given(errors, run::sweep_keys());
  given.add_file(path);
  return std::ranges::any_of(given.all(),
                             [](const auto& each) { return each.key.starts_with("sweep."); });
}

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

run::ResolvedConfig config_of_arm(const std::string& path,
                                  const std::vector<std::string>& overrides,
                                  const std::string& name) {
  if (!is_sweep(path)) {
    if (!name.empty())
      throw UsageError(fmt::format("--arm: {} is not a sweep; remove --arm", path));
    return run::load_config(path, overrides);
  }
  const SweepConfig sweep = load_sweep(path, overrides);
  const auto arms = names_of(sweep.runs, &SweepRun::base_arm);
  if (name.empty() && arms.size() > 1) {
    throw UsageError(
        fmt::format("{} is a sweep; choose an arm with --arm: {}", path, fmt::join(arms, ", ")));
  }
  const auto found = std::ranges::find_if(sweep.runs, [&](const SweepRun& run) {
    return name.empty() || run.base_arm == name || run.config().run.name == name;
  });
  if (found == sweep.runs.end()) throw UsageError("--arm: " + no_arm(name, arms));
  return found->resolved;
}

std::vector<std::string> claims_elsewhere(const ClaimsFile& claims,
                                          const std::vector<SweepRun>& runs) {
  std::vector<const Claim*> left;
  for (const Claim& claim : claims.claims) left.push_back(&claim);
  for (const SweepRun& run : runs) {
    if (left.empty()) break;
    const auto value = [&](const std::string& key) { return value_text(run.config(), key); };
    std::erase_if(left, [&](const Claim* claim) { return matches(claim->terms[0].where, value); });
  }
  std::vector<std::string> ids;
  for (const Claim* claim : left) ids.push_back(claim->id);
  return ids;
}

Index seeds_that_count(const ClaimsFile& claims, const std::vector<SweepRun>& runs) {
  std::set<std::uint64_t> counted;
  for (const SweepRun& run : runs) {
    const std::uint64_t seed = run.config().run.seed;
    const auto counts = [seed](const Claim& claim) { return claim.counts(seed); };
    if (std::ranges::any_of(claims.claims, counts)) counted.insert(seed);
  }
  return std::ssize(counted);
}

}  // namespace difftape::study
