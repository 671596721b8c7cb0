#include "train/run/data/stored_tokens.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/digest.h"

namespace difftape::run {

static_assert(std::endian::native == std::endian::little, "stored tokens are little-endian");

namespace {

constexpr Index kPiece = Index{1} << 18;  ///< tokens that are looked at together

/// The token, or -1 if 31 bits do not hold it.
std::int32_t token_of(auto stored) {
  return std::in_range<std::int32_t>(stored) ? static_cast<std::int32_t>(stored) : -1;
}

template <class T>
void widen(std::string_view bytes, std::span<std::int32_t> into) {
  for (size_t i = 0; i < into.size(); ++i) {
    T token;
    std::memcpy(&token, bytes.data() + i * sizeof(T), sizeof(T));
    into[i] = token_of(token);
  }
}

/// Fills `into` with tokens from number `begin` on; returns their bytes as they are stored, of
/// those read in pieces as they are now.
std::span<const std::byte> read_tokens(const TokenFile& file, Index begin,
                                       std::span<std::int32_t> into) {
  if (file.pieces) {
    std::vector<std::int64_t> stored(into.size());
    file.pieces->read_range("tokens", begin, stored);
    std::ranges::transform(stored, into.begin(),
                           [](std::int64_t token) { return token_of(token); });
    return std::as_bytes(into);
  }
  const std::string_view bytes = file.bytes.read(
      file.offset + static_cast<size_t>(begin) * file.width, into.size() * file.width);
  if (file.width == 1) widen<std::uint8_t>(bytes, into);
  if (file.width == 2) widen<std::uint16_t>(bytes, into);
  if (file.width == 4) widen<std::uint32_t>(bytes, into);
  if (file.width == 8) widen<std::uint64_t>(bytes, into);
  return std::as_bytes(std::span(bytes));
}

}  // namespace

void TokenFile::read(Index begin, std::span<std::int32_t> into) const {
  read_tokens(*this, begin, into);
}

StoredTokens::StoredTokens(std::vector<TokenFile> stored, const Check& check)
    : files_(std::move(stored)) {
  Digest payload;
  std::vector<std::int32_t> tokens;
  for (const TokenFile& file : files_) {
    for (Index at = 0; at < file.size; at += kPiece) {
      tokens.resize(static_cast<size_t>(std::min(kPiece, file.size - at)));
      payload.add(read_tokens(file, at, tokens));
      check(file, at, tokens);
    }
    if (domains.empty() || domains.back().domain != file.domain)
      domains.push_back({file.domain, {size(), size()}});
    domains.back().span.end += file.size;
    ends_.push_back(size() + file.size);
  }
  files = std::ssize(files_);
  digest = payload.hex();
}

void StoredTokens::copy(Index begin, std::span<std::int32_t> into) const {
  auto file = static_cast<size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin());
  Index at = begin - (file == 0 ? 0 : ends_[file - 1]);
  for (; !into.empty(); ++file, at = 0) {
    const Index here = std::min(std::ssize(into), files_[file].size - at);
    files_[file].read(at, into.first(static_cast<size_t>(here)));
    into = into.subspan(static_cast<size_t>(here));
  }
}

}  // namespace difftape::run
