// Do gradients of differential attention have the size of softmax's (Ye et al. 2024, appendix G)?
// Trains softmax, V1 and V2 on the same bytes of a file and prints the L2 norms of their gradients
// before clipping, by layer and group of parameters. A ratio of norms is not a ratio per weight:
// V2's q_proj has twice as many weights, which alone gives a factor of sqrt 2.
//   gradient_flow FILE [STEPS [SEED]]     norms before the first and after STEPS (100) updates
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <difftape/core/random.h>
#include <difftape/layers/language_model.h>
#include <difftape/optim/grad_norm.h>
#include <difftape/optim/optimizer.h>

using namespace difftape;

namespace {

constexpr Index kBatch = 8, kSeq = 64;
constexpr double kLr = 1e-3;

using Group = std::pair<Index, std::string>;  // layer (-1: outside of the blocks), name
using Norms = std::map<Group, double>;
using Flow = std::array<Norms, 2>;  // before the first update and after the last

using Tokens = std::vector<std::int32_t>;

/// Batch `step` of a seed, the same for every kind: windows of the text at random positions.
std::pair<Tokens, Tokens> draw_batch(const std::string& text, Index seed, Index step) {
  const RandomStream random(seed, "windows");
  std::pair<Tokens, Tokens> batch;
  for (Index row = 0; row < kBatch; ++row) {
    const char* window = text.data() + random.below(step * kBatch + row, text.size() - kSeq);
    for (Index t = 0; t < kSeq; ++t) {
      batch.first.push_back(static_cast<unsigned char>(window[t]));
      batch.second.push_back(static_cast<unsigned char>(window[t + 1]));
    }
  }
  return batch;
}

/// Returns one norm per group of attention parameters, and one per other component.
Norms norms_of(const ParameterSet& parameters, const GradNorms& norms) {
  Norms squares;
  for (const Parameter& parameter : parameters) {
    const auto& [component, layer, part] = parameter.part;
    const std::string name(component == Component::attention ? part : to_string(component));
    const double norm = norms.per_parameter[parameter.position];
    squares[{layer, name}] += norm * norm;
  }
  for (auto& [group, square] : squares) square = std::sqrt(square);
  return squares;
}

Flow train(const std::string& kind, const std::string& text, Index steps, Index seed) {
  ModelConfig config{.d_model = 64, .num_layers = 4, .num_heads = 4, .d_ff = 172};
  config.attention.kind = kind;
  LanguageModel model(config);
  model.parameters().initialize(seed);
  Optimizer optimizer(model.parameters(), {.lr = kLr});
  Flow flow;
  for (Index step = 0; step <= steps; ++step) {
    const auto [tokens, targets] = draw_batch(text, seed, step);
    for (Parameter& parameter : model.parameters()) parameter.zero_grad();
    Tape tape;
    const Var loss = model.loss(tape, {tokens, kBatch, kSeq}, targets);
    tape.backward(loss);
    const GradNorms norms = grad_norms(model.parameters());
    for (const Index part : {0, 1}) {
      if (step != part * steps) continue;
      flow[static_cast<std::size_t>(part)] = norms_of(model.parameters(), norms);
      std::printf("%s, after %d updates: loss %.4f, norm of the gradient %.4f\n", kind.c_str(),
                  static_cast<int>(step), static_cast<double>(loss.value().item()), norms.global);
    }
    optimizer.step(kLr, clip_scale(norms.global, 1));
  }
  return flow;
}

/// Prints a norm as a ratio to softmax's; as it is for softmax, or if softmax has no such
/// parameters.
void print_cell(const Norms& kind, const Norms* softmax, const Group& group) {
  const auto norm = kind.find(group);
  if (norm == kind.end()) return void(std::printf("%14s", "-"));
  if (softmax == nullptr) return void(std::printf("%14.2e", norm->second));
  const auto below = softmax->find(group);
  if (below == softmax->end()) return void(std::printf("  norm %7.1e", norm->second));
  std::printf("%14.3f", norm->second / below->second);
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Index steps = argc > 2 ? std::atoi(argv[2]) : 100, seed = argc > 3 ? std::atoi(argv[3]) : 1;
  if (std::ssize(text) <= kSeq || steps < 0)
    return std::fputs("gradient_flow FILE [STEPS [SEED]]; need more than 64 bytes\n", stderr), 64;
  std::vector<Flow> flows;
  for (const char* kind : {"softmax", "diff_v1", "diff_v2"})
    flows.push_back(train(kind, text, steps, seed));
  for (const std::size_t part : {0u, 1u}) {
    std::printf("\nafter %d updates\n", static_cast<int>(part) * static_cast<int>(steps));
    std::printf("layer  group                   softmax  V1 / softmax  V2 / softmax\n");
    Norms groups;  // of all kinds
    for (const Flow& flow : flows) groups.insert(flow[part].begin(), flow[part].end());
    for (const auto& [group, ignored] : groups) {
      const auto& [layer, name] = group;
      std::printf("%5s  %-16s", layer < 0 ? "-" : std::to_string(layer).c_str(), name.c_str());
      for (const Flow& flow : flows)
        print_cell(flow[part], &flow == &flows[0] ? nullptr : &flows[0][part], group);
      std::printf("\n");
    }
  }
}
