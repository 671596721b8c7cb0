#pragma once
// What the loss on held-out text is divided by: its domains, and groups of neighboring documents.

#include <string>
#include <vector>

#include "train/run/data/dataset.h"

namespace difftape::run {

/// A stretch of a row of tokens, and the domain that it belongs to.
struct DomainSpan {
  std::string domain;
  Span span;
};

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

}  // namespace difftape::run
