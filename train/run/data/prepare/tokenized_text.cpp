#include "train/run/data/prepare/tokenized_text.h"

#include <algorithm>

#include "core/digest.h"
#include "core/name_scope.h"
#include "train/run/data/prepare/corpus.h"
#include "train/run/data/sources.h"

namespace difftape::run {
namespace {

class TokensInMemory : public TokenSource {
 public:
  explicit TokensInMemory(std::vector<std::int32_t> tokens) : tokens_(std::move(tokens)) {}
  Index size() const override { return std::ssize(tokens_); }
  void copy(Index begin, std::span<std::int32_t> into) const override {
    std::copy_n(tokens_.begin() + begin, into.size(), into.begin());
  }

 private:
  std::vector<std::int32_t> tokens_;
};

}  // namespace

std::shared_ptr<const TokenSource> tokenize_text(const char* key,
                                                 std::span<const std::string> entries,
                                                 const Tokenizer& tokenizer, Index eos_token_id) {
  const NameScope scope(key);
  const SourceFiles found = find_source_files(entries);
  std::vector<std::int32_t> tokens;
  std::vector<SourcePart> parts;
  Index text_bytes = 0;
  bool continues = false;
  read_documents(found.files, "text", tokenizer.utf8, [&](const Piece& piece) {
    for (const Index end = std::ssize(tokens); std::ssize(parts) <= piece.file;)
      parts.push_back({.domain = found.files[parts.size()].domain, .span = {end, end}});
    encode_in_parts(tokenizer, piece.text, std::exchange(continues, !piece.ends_document),
                    [&](std::string_view, std::span<const std::int32_t> part) {
                      tokens.insert(tokens.end(), part.begin(), part.end());
                    });
    text_bytes += std::ssize(piece.text);
    if (piece.ends_document && eos_token_id >= 0)
      tokens.push_back(static_cast<std::int32_t>(eos_token_id));
    parts.back().span.end = std::ssize(tokens);
  });
  Digest digest;
  digest.add(std::as_bytes(std::span(tokens)));
  auto source = std::make_shared<TokensInMemory>(std::move(tokens));
  source->parts = std::move(parts);
  source->type = source->unit = "tokens";
  source->from = "the text of " + one_or_number(found.files);
  source->files = std::ssize(found.files);
  source->digest = digest.hex();
  source->vocab_size = std::max(tokenizer.vocab_size, eos_token_id + 1);
  source->tokenizer = tokenizer.file;
  source->text_bytes = text_bytes;
  source->eos_token_id = eos_token_id;
  source->note = found.note();
  return source;
}

}  // namespace difftape::run
