#pragma once
// Helpers for tests of generated tasks: datasets, rows, and a test of frequencies.

#include <boost/math/distributions/chi_squared.hpp>

#include "core/digest.h"
#include "tests/support/test.h"
#include "train/run/config/writer.h"
#include "train/run/data/dataset.h"

namespace difftape::test {

inline std::unique_ptr<run::Dataset> make_task(const run::DataConfig& config,
                                               std::uint64_t seed = 1) {
  ModelConfig model;
  model.vocab_size = 4096;
  return run::make_dataset(config, model, seed);
}

/// Returns the errors of a configuration that is valid except for this section and the vocabulary
/// size.
inline std::string errors_of(const run::DataConfig& data, const ModelConfig& model = {}) {
  run::Config config;
  config.model = model;
  config.data = data;
  return message_of<ConfigError>([&] { run::config_from_yaml(run::to_yaml(config), "config"); });
}

/// Returns the tokens of row b of a batch.
inline std::span<const std::int32_t> row_of(const run::Batch& batch, Index b) {
  return std::span(batch.tokens)
      .subspan(static_cast<size_t>(b * (batch.seq + 1)), static_cast<size_t>(batch.seq + 1));
}

/// Returns true if target t of row b is scored.
inline bool is_scored(const run::Batch& batch, Index b, Index t) {
  return batch.scored.empty() || batch.scored[static_cast<size_t>(b * batch.seq + t)] != 0;
}

/// Returns the digest of tokens and scored targets of the first two training batches and the first
/// validation batch of seed 1.
inline std::string digest_of(const run::DataConfig& config) {
  const auto data = make_task(config);
  Digest digest;
  for (const run::Batch& batch :
       {data->train_batch(0, 0), data->train_batch(1, 0), data->val_batch(0)}) {
    digest.add(std::as_bytes(std::span(batch.tokens)));
    digest.add(std::as_bytes(std::span(batch.scored)));
  }
  return digest.hex();
}

/// Returns the p-value of Pearson's chi-square test of counts against their expectations, which
/// have the same sum.
inline double chi_square_p(const std::vector<double>& counts, const std::vector<double>& expected) {
  double statistic = 0;
  for (size_t i = 0; i < counts.size(); ++i)
    statistic += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  const boost::math::chi_squared distribution(static_cast<double>(counts.size() - 1));
  return boost::math::cdf(boost::math::complement(distribution, statistic));
}

/// Returns the distance of a number of successes from its expectation, in standard deviations.
inline double deviations(double successes, double trials, double probability) {
  return std::abs(successes - trials * probability) /
         std::sqrt(trials * probability * (1 - probability));
}

}  // namespace difftape::test
