#include "train/study/sweep/sweep_claims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "train/run/config/fields.h"
#include "train/run/config/writer.h"
#include "train/run/loop/continuation.h"
#include "train/study/compare/claims/arms.h"

namespace difftape::study {

namespace {

/// "data.seq_len is 128 and 256"; empty if two runs are to be trained alike but for their files,
/// which are compared by their contents once they ran.
std::string setting_difference(const run::Config& a, const run::Config& b) {
  for (const run::KeyDifference& each : run::result_differences(a, b)) {
    if (run::has_flag(each.key, run::kOfTask))
      return fmt::format("{} is {} and {}", each.key, each.a, each.b);
  }
  return "";
}

class Check {
 public:
  Check(const std::vector<SweepRun>& runs, run::ConfigErrors& errors)
      : runs_(&runs), errors_(&errors) {
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
        errors_->add(claim.location, fmt::format("claims.{}: {}", claim.id, no_arm_of(arm)));
    }
    if (claim.has_value()) return;
    tasks_of(claim, claim.arm, claim.reference);
    if (claim.compared_with)
      tasks_of(claim, claim.compared_with->arm, claim.compared_with->reference);
  }

 private:
  /// Two arms compare if they are trained on the same data, as long. All runs of an arm are.
  void tasks_of(const Claim& claim, const std::string& arm, const std::string& reference) const {
    const auto first = first_of(arm), second = first_of(reference);
    if (first == runs_->end() || second == runs_->end()) return;
    const std::string difference = setting_difference(first->config(), second->config());
    if (difference.empty()) return;
    errors_->add(
        claim.location,
        fmt::format("claims.{}: {} and {} do not compare: {}; a claim needs arms of one task",
                    claim.id, arm, reference, difference));
  }

  std::vector<SweepRun>::const_iterator first_of(const std::string& arm) const {
    return std::ranges::find_if(*runs_,
                                [&](const SweepRun& run) { return run.config().run.arm == arm; });
  }

  /// Of an arm whose values are swept, the names that it has then.
  std::string no_arm_of(const std::string& name) const {
    if (std::ranges::find(*runs_, name, &SweepRun::base_arm) == runs_->end())
      return no_arm(name, arms_);
    std::vector<std::string> varied = arms_;
    std::erase_if(varied, [&](const std::string& arm) { return !arm.starts_with(name); });
    return no_arm(name, varied) + "; where values are swept, an arm is called by them too";
  }

  const std::vector<SweepRun>* runs_;
  run::ConfigErrors* errors_;
  std::vector<std::string> arms_;
};

bool counts_seed(const Claim& claim, std::uint64_t seed) {
  const auto has = [seed](const Seeds& seeds) { return std::ranges::count(seeds, seed) > 0; };
  if (claim.seeds_of_size.empty()) return claim.seeds.empty() || has(claim.seeds);
  return std::ranges::any_of(claim.seeds_of_size,
                             [&](const auto& of_size) { return has(of_size.second); });
}

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
    const Check check(runs, errors);
    for (const Claim& claim : claims.claims) check.arms_of(claim);
  }
  if (seeds_that_count(claims, runs) == 0) {
    errors.add(named_at, fmt::format("sweep.claims: the claims of {} count other seeds than this "
                                     "sweep trains; change sweep.seeds",
                                     claims.path));
  }
  if (claims_elsewhere(claims, runs).size() == claims.claims.size()) {
    errors.add(named_at,
               fmt::format("sweep.claims: no run of this sweep matches 'where' of any claim of {}; "
                           "change it or what is swept",
                           claims.path));
  }
}

std::vector<std::string> claims_elsewhere(const ClaimsFile& claims,
                                          const std::vector<SweepRun>& runs) {
  std::vector<const Claim*> left;
  for (const Claim& claim : claims.claims) left.push_back(&claim);
  for (const SweepRun& run : runs) {
    if (left.empty()) break;
    const run::FlatConfig flat = flat_config(run.config());
    const std::map<std::string, std::string> config(flat.begin(), flat.end());
    std::erase_if(left, [&](const Claim* claim) {
      return matches(claim->where, [&](const std::string& key) { return config.at(key); });
    });
  }
  std::vector<std::string> ids;
  for (const Claim* claim : left) ids.push_back(claim->id);
  return ids;
}

Index seeds_that_count(const ClaimsFile& claims, const std::vector<SweepRun>& runs) {
  std::set<std::uint64_t> counted;
  for (const std::uint64_t seed : seeds_of(runs)) {
    const auto counts = [seed](const Claim& claim) { return counts_seed(claim, seed); };
    if (std::ranges::any_of(claims.claims, counts)) counted.insert(seed);
  }
  return std::ssize(counted);
}

}  // namespace difftape::study
