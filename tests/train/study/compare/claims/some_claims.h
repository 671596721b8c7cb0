#pragma once
// Claims about V1 and V2 beside softmax that tests judge by.

#include "train/study/compare/claims/claims_file.h"

namespace difftape::test {

inline constexpr const char* kClaims = R"(arms:
  softmax: {kind: softmax}
  v1: {kind: diff_v1}
  v2: {kind: diff_v2}
margins:
  final_loss: {margin: 0.01, reason: half of the published lead}
claims:
  v2_loss:
    statement: V2's loss is lower than the baseline's
    source: V2 article
    arm: v2
    reference: softmax
    metric: final_loss
    expect: lower
    published: [-0.03, -0.02]
  v1_loss:
    statement: V1's loss is lower than the baseline's
    source: V1 paper
    arm: v1
    reference: softmax
    metric: final_loss
    expect: lower
  v2_sinks:
    statement: V2 has a lower sink rate than the baseline
    arm: v2
    reference: softmax
    metric: sink_rate
    expect: lower
)";

inline study::ClaimsFile some_claims() { return study::claims_from_text(kClaims, "claims.yaml"); }

}  // namespace difftape::test
