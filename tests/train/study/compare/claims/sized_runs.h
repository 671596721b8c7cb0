#pragma once
// Made-up runs of arms a and b at several sizes and learning rates.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/train/study/compare/claims/two_arms.h"

namespace difftape::test {

struct SizedResult {
  std::string arm;
  Index d_model = 64;
  int seed = 1;
  double loss = 2;
  double lr = 1e-2;
  run::RunState state = run::RunState::finished;
};

/// A thousand parameters for each unit of model.d_model.
inline study::RunRecord sized_record(const SizedResult& result) {
  study::RunRecord run = record({.arm = result.arm,
                                 .lr = result.lr,
                                 .seed = result.seed,
                                 .loss = result.loss,
                                 .state = result.state,
                                 .config = {{"model.d_model", fmt::to_string(result.d_model)}}});
  run.status.parameters = 1000 * result.d_model;
  return run;
}

/// The loss of a run in groups of held-out documents.
inline void set_groups(study::RunRecord& run, const std::vector<double>& losses) {
  run.metrics.lists["val/group_loss"].set(run.metrics.step.size() - 1, losses);
}

}  // namespace difftape::test
