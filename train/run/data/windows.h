#pragma once
// Training and validation sequences cut out of one long row of tokens: what text and token files
// have in common.

#include <memory>

#include "train/run/data/dataset.h"

namespace difftape::run {

/// A row of tokens, and what is known of it.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual Index size() const = 0;
  /// Tokens [begin, begin + into.size()).
  virtual void copy(Index begin, std::span<std::int32_t> into) const = 0;

  std::string kind;      ///< data.kind
  std::string unit;      ///< what a token is called, "bytes"
  Index files = 0;       ///< it comes from
  std::string digest;    ///< XXH3 of the tokens as they are stored
  Index vocab_size = 0;  ///< tokens are in [0, vocab_size)
};

/// Training sequences begin at random positions, drawn with replacement from the whole training
/// part; validation sequences do not overlap. `from` names the source in messages. Throws
/// DataError if it is too short for one sequence of each part.
std::unique_ptr<Dataset> make_windows(std::unique_ptr<TokenSource> source, const std::string& from,
                                      const DataConfig& config, std::uint64_t seed);

}  // namespace difftape::run
