#pragma once
// What a model is trained and validated on: batches of token sequences.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "core/attention/attention.h"
#include "train/config/config.h"

namespace difftape {

/// Sequences with one token more than the model reads, so that every input has its target.
struct Batch {
  Index batch = 0;                   ///< B, sequences
  Index seq = 0;                     ///< T, tokens the model reads of each
  std::vector<std::int32_t> tokens;  ///< (B, T + 1), row-major

  std::vector<std::int32_t> inputs() const { return columns(0); }   ///< (B, T)
  std::vector<std::int32_t> targets() const { return columns(1); }  ///< (B, T), inputs one later
  /// Where the document of each input token begins in its row, the token `document_end` being the
  /// last of a document; null if it is negative.
  DocumentStarts document_starts(Index document_end) const;

 private:
  std::vector<std::int32_t> columns(Index first) const;
};

/// A source of batches without state: each is a function of its arguments and the seed, so a run
/// continues anywhere, and the order of the data does not depend on the model.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Micro-batch `micro` of an optimiser step. Its row b is sequence micro * batch_size + b of the
  /// step: a step sees the same sequences however they are split into micro-batches.
  virtual Batch train_batch(Index step, Index micro) const = 0;

  /// Validation batch i of val_batches(), at least 1. The same for every seed.
  virtual Batch val_batch(Index i) const = 0;
  virtual Index val_batches() const = 0;

  /// Tokens are in [0, vocab_size()).
  virtual Index vocab_size() const = 0;

  /// What env.json records: kind, size and digest.
  virtual nlohmann::ordered_json info() const = 0;
};

/// Throws MissingInput or DataError about the data, each naming data.path, and ConfigError for a
/// kind that is not in dataset_kinds() or a model.vocab_size too small for the tokens.
std::unique_ptr<Dataset> make_dataset(const DataConfig& config, const ModelConfig& model,
                                      std::uint64_t seed);

/// The values of data.kind.
std::span<const std::string_view> dataset_kinds();

}  // namespace difftape
