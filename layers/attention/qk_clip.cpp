#include "layers/attention/qk_clip.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "core/processes.h"

namespace difftape {

namespace {

/// The key head of each query head.
std::vector<Index> key_heads(const HeadMapping& mapping) {
  std::vector<Index> keys(mapping.query_heads);
  for (const OutputHead& output : mapping.outputs) {
    for (Index map = 0; map < mapping.maps; ++map) keys[output.query[map]] = output.key[map];
  }
  return keys;
}

/// NaN if one is, so that the order in which many are compared does not matter.
real larger(real a, real b) { return a < b || std::isnan(b) ? b : a; }

/// Multiplies the rows of a head of `<name>.weight`, (heads * D, C).
void scale_head(ParameterSet& parameters, const std::string& name, Index head, Index heads,
                double factor) {
  Tensor& weight = parameters.find(name + ".weight")->value;
  const Index size = weight.size() / heads;
  serial([&] {
    for (Index i = head * size; i < (head + 1) * size; ++i) {
      weight.data()[i] *= static_cast<real>(factor);
    }
  });
}

}  // namespace

void QkClip::attention(Index layer, const AttentionView& view) {
  if (std::ssize(layers_) <= layer) layers_.resize(layer + 1);
  Layer& of = layers_[layer];
  const std::vector<real> largest = largest_logits(view.mapping, view.softmax_stats);
  if (of.largest.empty()) {
    of = {view.mapping, largest};
    return;
  }
  for (size_t i = 0; i < largest.size(); ++i) of.largest[i] = larger(of.largest[i], largest[i]);
}

QkClipped QkClip::seen() const {
  QkClipped result{-std::numeric_limits<double>::infinity(), 0};
  for (const Layer& layer : layers_) {
    for (const real logit : layer.largest) {
      result.largest = std::max(result.largest, static_cast<double>(logit));
    }
  }
  return result;
}

void QkClip::share() {
  for (Layer& layer : layers_) {
    const std::vector<real> all = processes::all_of(std::span<const real>(layer.largest));
    for (size_t i = 0; i < all.size(); ++i) {
      real& largest = layer.largest[i % layer.largest.size()];
      largest = larger(largest, all[i]);
    }
  }
}

QkClipped QkClip::clip(ParameterSet& parameters) const {
  QkClipped result = seen();
  for (size_t i = 0; i < layers_.size(); ++i) {
    const HeadMapping& mapping = layers_[i].mapping;
    const std::vector<Index> keys = key_heads(mapping);
    const std::string name = fmt::format("model.layers.{}.self_attn.", i);
    for (Index head = 0; head < mapping.query_heads; ++head) {
      const auto largest = static_cast<double>(layers_[i].largest[head]);
      if (!(largest > threshold_)) continue;
      ++result.heads;
      const Index key = keys[head];
      const bool shared = std::ranges::count(keys, key) > 1;
      const double factor = threshold_ / largest;
      scale_head(parameters, name + "q_proj", head, mapping.query_heads,
                 shared ? factor : std::sqrt(factor));
      if (shared) continue;
      scale_head(parameters, name + "k_proj", key, mapping.key_heads, std::sqrt(factor));
    }
  }
  return result;
}

}  // namespace difftape
