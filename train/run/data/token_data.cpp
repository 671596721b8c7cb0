#include "train/run/data/token_data.h"

#include <algorithm>

#include "core/digest.h"
#include "core/error.h"
#include "train/run/data/sources.h"
#include "train/run/data/token_files.h"
#include "train/run/data/windows.h"

namespace difftape::run {

namespace {

/// The largest token.
std::int32_t check_tokens(const TokenFile& file, Index vocab_size) {
  std::int32_t largest = 0;
  for (Index i = 0; i < file.size(); ++i) {
    if (file[i] < 0 || file[i] >= vocab_size) {
      throw DataError(fmt::format(
          "{}: token {} is {} (read as {}); need 0 to {}, as model.vocab_size is {}: raise it, or "
          "give a file of another vocabulary",
          file.path.string(), i, static_cast<std::uint32_t>(file[i]), file.format, vocab_size - 1,
          vocab_size));
    }
    largest = std::max(largest, file[i]);
  }
  return largest;
}

class TokenData : public TokenSource {
 public:
  TokenData(std::vector<TokenFile> stored, Index model_vocab) : stored_(std::move(stored)) {
    Digest payload;
    for (const TokenFile& file : stored_) {
      vocab_size = std::max<Index>(vocab_size, check_tokens(file, model_vocab) + 1);
      payload.add(std::string_view(file.bytes).substr(file.offset));
      ends_.push_back(size() + file.size());
    }
    kind = unit = "tokens";
    files = static_cast<Index>(stored_.size());
    digest = payload.hex();
  }

  Index size() const override { return ends_.empty() ? 0 : ends_.back(); }
  void copy(Index begin, std::span<std::int32_t> into) const override {
    auto file = static_cast<size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin());
    Index at = begin - (file == 0 ? 0 : ends_[file - 1]);
    for (std::int32_t& token : into) {
      for (; at == stored_[file].size(); at = 0) ++file;
      token = stored_[file][at++];
    }
  }

 private:
  std::vector<TokenFile> stored_;
  std::vector<Index> ends_;  // tokens up to and including each file
};

}  // namespace

std::unique_ptr<Dataset> make_token_data(const DataConfig& config, Index vocab_size,
                                         std::uint64_t seed) {
  const NameScope scope("data.path");
  std::vector<TokenFile> stored;
  for (const auto& path : find_sources(config.path)) stored.push_back(read_token_file(path));
  const std::string from =
      stored.size() == 1 ? stored[0].path.string() : fmt::format("{} files", stored.size());
  return make_windows(std::make_unique<TokenData>(std::move(stored), vocab_size),
                      "the row of tokens of " + from, config, seed);
}

}  // namespace difftape::run
