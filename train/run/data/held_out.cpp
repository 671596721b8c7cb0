#include "train/run/data/held_out.h"

#include <algorithm>

namespace difftape::run {

HeldOut::HeldOut(const std::vector<Span>& spans, const std::vector<DomainSpan>& domains) {
  if (domains.empty()) sizes_.push_back(0);
  for (const Span& span : spans) {
    if (domains.empty()) add(span, 0);
    const auto ends = [](const DomainSpan& of) { return of.span.end; };
    auto of = std::ranges::upper_bound(domains, span.begin, {}, ends);
    for (; of != domains.end() && of->span.begin < span.end; ++of) {
      add({std::max(span.begin, of->span.begin), std::min(span.end, of->span.end)},
          domain_of(of->domain));
    }
  }
}

Index HeldOut::domain_of(const std::string& name) {
  const auto known = std::ranges::find(names_, name);
  if (known != names_.end()) return known - names_.begin();
  names_.push_back(name);
  sizes_.push_back(0);
  return std::ssize(names_) - 1;
}

void HeldOut::add(const Span& span, Index domain) {
  Index& size = sizes_[static_cast<size_t>(domain)];
  pieces_.push_back({span, domain, size});
  size += span.size();
}

RowOrigin HeldOut::origin(Index token) const {
  const auto begins = [](const Piece& piece) { return piece.span.begin; };
  const Piece& piece = *std::prev(std::ranges::upper_bound(pieces_, token, {}, begins));
  const Index place = piece.before + token - piece.span.begin;
  return {piece.domain, kLossGroups * place / sizes_[static_cast<size_t>(piece.domain)]};
}

}  // namespace difftape::run
