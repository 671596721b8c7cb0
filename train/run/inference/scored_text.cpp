#include "train/run/inference/scored_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "autograd/ops.h"
#include "train/run/data/prepare/tokenizer.h"
#include "train/run/data/windows.h"

namespace difftape::run {
namespace {

/// Text of the tokens of a source, in bytes.
class PieceSizes {
 public:
  PieceSizes(const TokenSource& source, const Tokenizer& tokenizer)
      : eos_(static_cast<std::int32_t>(source.eos_token_id)) {
    const Index tokens = std::max(source.vocab_size, tokenizer.vocab_size);
    for (std::int32_t token = 0; token < tokens; ++token) {
      inside_.push_back(token == eos_ ? 0 : tokenizer.bytes(token));
      first_.push_back(token == eos_ ? 0 : tokenizer.first_bytes(token));
    }
  }

  /// Returns the size of `token` after the token `before`; -1: none.
  Index of(std::int32_t before, std::int32_t token) const {
    const bool begins = before < 0 || before == eos_;
    return (begins ? first_ : inside_)[static_cast<std::size_t>(token)];
  }

 private:
  std::int32_t eos_;
  std::vector<Index> inside_, first_;  ///< inside a document, and as its first token
};

/// All tokens of a source.
struct WholeText {
  Index files = 0;           ///< number of files with tokens
  Index pieces = 0;          ///< size of all pieces
  Index first_pieces = 0;    ///< size of the first piece of each file
  bool has_unknown = false;  ///< tokens of characters that the vocabulary lacks occur
};

WholeText whole_text(const TokenSource& source, const PieceSizes& sizes, std::int32_t unknown) {
  constexpr Index kPiece = Index{1} << 18;
  std::vector<SourcePart> parts = source.parts;
  if (parts.empty()) parts.push_back({.domain = "", .span = {0, source.size()}});
  WholeText text;
  std::vector<std::int32_t> tokens;
  for (const SourcePart& part : parts) {
    std::int32_t before = -1;
    text.files += part.span.size() > 0 ? 1 : 0;
    for (Index at = part.span.begin; at < part.span.end; at += kPiece) {
      tokens.resize(std::min(kPiece, part.span.end - at));
      source.copy(at, tokens);
      if (at == part.span.begin) text.first_pieces += sizes.of(-1, tokens.front());
      for (const std::int32_t token : tokens) {
        text.pieces += sizes.of(before, token);
        text.has_unknown = text.has_unknown || token == unknown;
        before = token;
      }
    }
  }
  return text;
}

/// The scored targets of some batches.
struct Targets {
  Index count = 0, pieces = 0;
};

Targets targets_of(const ValidationData& data, Index batches, const PieceSizes& sizes) {
  Targets all;
  for (Index i = 0; i < batches; ++i) {
    const Batch batch = data.val_batch(i);
    const std::vector<std::int32_t> inputs = batch.inputs(), targets = batch.targets();
    for (std::size_t at = 0; at < targets.size(); ++at) {
      if (targets[at] == kIgnoreIndex) continue;
      ++all.count;
      all.pieces += sizes.of(inputs[at], targets[at]);
    }
  }
  return all;
}

}  // namespace

ScoredText scored_text(const ValidationData& data, Index batches) {
  const TokenSource* const source = data.source();
  if (source == nullptr) return {};
  if (!source->tokenizer.is_known() || source->text_bytes == 0)
    return {.reason = "the tokens lack the size of their text, which `data prepare` records"};
  const Tokenizer tokenizer = tokenizer_of(source->tokenizer);
  const PieceSizes sizes(*source, tokenizer);
  const Targets targets = targets_of(data, batches, sizes);
  if (source->unit == "bytes") return {.bytes = targets.count};
  const WholeText whole = whole_text(*source, sizes, tokenizer.unknown);
  if (!whole.has_unknown && whole.pieces == source->text_bytes) return {.bytes = targets.pieces};
  if (targets.count == source->size() - whole.files)
    return {.bytes = source->text_bytes - whole.first_pieces};
  return {.reason = fmt::format(
              "{} does not keep the text, so only the size of the whole text is known; evaluate "
              "all of a file with --data and without --batches",
              source->tokenizer.name)};
}

}  // namespace difftape::run
