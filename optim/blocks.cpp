#include "optim/blocks.h"

#include <algorithm>
#include <stdexcept>

#include "core/parallel.h"

namespace difftape {

std::vector<GradientBlock> gradient_blocks(const ParameterSet& parameters) {
  std::vector<GradientBlock> blocks;
  size_t position = 0;
  for (const Parameter& p : parameters) {
    if (!p.has_gradient) throw std::logic_error("no gradient: run backward first: " + p.name);
    for (Index begin = 0; begin < p.grad.size(); begin += kElementGrain) {
      blocks.push_back({position, begin, std::min(kElementGrain, p.grad.size() - begin)});
    }
    ++position;
  }
  return blocks;
}

}  // namespace difftape
