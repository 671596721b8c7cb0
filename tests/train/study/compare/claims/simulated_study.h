#pragma once
// A study of seven arms, three learning rates and some seeds whose differences are known.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/claims/output.h"

namespace difftape::study {

using Attention = std::map<std::string, std::string>;
inline const std::map<std::string, Attention> kArms = {
    {"base", {{"kind", "softmax"}}},
    {"v1", {{"kind", "diff_v1"}}},
    {"v2", {{"kind", "diff_v2"}, {"lambda", "sigmoid"}}},
    {"crossed", {{"kind", "diff_v2"}, {"pairing", "split_half"}}},
    {"raw", {{"kind", "diff_v2"}, {"lambda", "raw"}}},
    {"none", {{"kind", "diff_v2"}, {"lambda", "none"}}},
    {"v1_no_norm", {{"kind", "diff_v1"}, {"subln", "false"}}}};

/// What a study is made of: the difference of each arm's loss, spikes, growth and metrics from the
/// baseline's, beside noise that the seed makes.
struct Effects {
  std::map<std::string, double> loss = {}, at_large_rate = {}, spikes = {}, growth = {}, scale = {};
  double noise = 0.003;
  int seeds = 4;
  std::uint64_t trial = 0;
  bool metrics = true;
};

inline double of(const std::map<std::string, double>& effects, const std::string& arm) {
  const auto found = effects.find(arm);
  return found == effects.end() ? 0 : found->second;
}

inline std::vector<RunRecord> simulate(const Effects& effects) {
  const RandomStream random(effects.trial, "study");
  std::uint64_t index = 0;
  const auto noise = [&] { return random.normal(index++); };
  std::vector<RunRecord> runs;
  for (const auto& [arm, attention] : kArms) {
    for (const double lr : {1e-3, 3e-3, 1e-2}) {
      for (int seed = 1; seed <= effects.seeds; ++seed) {
        test::Result run{.arm = arm, .attention = attention, .lr = lr, .seed = seed};
        run.loss = 2.3 + (lr == 1e-2 ? 0.2 + of(effects.at_large_rate, arm) : 10 * lr) +
                   of(effects.loss, arm) + effects.noise * noise();
        run.spike_score = 1 + of(effects.spikes, arm) + 0.1 * noise();
        run.late_growth = of(effects.growth, arm) + 0.05 * noise();
        const double scale = std::exp(of(effects.scale, arm));
        const auto metric = [&] { return scale * std::exp(0.05 * noise()); };
        if (effects.metrics) {
          for (const char* name : {"attn/logit_max/", "act/max/", "act/kurtosis/",
                                   "attn/sink_rate/", "attn/first_token/"}) {
            for (const char* layer : {"0", "1"}) run.last[std::string(name) + layer] = metric();
          }
          run.first = {{"attn/context_rms/0", metric()}, {"attn/context_rms_max/0", 1e9}};
        }
        runs.push_back(test::record(run));
      }
    }
  }
  return runs;
}

inline ClaimResult result_of(const std::vector<ClaimResult>& results, const std::string& id) {
  for (const ClaimResult& each : results) {
    if (each.claim->id == id) return each;
  }
  ADD_FAILURE() << "no claim " << id;
  return results.front();
}

/// The verdict on one claim about made-up runs, in words.
inline std::string verdict(const std::vector<RunRecord>& runs, const std::string& id) {
  return verdict_text(result_of(evaluate(make_study(runs)), id));
}

}  // namespace difftape::study
