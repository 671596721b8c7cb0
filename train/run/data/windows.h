#pragma once
// Cuts one long row of tokens into training and validation sequences, for text and token files. The
// split is a function of the tokens only.

#include <cstdint>
#include <memory>
#include <vector>

#include "train/run/data/window_order.h"

namespace difftape::run {

/// Outcome of dividing text files into training, validation and dropped files.
struct Division {
  Index dropped_files = 0, dropped_bytes = 0;  ///< near-duplicates
  std::optional<double> val_overlap = {};      ///< fraction of held-out bytes also in training
  std::vector<std::string> held_out = {};      ///< names of the held-out files
};

/// A span of a row of tokens and its domain.
struct DomainSpan {
  std::string domain;
  Span span;
};

/// A row of tokens with its metadata.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual Index size() const = 0;
  /// Copies tokens [begin, begin + into.size()).
  virtual void copy(Index begin, std::span<std::int32_t> into) const = 0;

  std::string type;      ///< data.type
  std::string unit;      ///< name of the tokens, "bytes" or "tokens"
  std::string from;      ///< name in messages, "the text of a.txt"
  Index files = 0;       ///< number of files
  std::string digest;    ///< XXH3 of the stored tokens
  Index vocab_size = 0;  ///< tokens are in [0, vocab_size)
  TokenizerFile tokenizer;
  std::vector<DomainSpan> domains;   ///< domains of all tokens, in order
  std::optional<Division> division;  ///< set if files were divided
};

/// Makes a dataset of windows. Training sequences come in the order of Epochs; a step reads
/// `micro_batches` micro-batches, and the next continues after them. Validation sequences do not
/// overlap; they come from `val_source`, or from a held-out part of `source` if that is null. The
/// dataset has the domains of `val_source` if there are 2 to kMostDomains. Throws DataError if the
/// tokens are too few for one sequence of each, or if the tokenizers differ.
std::unique_ptr<Dataset> make_windows(std::shared_ptr<const TokenSource> source,
                                      std::shared_ptr<const TokenSource> val_source,
                                      const DataConfig& config, std::uint64_t seed,
                                      Index micro_batches);
inline constexpr Index kMostDomains = 64;

/// Makes a dataset of the sources that `read(key, entries)` returns for data.path and
/// data.val_path.
template <class Read>
std::unique_ptr<Dataset> make_windows_of(const DataConfig& config, std::uint64_t seed,
                                         Index micro_batches, Read&& read) {
  const std::shared_ptr<const TokenSource> source = read("data.path", config.path);
  std::shared_ptr<const TokenSource> val_source;
  if (!config.val_path.empty()) {
    const bool same = config.val_path == config.path;
    val_source = same ? source : read("data.val_path", config.val_path);
  }
  return make_windows(source, val_source, config, seed, micro_batches);
}

/// Spans of training and validation tokens, in order; no window crosses their borders.
struct Split {
  std::vector<Span> train, val;
};

/// Returns the entropy of a token given the previous one, in nats per token, from the frequencies
/// of pairs in the first kCountedTokens tokens of the spans.
double bigram_entropy(const TokenSource& source, const std::vector<Span>& spans);
inline constexpr Index kCountedTokens = Index{1} << 24;

/// Cuts [0, size) into blocks of 16384 tokens, or of val_fraction * size if that is less, but never
/// less than `window`, and gives round(val_fraction * blocks) of them, at least one and not all, to
/// validation. Which ones depends on the number of blocks alone: all seeds share one validation
/// set. A shorter last block trains. Needs size >= 2 * window (std::logic_error).
Split split_by_blocks(Index size, Index window, double val_fraction);

/// Returns the windows of `window` tokens that begin at `starts`, one per row.
Batch windows_at(const TokenSource& source, std::span<const Index> starts, Index window);

/// Domain and group of every held-out token. The held-out tokens of each domain are concatenated
/// and cut into kLossGroups equal ranges; group g is the g-th range of every domain.
class HeldOut {
 public:
  /// `spans` are ordered and disjoint, and `domains` cover them. Without domains, all tokens are in
  /// one unnamed domain.
  HeldOut(const std::vector<Span>& spans, const std::vector<DomainSpan>& domains);

  /// Returns the names of the domains in order of appearance.
  const std::vector<std::string>& domains() const { return names_; }
  /// Returns the domain and group of a held-out token.
  RowOrigin origin(Index token) const;

 private:
  struct Piece {
    Span span;
    Index domain;
    Index before;  ///< number of earlier held-out tokens of its domain
  };
  Index domain_of(const std::string& name);
  void add(const Span& span, Index domain);

  std::vector<std::string> names_;
  std::vector<Piece> pieces_;
  std::vector<Index> sizes_;  ///< held-out tokens by domain
};

/// Makes validation data in which every token except the first is a target once. Each sequence has
/// `seq_len` inputs and begins with the last target of the previous one; batches are in the order
/// of ShuffledWindows. The remaining tokens, a shorter sequence, are the last batch. Throws
/// DataError for fewer than two tokens.
std::unique_ptr<ValidationData> make_whole_row(std::shared_ptr<const TokenSource> source,
                                               Index seq_len, Index batch_size);

}  // namespace difftape::run
