// data.type text: tokens are the bytes of text files, and each file is a document.
#include <algorithm>

#include "core/error.h"
#include "core/name_scope.h"
#include "train/run/data/sources.h"
#include "train/system/file_kind.h"

namespace difftape::run {
namespace {

void require_text(const TokenFile& file, Index first, std::span<const std::int32_t> bytes) {
  const auto zero = std::ranges::find(bytes, 0);
  if (zero == bytes.end()) return;
  throw not_text(file.path, file.bytes.all(), first + (zero - bytes.begin()),
                 "set data.type to tokens for token files, or leave this file out");
}

/// Throws DataError for a file of another program, which is text only by its bytes.
void require_plain_text(const std::filesystem::path& path, const system::StoredBytes& bytes) {
  const auto kind =
      system::recognize(path, bytes.read(0, std::min(bytes.size(), system::kHeadBytes)));
  if (kind && kind->format != system::FileFormat::html) system::refuse(path, *kind, "text");
}

/// Text files, and a note on what was read.
struct TextFiles {
  std::vector<TokenFile> files;
  std::string note;
};

TextFiles open_text(std::span<const std::string> entries) {
  const SourceFiles found = find_source_files(entries);
  TextFiles text{{}, entries.empty() ? "" : found.note()};
  for (const auto& [path, domain] : found.files) {
    system::StoredBytes bytes(path);
    require_plain_text(path, bytes);
    const auto size = std::ssize(bytes);
    text.files.push_back({.path = path,
                          .format = "text",
                          .bytes = std::move(bytes),
                          .size = size,
                          .domain = domain});
  }
  return text;
}

std::shared_ptr<StoredTokens> text_source(std::vector<TokenFile> files, std::string note) {
  const std::string from =
      files.size() == 1 ? files[0].path.string() : fmt::format("{} files", files.size());
  auto text = std::make_shared<StoredTokens>(std::move(files), require_text);
  text->type = "text";
  text->unit = "bytes";
  text->vocab_size = kBytes;
  text->from = "the text of " + from;
  text->note = std::move(note);
  text->tokenizer = {.name = kByteTokenizer, .model = {}};
  return text;
}

}  // namespace

std::shared_ptr<const TokenSource> read_text(const char* key,
                                             std::span<const std::string> entries) {
  const NameScope scope(key);
  auto [files, note] = open_text(entries);
  return text_source(std::move(files), std::move(note));
}

std::unique_ptr<Dataset> make_text(const DataConfig& config, std::uint64_t seed,
                                   Index micro_batches) {
  return make_windows_of(config, seed, micro_batches, read_text);
}

}  // namespace difftape::run
