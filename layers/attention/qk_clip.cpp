#include "layers/attention/qk_clip.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.h"

namespace difftape {

namespace {

/// Returns the key head of each query head.
std::vector<Index> key_heads(const HeadMapping& mapping) {
  std::vector<Index> keys(mapping.query_heads);
  for (const OutputHead& output : mapping.outputs) {
    for (Index map = 0; map < mapping.maps; ++map) keys[output.query[map]] = output.key[map];
  }
  return keys;
}

/// Returns NaN if either is, so that the order of comparisons does not matter.
real larger(real a, real b) { return a < b || std::isnan(b) ? b : a; }

/// Returns the weight of a part of a layer; end() for keys of a cross-decoder.
auto weight_of(ParameterSet& parameters, Index layer, std::string_view part) {
  return std::ranges::find_if(parameters, [&](const Parameter& p) {
    return p.part.component == Component::attention && p.part.layer == layer && p.part.name == part;
  });
}

/// Scales the rows of one head in a weight (heads * D, C).
void scale_head(Parameter& weight, Index head, Index heads, double factor) {
  const Index size = weight.shape.size() / heads;
  serial([&] {
    for (real& x : weight.value.values().subspan(head * size, size)) x *= static_cast<real>(factor);
  });
}

}  // namespace

void QkClip::Layer::join(std::span<const real> others) {
  for (size_t i = 0; i < others.size(); ++i) {
    real& known = largest[i % largest.size()];
    known = larger(known, others[i]);
  }
}

void QkClip::attention(Index layer, const AttentionView& view) {
  if (std::ssize(layers_) <= layer) layers_.resize(layer + 1);
  const std::vector<real> largest = largest_logits(view.mapping, view.softmax_stats);
  if (layers_[layer].largest.empty()) layers_[layer] = {view.mapping, largest};
  layers_[layer].join(largest);
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

QkClipped QkClip::clip(ParameterSet& parameters) const {
  QkClipped result = seen();
  for (Index layer = 0; layer < std::ssize(layers_); ++layer) {
    const HeadMapping& mapping = layers_[layer].mapping;
    const std::vector<Index> keys = key_heads(mapping);
    const auto queries_weight = weight_of(parameters, layer, "q_proj");
    const auto keys_weight = weight_of(parameters, layer, "k_proj");
    const bool cross = keys_weight == parameters.end();
    for (Index head = 0; head < mapping.query_heads; ++head) {
      const auto largest = static_cast<double>(layers_[layer].largest[head]);
      if (!(largest > threshold_)) continue;
      ++result.heads;
      const Index key = keys[head];
      const bool shared = cross || std::ranges::count(keys, key) > 1;
      const double factor = threshold_ / largest;
      scale_head(*queries_weight, head, mapping.query_heads, shared ? factor : std::sqrt(factor));
      if (shared) continue;
      scale_head(*keys_weight, key, mapping.key_heads, std::sqrt(factor));
    }
  }
  return result;
}

}  // namespace difftape
