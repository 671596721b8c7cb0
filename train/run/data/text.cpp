#include "train/run/data/text.h"

#include <algorithm>
#include <string>

#include "core/digest.h"
#include "core/error.h"
#include "train/run/data/sources.h"
#include "train/run/data/windows.h"

namespace difftape::run {

namespace {

class Text : public TokenSource {
 public:
  Text(std::string text, Index file_count) : text_(std::move(text)) {
    Digest bytes;
    bytes.add(text_);
    kind = "text";
    unit = "bytes";
    files = file_count;
    digest = bytes.hex();
    vocab_size = 256;
  }

  Index size() const override { return static_cast<Index>(text_.size()); }
  void copy(Index begin, std::span<std::int32_t> into) const override {
    std::ranges::transform(std::string_view(text_).substr(static_cast<size_t>(begin), into.size()),
                           into.begin(), [](char c) { return static_cast<unsigned char>(c); });
  }

 private:
  std::string text_;
};

}  // namespace

std::unique_ptr<Dataset> make_text(const DataConfig& config, Index, std::uint64_t seed) {
  const NameScope scope("data.path");
  const auto files = find_sources(config.path);
  const std::string from =
      files.size() == 1 ? files[0].string() : fmt::format("{} files", files.size());
  return make_windows(std::make_unique<Text>(read_sources(files), static_cast<Index>(files.size())),
                      "the text of " + from, config, seed);
}

}  // namespace difftape::run
