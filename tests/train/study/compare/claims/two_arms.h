#pragma once
// Two arms of made-up runs, and what a claim about them measures.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/claims/measure.h"

namespace difftape::test {

/// A claim with these lines, about arms a and b.
inline study::ClaimsFile claims(const std::string& lines, const std::string& top = "") {
  return study::claims_from_text(
      top + "claims:\n  c:\n    statement: s\n    arm: a\n    reference: b\n" + lines, "c.yaml");
}

inline study::Measured measured(const study::ClaimsFile& file,
                                const std::vector<study::RunRecord>& runs) {
  return measure(file.claims.front(), file, pointers(runs));
}

/// Arms a and b with three seeds at two learning rates; `change` is applied to each.
inline std::vector<study::RunRecord> two_arms(void (*change)(Result&) = [](Result&) {}) {
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

}  // namespace difftape::test
