#pragma once
// Two arms of synthetic runs, and the measurement of a claim about them.

#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/claims/measure.h"

namespace difftape::test {

/// Returns a claim about arms a and b with these lines.
inline study::ClaimsFile claims(const std::string& lines, const std::string& top = "") {
  return study::claims_from_text(
      top + "claims:\n  c:\n    statement: s\n    arm: a\n    reference: b\n" + lines, "c.yaml");
}

inline study::Measured measured(const study::ClaimsFile& file,
                                const std::vector<study::Row>& runs) {
  return measure(file.claims.front(), file, pointers(runs));
}

/// Returns arms a and b with three seeds at two learning rates; `change` is applied to each run.
inline std::vector<study::Row> two_arms(void (*change)(Result&) = [](Result&) {}) {
  std::vector<Result> results;
  for (const char* arm : {"a", "b"}) {
    for (const double lr : {1e-3, 1e-2}) {
      for (const int seed : {1, 2, 3}) {
        Result result{.arm = arm, .lr = lr, .seed = seed};
        result.loss = 2 + 0.1 * seed + 10 * lr + (arm[0] == 'a' ? -0.05 * seed : 0);
        change(result);
        results.push_back(result);
      }
    }
  }
  return records(results);
}

inline constexpr const char* kClaims = R"(margins:
  final_loss: {margin: 0.01, reason: half of the published lead}
claims:
  v2_loss:
    statement: V2's loss is lower than the baseline's
    source: V2 article
    arm: diff_v2
    reference: softmax
    metric: final_loss
    expect: lower
  v1_loss:
    statement: V1's loss is lower than the baseline's
    source: V1 paper
    arm: diff_v1
    reference: softmax
    metric: final_loss
    expect: lower
  v2_sinks:
    statement: V2 has a lower sink rate than the baseline
    arm: diff_v2
    reference: softmax
    metric: sink_rate
    expect: lower
)";

inline study::ClaimsFile some_claims() { return study::claims_from_text(kClaims, "claims.yaml"); }

struct SizedResult {
  std::string arm;
  Index d_model = 64;
  int seed = 1;
  double loss = 2;
  double lr = 1e-2;
  run::RunState state = run::RunState::finished;
};

/// Sets 1,000 parameters per unit of model.d_model.
inline study::Row sized_record(const SizedResult& result) {
  study::Row run = record({.arm = result.arm,
                           .lr = result.lr,
                           .seed = result.seed,
                           .loss = result.loss,
                           .state = result.state,
                           .config = {{"model.d_model", fmt::to_string(result.d_model)}}});
  run.status.parameters = 1000 * result.d_model;
  return run;
}

}  // namespace difftape::test

namespace difftape::study {

using test::claims;
using test::measured;
using test::sized_record;
using test::SizedResult;
using test::some_claims;
using test::two_arms;

}  // namespace difftape::study
