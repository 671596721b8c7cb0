#include "train/study/compare/claims/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/study/compare/study.h"
#include "train/system/number.h"
#include "train/system/suggest.h"

namespace difftape::study {

namespace {

constexpr std::string_view kAttention = "model.attention.";
/// Relative tolerance between optim.lr and a multiple of lr_star, which a sweep rounds to six
/// digits.
constexpr double kSameRate = 1e-5;

std::vector<ArmRuns> arms_in(const Regime& where, std::span<const RunRecord* const> runs) {
  std::vector<ArmRuns> arms;
  for (const RunRecord* run : runs) {
    if (!matches(where, [&](const std::string& key) { return run->value(key); })) continue;
    auto arm = std::ranges::find(arms, run->arm, &ArmRuns::name);
    if (arm == arms.end()) arm = arms.insert(arm, {run->arm, {}});
    arm->runs.push_back(run);
  }
  return arms;
}

/// Returns the attention that a claims file describes. Fields that neither the kind nor the file
/// sets are taken from `run`.
AttentionConfig wanted_attention(const run::YamlNode& said, const RunRecord& run) {
  run::ConfigErrors errors;
  run::Assignments given(errors);
  run::Config like;
  const auto kind = std::ranges::find(said.pairs, "kind", [](const auto& p) { return p.key.text; });
  like.model.attention = plain_kind(kind->value.text, *run.attention);
  for (const auto& [key, value] : flat_config(like)) {
    if (key.starts_with(kAttention)) given.add_value(key, value, said.location);
  }
  for (const auto& [key, value] : said.pairs) {
    given.add_node(std::string(kAttention) + key.text, value);
  }
  return given.resolve().config.model.attention;
}

bool has_attention(const ArmRuns& arm, const run::YamlNode& said) {
  const RunRecord& run = *arm.runs.front();
  return run.attention && fields_of(*run.attention) == fields_of(wanted_attention(said, run));
}

/// Returns the attention that a name of the file describes; null if the name is a run.arm.
const run::YamlNode* attention_of(const std::string& name, const ClaimsFile& file) {
  const auto found = std::ranges::find(file.arms, name, &ArmName::name);
  return found != file.arms.end() && found->attention ? &*found->attention : nullptr;
}

std::string none_called(const std::string& name, const run::YamlNode* attention,
                        const std::vector<ArmRuns>& arms) {
  if (arms.empty()) return "no run matches 'where'";
  const auto names = mapped(arms, &ArmRuns::name);
  std::vector<std::string> unknown;
  for (const ArmRuns& arm : arms) {
    if (!arm.runs.front()->attention) unknown.push_back(arm.name);
  }
  if (attention == nullptr) {
    return fmt::format("no arm is named {}{}; the arms are {}", name,
                       system::did_you_mean(name, names), fmt::join(names, ", "));
  }
  const auto said =
      mapped(attention->pairs, [](auto& each) { return each.key.text + ": " + each.value.text; });
  return fmt::format("no arm is {} ({}){}{}", name, fmt::join(said, ", "),
                     unknown.empty() ? "" : "; this version cannot read the attention of ",
                     fmt::join(unknown, ", "));
}

/// Returns a key in which the arms differ apart from fields of the attention kind, or nothing.
std::string other_difference(const ArmRuns& a, const ArmRuns& b) {
  const RunRecord &first = *a.runs.front(), &second = *b.runs.front();
  for (const std::string& key : differing_keys(first, second)) {
    if (run::has_flag(key, run::kOfArm) && !run::has_flag(key, run::kOfAttention)) return key;
  }
  run::Config plain_a, plain_b;  // the fields that no kind sets
  plain_a.model.attention = plain_kind("softmax", *first.attention);
  plain_b.model.attention = plain_kind("softmax", *second.attention);
  const auto found = run::differences(plain_a, plain_b);
  return found.empty() ? "" : found.front().key;
}

/// Selects the runs at the multiples of the arm's own rate that the claim names.
Selected at_own_rates(const ArmRuns& arm, const Claim& claim, const ClaimsFile& file) {
  if (!file.own_rates) {
    throw NoNumbers("{} does not exist yet, so no arm has its own learning rate",
                    file.learning_rates);
  }
  Selected selected{{arm.name, {}}};
  for (const RunRecord* run : arm.runs) {
    const OwnRate& rate = file.own_rates->of(arm.name, run->value("model.d_model"));
    selected.own = rate.lr;
    if (std::ranges::find(rate.seeds, run->seed) != rate.seeds.end()) continue;
    for (const double factor : claim.own_lr) {
      if (std::abs(run->lr / (rate.lr * factor) - 1) > kSameRate) continue;
      selected.arm.runs.push_back(run);
      selected.rates.push_back(factor);
    }
  }
  for (const double factor : claim.own_lr) {
    if (std::ranges::find(selected.rates, factor) != selected.rates.end()) continue;
    throw NoNumbers(
        "no run of {} has lr {:g}, {:g} times its own, and a seed that did not choose it", arm.name,
        selected.own * factor, factor);
  }
  return selected;
}

}  // namespace

bool matches(const Regime& where,
             const std::function<std::string(const std::string& key)>& value_of) {
  return std::ranges::all_of(where, [&](const auto& entry) {
    const std::string found = value_of(entry.first);
    const auto number = system::read_number<double>(found);
    return std::ranges::any_of(entry.second, [&](const std::string& each) {
      const auto meant = system::read_number<double>(each);
      return meant && number ? *meant == *number : each == found;
    });
  });
}

std::vector<ArmRuns> arms_called(const std::string& name, const ClaimsFile& file,
                                 const Regime& where, std::span<const RunRecord* const> runs) {
  const std::vector<ArmRuns> arms = arms_in(where, runs);
  const run::YamlNode* attention = attention_of(name, file);
  std::vector<ArmRuns> found;
  std::ranges::copy_if(arms, std::back_inserter(found), [&](const ArmRuns& arm) {
    return attention ? has_attention(arm, *attention) : arm.name == name;
  });
  if (found.empty()) throw NoNumbers(none_called(name, attention, arms));
  return found;
}

std::pair<ArmRuns, ArmRuns> find_arms(const Claim& claim, const ClaimsFile& file,
                                      std::span<const RunRecord* const> runs) {
  const auto arms = arms_called(claim.arm, file, claim.where, runs);
  if (claim.has_value()) return {arms.front(), {fmt::format("{:g}", claim.value), {}}};
  const auto others = arms_called(claim.reference, file, claim.where, runs);
  const bool by_attention = attention_of(claim.arm, file) && attention_of(claim.reference, file);
  for (const ArmRuns& arm : arms) {
    for (const ArmRuns& other : others) {
      if (!by_attention || other_difference(arm, other).empty()) return {arm, other};
    }
  }
  throw NoNumbers("{} and {} also differ in {}", arms.front().name, others.front().name,
                  other_difference(arms.front(), others.front()));
}

void require_one_population(const ArmRuns& arm) {
  for (const RunRecord* run : arm.runs) {
    const RunRecord& first = *arm.runs.front();
    std::vector<std::string> keys = differing_keys(first, *run);
    std::erase_if(keys, [](const auto& key) { return !run::has_flag(key, run::kOfArm); });
    if (keys.empty() && task_difference(first, *run).empty()) continue;
    throw NoNumbers("runs of {} differ in {}: {} and {}; select some of them with 'where'",
                    arm.name,
                    keys.empty() ? "their data" : fmt::format("{}", fmt::join(keys, ", ")),
                    first.dir.string(), run->dir.string());
  }
}

bool counts(const RunRecord& run, const Seeds& seeds) {
  return run.complete() && (seeds.empty() || std::ranges::count(seeds, run.seed) > 0);
}

std::string seeds_text(const Seeds& seeds) {
  const auto gap = [](std::uint64_t a, std::uint64_t b) { return b != a + 1; };
  return seeds.size() > 2 && std::ranges::adjacent_find(seeds, gap) == seeds.end()
             ? fmt::format("{}..{}", seeds.front(), seeds.back())
             : fmt::format("{}", fmt::join(seeds, ", "));
}

Selected select_runs(const ArmRuns& arm, const Claim& claim, const ClaimsFile& file,
                     const Seeds& seeds) {
  ArmRuns counted{arm.name, {}};
  std::ranges::copy_if(arm.runs, std::back_inserter(counted.runs),
                       [&](const RunRecord* run) { return counts(*run, seeds); });
  if (counted.runs.empty()) {
    const bool ended = std::ranges::any_of(arm.runs, &RunRecord::complete);
    throw NoNumbers(
        ended ? fmt::format("no run of {} has one of the seeds {}", arm.name, seeds_text(seeds))
              : fmt::format("no run of {} has ended", arm.name));
  }
  if (!claim.own_lr.empty()) {
    try {
      return at_own_rates(counted, claim, file);
    } catch (const DataError& error) {
      throw NoNumbers(error.what());
    }
  }
  Selected selected{counted};
  selected.rates = mapped(counted.runs, &RunRecord::lr);
  return selected;
}

}  // namespace difftape::study
