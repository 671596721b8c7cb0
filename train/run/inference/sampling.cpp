#include "train/run/inference/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.h"

namespace difftape::run {

namespace {

void require_finite(std::span<const real> logits) {
  const auto bad = std::ranges::find_if(logits, [](real x) { return !std::isfinite(x); });
  if (bad == logits.end()) return;
  throw DataError(
      fmt::format("the logit of token {} is {}: nothing can be drawn; the weights have "
                  "diverged, use an earlier checkpoint",
                  bad - logits.begin(), static_cast<double>(*bad)));
}

bool leaves_out(const Sampling& sampling) {
  return sampling.top_k > 0 || sampling.top_p < 1 || sampling.min_p > 0;
}

/// How many of the probabilities, from the largest to the smallest, may be drawn. At least one.
size_t count_allowed(const std::vector<double>& probabilities, const Sampling& sampling) {
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  size_t count = 0;
  double before = 0;
  for (const double p : probabilities) {
    if (count > 0 &&
        (before >= sampling.top_p * total || p < sampling.min_p * probabilities.front())) {
      break;
    }
    before += p;
    ++count;
  }
  return count;
}

}  // namespace

std::int32_t sample(std::span<const real> logits, const Sampling& sampling, double u) {
  require_finite(logits);
  const auto likeliest = std::ranges::max_element(logits);
  if (sampling.temperature == 0) return static_cast<std::int32_t>(likeliest - logits.begin());
  std::vector<std::int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto logit = [&](std::int32_t token) { return logits[static_cast<size_t>(token)]; };
  if (leaves_out(sampling)) std::ranges::stable_sort(tokens, std::ranges::greater(), logit);
  if (sampling.top_k > 0)
    tokens.resize(std::min(tokens.size(), static_cast<size_t>(sampling.top_k)));
  std::vector<double> probabilities;
  for (const std::int32_t token : tokens) {
    const double below = static_cast<double>(logit(token)) - static_cast<double>(*likeliest);
    probabilities.push_back(std::exp(below / sampling.temperature));
  }
  if (leaves_out(sampling)) probabilities.resize(count_allowed(probabilities, sampling));
  double left = u * std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  size_t drawn = 0;
  while (drawn + 1 < probabilities.size() && left >= probabilities[drawn])
    left -= probabilities[drawn++];
  return tokens[drawn];
}

}  // namespace difftape::run
