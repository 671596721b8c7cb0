#pragma once
// Validation windows of a row of tokens, with their domains.

#include <memory>
#include <string>
#include <vector>

#include "train/run/data/window_order.h"

namespace difftape::run {

class TokenSource;
struct SourcePart;

/// The domain of every held-out token.
class HeldOut {
 public:
  /// `spans` are ordered and disjoint, and `parts` cover them. Without parts, all tokens are in one
  /// unnamed domain.
  HeldOut(const std::vector<Span>& spans, const std::vector<SourcePart>& parts);

  /// Returns the names of the domains in order of appearance.
  const std::vector<std::string>& domains() const { return names_; }
  /// Returns the domain of a held-out token, an index into domains().
  Index domain_of(Index token) const;

 private:
  struct Piece {
    Span span;
    Index domain;
  };
  Index domain_named(const std::string& name);

  std::vector<std::string> names_;
  std::vector<Piece> pieces_;
};

/// The validation windows of some spans of a row of tokens. Windows never cross a file. Their order
/// is fixed: a shuffle of each domain, merged so that every prefix takes about the same fraction of
/// each domain, and at least one window if it has as many windows as there are domains. Batches are
/// cut from this order, so all of them together have every window once, whatever their size.
///
/// A window shorter than seq_len + 1 tokens is padded with tokens 0, whose targets are not scored.
class HeldOutWindows {
 public:
  /// Domains are told apart if there are 2 to kMostDomains and `by_domain`.
  HeldOutWindows(std::shared_ptr<const TokenSource> source, const std::vector<Span>& spans,
                 WindowCut cut, Index batch_size, bool by_domain);

  Index size() const { return size_; }  ///< number of windows
  Index batches() const { return ceil_div(size_, batch_); }
  Batch batch(Index i) const;
  /// Returns the domain of each row of batch i, an index into domains().
  std::vector<Index> domains_of(Index i) const;
  /// Returns the names of the domains; empty if they are not told apart.
  const std::vector<std::string>& domains() const { return held_out_.domains(); }
  const TokenSource& source() const { return *source_; }

 private:
  /// Returns the windows of batch i.
  std::vector<Span> windows(Index i) const;
  void extend_order(Index length) const;

  std::shared_ptr<const TokenSource> source_;
  WindowCut cut_;
  Index batch_;
  HeldOut held_out_;
  std::vector<ShuffledWindows> of_domain_;
  Index size_ = 0;
  struct Place {
    Index domain, nth;
  };
  mutable std::vector<Place> order_;  ///< a prefix of the order
  mutable std::vector<Index> taken_;  ///< windows of each domain in it
};

}  // namespace difftape::run
