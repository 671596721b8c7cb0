#include "train/run/data/held_out.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "train/run/data/windows.h"

namespace difftape::run {
namespace {

/// Returns the files of a source if they have 2 to kMostDomains domains.
std::vector<SourcePart> told_apart(const TokenSource& source) {
  std::set<std::string> names;
  for (const SourcePart& each : source.parts) names.insert(each.domain);
  const bool few = names.size() > 1 && std::ssize(names) <= kMostDomains;
  return few ? source.parts : std::vector<SourcePart>();
}

/// Calls f(i, span) for each part of `span` that lies in parts[i]; parts cover the row.
template <class F>
void for_each_part(const Span& span, const std::vector<SourcePart>& parts, F&& f) {
  const auto ends = [](const SourcePart& part) { return part.span.end; };
  auto part = std::ranges::upper_bound(parts, span.begin, {}, ends);
  for (; part != parts.end() && part->span.begin < span.end; ++part) {
    const Span common{std::max(span.begin, part->span.begin), std::min(span.end, part->span.end)};
    if (common.size() > 0) f(*part, common);
  }
}

}  // namespace

HeldOut::HeldOut(const std::vector<Span>& spans, const std::vector<SourcePart>& parts) {
  for (const SourcePart& part : parts) domain_named(part.domain);
  for (const Span& span : spans) {
    if (parts.empty()) pieces_.push_back({span, 0});
    for_each_part(span, parts, [&](const SourcePart& part, const Span& common) {
      pieces_.push_back({common, domain_named(part.domain)});
    });
  }
}

Index HeldOut::domain_named(const std::string& name) {
  const auto known = std::ranges::find(names_, name);
  if (known != names_.end()) return known - names_.begin();
  names_.push_back(name);
  return std::ssize(names_) - 1;
}

Index HeldOut::domain_of(Index token) const {
  const auto begins = [](const Piece& piece) { return piece.span.begin; };
  return std::prev(std::ranges::upper_bound(pieces_, token, {}, begins))->domain;
}

HeldOutWindows::HeldOutWindows(std::shared_ptr<const TokenSource> source,
                               const std::vector<Span>& spans, WindowCut cut, Index batch_size,
                               bool by_domain)
    : source_(std::move(source)),
      cut_(cut),
      batch_(batch_size),
      held_out_(spans, by_domain ? told_apart(*source_) : std::vector<SourcePart>()) {
  std::vector<std::vector<Span>> of_domain(std::max<std::size_t>(1, domains().size()));
  for (const Span& span : spans) {
    if (source_->parts.empty()) of_domain[0].push_back(span);
    for_each_part(span, source_->parts, [&](const SourcePart&, const Span& common) {
      of_domain[held_out_.domain_of(common.begin)].push_back(common);
    });
  }
  for (std::size_t i = 0; i < of_domain.size(); ++i) {
    of_domain_.emplace_back(std::move(of_domain[i]), cut);
    size_ += of_domain_.back().size();
    throw_if<DataError>(of_domain_.back().size() == 0,
                        "{}{}: no file has two {}, but validation needs a token and the next; give "
                        "more data{}",
                        source_->from, domains().empty() ? "" : ", domain " + domains()[i],
                        source_->unit, domains().empty() ? "" : ", or leave the domain out");
  }
  taken_.resize(of_domain_.size());
}

void HeldOutWindows::extend_order(Index length) const {
  const auto fraction = [&](std::size_t domain) {
    return static_cast<double>(taken_[domain]) / static_cast<double>(of_domain_[domain].size());
  };
  while (std::ssize(order_) < length) {
    std::size_t next = 0;
    for (std::size_t domain = 1; domain < taken_.size(); ++domain)
      if (fraction(domain) < fraction(next)) next = domain;
    order_.push_back({static_cast<Index>(next), taken_[next]++});
  }
}

std::vector<Span> HeldOutWindows::windows(Index i) const {
  const Index first = i * batch_, end = std::min(size_, first + batch_);
  extend_order(end);
  std::vector<Span> windows;
  for (Index n = first; n < end; ++n)
    windows.push_back(of_domain_[order_[n].domain].window(order_[n].nth));
  return windows;
}

Batch HeldOutWindows::batch(Index i) const {
  const std::vector<Span> all = windows(i);
  const Index rows = std::ssize(all), seq = cut_.window - 1;
  Batch batch{rows, seq, std::vector<std::int32_t>(rows * cut_.window)};
  const auto is_short = [&](const Span& window) { return window.size() < cut_.window; };
  if (std::ranges::any_of(all, is_short)) batch.scored.assign(rows * seq, 1);
  for (Index b = 0; b < rows; ++b) {
    const Index size = all[b].size();
    source_->copy(all[b].begin, std::span(batch.tokens).subspan(b * cut_.window, size));
    if (!batch.scored.empty())
      std::fill_n(batch.scored.begin() + b * seq + size - 1, seq - (size - 1), 0);
  }
  return batch;
}

std::vector<Index> HeldOutWindows::domains_of(Index i) const {
  std::vector<Index> domains;
  for (const Span& window : windows(i)) domains.push_back(held_out_.domain_of(window.begin));
  return domains;
}

}  // namespace difftape::run
