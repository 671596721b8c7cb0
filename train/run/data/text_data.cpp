// data.type text: tokens are the bytes of text files, and each file is a document.
#include <algorithm>

#include "core/error.h"
#include "core/name_scope.h"
#include "train/run/data/sources.h"

namespace difftape::run {
namespace {

void require_text(const TokenFile& file, Index first, std::span<const std::int32_t> bytes) {
  const auto zero = std::ranges::find(bytes, 0);
  if (zero == bytes.end()) return;
  throw not_text(file.path, file.bytes.all(), first + (zero - bytes.begin()),
                 "set data.type to tokens for token files, or leave this file out");
}

std::vector<TokenFile> open_text(std::span<const std::string> entries) {
  std::vector<TokenFile> files;
  for (const auto& [path, domain] : find_source_files(entries)) {
    system::StoredBytes bytes(path);
    const auto size = std::ssize(bytes);
    files.push_back({.path = path,
                     .format = "text",
                     .bytes = std::move(bytes),
                     .size = size,
                     .domain = domain});
  }
  return files;
}

std::shared_ptr<StoredTokens> text_source(std::vector<TokenFile> files) {
  const std::string from =
      files.size() == 1 ? files[0].path.string() : fmt::format("{} files", files.size());
  auto text = std::make_shared<StoredTokens>(std::move(files), require_text);
  text->type = "text";
  text->unit = "bytes";
  text->vocab_size = kBytes;
  text->from = "the text of " + from;
  return text;
}

}  // namespace

std::shared_ptr<const TokenSource> read_text(const char* key,
                                             std::span<const std::string> entries) {
  const NameScope scope(key);
  return text_source(open_text(entries));
}

std::unique_ptr<Dataset> make_text(const DataConfig& config, std::uint64_t seed,
                                   Index micro_batches) {
  return make_windows_of(config, seed, micro_batches, read_text);
}

}  // namespace difftape::run
