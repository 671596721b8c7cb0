#include "train/study/sweep/sweep_claims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "train/run/config/writer.h"
#include "train/study/compare/claims/arms.h"
#include "train/study/compare/tasks.h"
#include "train/system/suggest.h"

namespace difftape::study {

namespace {

std::string value_of(const run::FlatConfig& config, const std::string& key) {
  const auto found = std::ranges::find(config, key, [](const auto& entry) { return entry.first; });
  return found == config.end() ? "" : found->second;
}

bool in_regime(const SweepRun& run, const Regime& regime) {
  if (regime.empty()) return true;
  const run::FlatConfig config = flat_config(run.config());
  return matches(regime, [&](const std::string& key) { return value_of(config, key); });
}

/// "data.seq_len is 128 and 256"; empty if two runs are to be trained alike but for their files,
/// which are compared by their contents once they ran.
std::string setting_difference(const run::Config& a, const run::Config& b) {
  const run::FlatConfig of_a = flat_config(a), of_b = flat_config(b);
  for (const auto& [key, value] : of_a) {
    const std::string other = value_of(of_b, key);
    if (is_of_task(key) && other != value) return fmt::format("{} is {} and {}", key, value, other);
  }
  return "";
}

class Check {
 public:
  Check(const ClaimsFile& claims, const std::vector<SweepRun>& runs, run::ConfigErrors& errors)
      : claims_(&claims), runs_(&runs), errors_(&errors) {
    for (const SweepRun& run : runs) {
      const std::string& arm = run.config().run.arm;
      if (std::ranges::find(arms_, arm) == arms_.end()) arms_.push_back(arm);
    }
  }

  /// Without names of their own claims speak of arms of this sweep, by run.arm; which arms others
  /// mean is known once they ran.
  void arms_of(const Claim& claim) const {
    std::vector<std::string> named = claim.arms();
    for (const Control& control : claim.controls) named.push_back(control.arm);
    for (const std::string& arm : named) {
      if (std::ranges::find(arms_, arm) == arms_.end())
        errors_->add(claim.location, fmt::format("claims.{}: {}", claim.id, no_arm(arm)));
    }
    if (claim.has_value()) return;
    tasks_of(claim, claim.arm, claim.against);
    if (claim.compared_with)
      tasks_of(claim, claim.compared_with->arm, claim.compared_with->against);
  }

 private:
  /// Two arms compare if they are trained on the same data, as long. All runs of an arm are.
  void tasks_of(const Claim& claim, const std::string& arm, const std::string& against) const {
    const auto first = first_of(arm), second = first_of(against);
    if (first == runs_->end() || second == runs_->end()) return;
    const std::string difference = setting_difference(first->config(), second->config());
    if (difference.empty()) return;
    errors_->add(
        claim.location,
        fmt::format("claims.{}: {} and {} do not compare: {}; a claim needs arms of one task",
                    claim.id, arm, against, difference));
  }

  std::vector<SweepRun>::const_iterator first_of(const std::string& arm) const {
    return std::ranges::find_if(*runs_,
                                [&](const SweepRun& run) { return run.config().run.arm == arm; });
  }

  std::string no_arm(const std::string& name) const {
    constexpr std::size_t kListed = 6;
    const bool varied = std::ranges::find(*runs_, name, &SweepRun::base_arm) != runs_->end();
    std::vector<std::string> some = arms_;
    if (varied) {
      std::erase_if(some, [&](const std::string& arm) { return !arm.starts_with(name); });
    }
    const std::size_t more = some.size() > kListed ? some.size() - kListed : 0;
    some.resize(some.size() - more);
    return fmt::format("'{}' is not an arm of this sweep ({}{}){}", name, fmt::join(some, ", "),
                       more > 0 ? fmt::format(" and {} more", more) : "",
                       varied ? "; where values are swept, an arm is called by them too"
                              : system::did_you_mean(name, arms_));
  }

  const ClaimsFile* claims_;
  const std::vector<SweepRun>* runs_;
  run::ConfigErrors* errors_;
  std::vector<std::string> arms_;
};

std::set<std::uint64_t> seeds_of(const std::vector<SweepRun>& runs) {
  std::set<std::uint64_t> seeds;
  for (const SweepRun& run : runs) seeds.insert(run.config().run.seed);
  return seeds;
}

}  // namespace

void check_claims(const ClaimsFile& claims, const std::vector<SweepRun>& runs,
                  const run::SourceLocation& named_at, run::ConfigErrors& errors) {
  if (runs.empty()) return;
  if (claims.arms.empty()) {
    const Check check(claims, runs, errors);
    for (const Claim& claim : claims.claims) check.arms_of(claim);
  }
  if (seeds_that_count(claims, runs) == 0) {
    errors.add(named_at, fmt::format("sweep.claims: {} counts the seeds {}, and this sweep trains "
                                     "none of them; change sweep.seeds",
                                     claims.path, fmt::join(claims.seeds, ", ")));
  }
  if (claims_elsewhere(claims, runs).size() == claims.claims.size()) {
    errors.add(
        named_at,
        fmt::format("sweep.claims: no run of this sweep is in the regime of any claim of {}; "
                    "change the regimes or what is swept",
                    claims.path));
  }
}

std::vector<std::string> claims_elsewhere(const ClaimsFile& claims,
                                          const std::vector<SweepRun>& runs) {
  std::vector<std::string> ids;
  for (const Claim& claim : claims.claims) {
    const auto is_here = [&](const SweepRun& run) { return in_regime(run, claim.regime); };
    if (std::ranges::none_of(runs, is_here)) ids.push_back(claim.id);
  }
  return ids;
}

Index seeds_that_count(const ClaimsFile& claims, const std::vector<SweepRun>& runs) {
  const std::set<std::uint64_t> trained = seeds_of(runs);
  if (claims.seeds.empty()) return std::ssize(trained);
  return std::ranges::count_if(claims.seeds,
                               [&](std::uint64_t seed) { return trained.contains(seed); });
}

}  // namespace difftape::study
