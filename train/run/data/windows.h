#pragma once
// Sequences cut out of one long row of tokens, to train and to validate: what text and token files
// have in common. Which part trains and which validates is a function of the tokens alone.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/random.h"
#include "train/run/data/dataset.h"

namespace difftape::run {

/// What became of the files of a text, each of which either trains, validates or is dropped.
struct Division {
  Index dropped_files = 0, dropped_bytes = 0;  ///< near-duplicates
  std::optional<double> val_overlap = {};      ///< fraction of held-out bytes that training has too
};

/// A stretch of a row of tokens, and the domain that it belongs to.
struct DomainSpan {
  std::string domain;
  Span span;
};

/// A row of tokens, and what is known of it.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual Index size() const = 0;
  /// Tokens [begin, begin + into.size()).
  virtual void copy(Index begin, std::span<std::int32_t> into) const = 0;

  std::string type;      ///< data.type
  std::string unit;      ///< what a token is called, "bytes"
  std::string from;      ///< what it is, in messages: "the text of a.txt"
  Index files = 0;       ///< it comes from
  std::string digest;    ///< XXH3 of the tokens as they are stored
  Index vocab_size = 0;  ///< tokens are in [0, vocab_size)
  TokenizerFile tokenizer;
  std::vector<DomainSpan> domains;   ///< of all tokens, in order
  std::optional<Division> division;  ///< of the files that it is a part of
};

/// Training sequences come in the order of Epochs, each step behind the `micro_batches` of the one
/// before; validation sequences do not overlap. They come from `val_source`, if it is not null,
/// else from a part of `source` that does not train. Throws DataError if there is not one sequence
/// of each, or if two tokenizers made them. Domains are those of `val_source`, if it has at least
/// two and at most kMostDomains.
std::unique_ptr<Dataset> make_windows(std::shared_ptr<const TokenSource> source,
                                      std::shared_ptr<const TokenSource> val_source,
                                      const DataConfig& config, std::uint64_t seed,
                                      Index micro_batches);
inline constexpr Index kMostDomains = 64;

/// The same of what `read` makes of the entries of data.path and of data.val_path, given the key
/// and them.
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

/// Stretches of consecutive tokens of one kind, in order; no window of training crosses into
/// validation or back.
struct Split {
  std::vector<Span> train, val;
};

/// The entropy of a token given the one before it, nats: that of the relative frequencies of pairs
/// within the spans, of the first kCountedTokens tokens of them.
double bigram_entropy(const TokenSource& source, const std::vector<Span>& spans);
inline constexpr Index kCountedTokens = Index{1} << 24;

/// Cuts [0, size) into blocks of 16384 tokens, or of val_fraction * size if that is less, but never
/// less than `window`, and gives round(val_fraction * blocks) of them, at least one and not all, to
/// validation. Which ones depends on the number of blocks alone: all seeds share one validation
/// set. A shorter last block trains. Needs size >= 2 * window (std::logic_error).
Split split_by_blocks(Index size, Index window, double val_fraction);

/// The windows of `window` tokens, each `stride` after the one before, that fit into each of the
/// spans: their first positions, in an order that is shuffled once and for all, so that the first
/// few already come from everywhere.
std::vector<Index> shuffled_windows(const std::vector<Span>& spans, Index window, Index stride);

/// The rows of `window` tokens that begin at `starts`.
Batch windows_at(const TokenSource& source, std::span<const Index> starts, Index window);

/// Domain and group of every held-out token. The held-out tokens of each domain, one stretch behind
/// the other, are cut into kLossGroups equal ranges; group g is the g-th range of every domain.
class HeldOut {
 public:
  /// `spans` are held out, in order and apart. `domains` cover them; without any all is one, which
  /// has no name.
  HeldOut(const std::vector<Span>& spans, const std::vector<DomainSpan>& domains);

  /// In the order in which they come.
  const std::vector<std::string>& domains() const { return names_; }
  /// Of a held-out token.
  RowOrigin origin(Index token) const;

 private:
  struct Piece {
    Span span;
    Index domain;
    Index before;  ///< held-out tokens of its domain before it
  };
  Index domain_of(const std::string& name);
  void add(const Span& span, Index domain);

  std::vector<std::string> names_;
  std::vector<Piece> pieces_;
  std::vector<Index> sizes_;  ///< of the domains
};

/// Every token but the first is a target once: sequences of `seq_len` inputs, each of which begins
/// with the last target of the one before it, in batches in the order of shuffled_windows. What is
/// left at the end, a shorter sequence, is the last batch. Throws DataError for a row of one token.
std::unique_ptr<ValidationData> make_whole_row(std::shared_ptr<const TokenSource> source,
                                               Index seq_len, Index batch_size);

/// Windows of `seq_len` + 1 tokens, epoch after epoch. Those of an epoch begin at offset + k
/// seq_len in each span, so that each shares one token with the next and no target comes twice; all
/// that fit come once, in random order, before the next epoch begins. What is left at the ends of a
/// span, less than a window each, comes in other epochs: their offsets are 0, ..., seq_len - 1 in
/// random order, and then again, so that within seq_len epochs a window begins at every place where
/// one fits exactly once.
///
/// Sequence number n of a run is a function of n, the spans, seq_len and the seed: a binary search
/// over the offsets finds its epoch and its place there, and the RandomPermutation of that epoch
/// its window. Memory is that of the spans and the offsets, however many windows there are.
class Epochs {
 public:
  /// Throws std::logic_error if no span has room for a window.
  Epochs(const std::vector<Span>& spans, Index seq_len, std::uint64_t seed);

  /// The first token of sequence number n >= 0 of a run.
  Index start(Index n) const;

  /// The number of windows of the largest epochs, in which they begin where the spans do.
  Index largest() const;

 private:
  /// A span by its windows, if they begin where it does.
  struct Row {
    Index begin;
    Index windows;  ///< at least 1
    Index rest;     ///< tokens behind them: with a larger offset there is one window less
  };
  Index windows_at(Index offset) const;
  Index offset_of(Index slot) const {
    return static_cast<Index>(offsets_(static_cast<std::uint64_t>(slot)));
  }

  Index seq_len_;
  std::vector<Row> rows_;            ///< by falling rest
  std::vector<Index> always_until_;  ///< windows but the last of the rows up to and including each
  RandomPermutation offsets_;
  std::vector<Index> until_;  ///< windows of the first seq_len epochs up to and including each
  RandomStream epochs_;
};

}  // namespace difftape::run
