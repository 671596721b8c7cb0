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

/// Returns the kind of a file of another program, which is text only by its bytes; nothing for
/// plain text. A folder of code contains JSON, which is text there, as HTML is everywhere.
std::optional<system::FileKind> foreign_kind(const SourceFile& file,
                                             const system::StoredBytes& bytes) {
  using enum system::FileFormat;
  const auto kind = system::recognize(file.path, bytes.all());
  const bool is_text = kind && (kind->format == html || (file.in_folder && kind->format == json));
  return is_text ? std::nullopt : kind;
}

/// Text files, and a note on what was read.
struct TextFiles {
  std::vector<TokenFile> files;
  std::string note;
};

TextFiles open_text(std::span<const std::string> entries) {
  SourceFiles found = find_source_files(entries);
  TextFiles text;
  for (const SourceFile& file : found.files) {
    system::StoredBytes bytes(file.path);
    const auto size = std::ssize(bytes);
    if (const auto kind = foreign_kind(file, bytes)) {
      const bool is_only = found.lines + 1 == std::ssize(found.files);
      if (!file.in_folder || kind->format != system::FileFormat::json_lines || is_only)
        system::refuse(file.path, *kind, "text");
      ++found.lines;
      found.bytes -= size;
      found.left_out_bytes += size;
      continue;
    }
    text.files.push_back({.path = file.path,
                          .format = "text",
                          .bytes = std::move(bytes),
                          .size = size,
                          .domain = file.domain});
  }
  text.note = (entries.empty() ? "the default text: " : "") + found.note();
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
  text->text_bytes = text->size();
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
