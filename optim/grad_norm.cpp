#include "optim/grad_norm.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/rows.h"

namespace difftape {

std::vector<GradientBlock> gradient_blocks(const ParameterSet& parameters) {
  std::vector<GradientBlock> blocks;
  for (const Parameter& p : parameters) {
    if (!p.has_gradient) throw std::logic_error("no gradient: run backward first: " + p.name);
    for (Index begin = 0; begin < p.grad.size(); begin += kElementGrain) {
      blocks.push_back({p.position, begin, std::min(kElementGrain, p.grad.size() - begin)});
    }
  }
  return blocks;
}

GradNorms grad_norms(const ParameterSet& parameters, const Shards& shards) {
  const std::vector<GradientBlock> blocks = gradient_blocks(parameters);
  std::vector<double> sums(blocks.size());
  parallel_for(std::ssize(blocks), [&](Index i) {
    const auto [parameter, begin, count] = blocks[i];
    if (!shards.here(parameter, begin)) return;
    const real* grad = parameters[parameter].grad.data() + begin;
    sums[i] = sum_of(ConstRow(grad, count).cast<double>().square());
  });
  shards.share(sums);

  GradNorms norms;
  norms.per_parameter.resize(parameters.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    norms.per_parameter[blocks[i].parameter] += sums[i];
    norms.global += sums[i];
  }
  for (double& norm : norms.per_parameter) norm = std::sqrt(norm);
  norms.global = std::sqrt(norms.global);
  return norms;
}

double clip_scale(double norm, double max_grad_norm) {
  return max_grad_norm > 0 ? std::min(1.0, max_grad_norm / (norm + 1e-6)) : 1.0;
}

const Parameter* first_non_finite(const ParameterSet& parameters, const Shards& shards) {
  std::vector<char> wrong_gradient(parameters.size());
  for (const Parameter& p : parameters) {
    for (Index begin = 0; p.has_gradient && begin < p.grad.size(); begin += kElementGrain) {
      const Index count = std::min(kElementGrain, p.grad.size() - begin);
      if (shards.here(p.position, begin) && !p.grad.slice(begin, count).all_finite())
        wrong_gradient[p.position] = 1;
    }
  }
  shards.share(wrong_gradient);
  const Parameter* found = nullptr;
  for (const Parameter& p : parameters) {
    if (!p.value.all_finite()) return &p;
    if (wrong_gradient[p.position]) found = &p;
  }
  return found;
}

}  // namespace difftape
