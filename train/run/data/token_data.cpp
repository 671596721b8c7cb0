// data.kind tokens: files of tokens that other programs wrote.
//
//   nanoGPT .bin   uint16, nothing else
//   llm.c .bin     256 int32: magic 20240520, version 1, number of tokens; then uint16
//                  or magic 20240801, version 7, number of tokens; then uint32
//   HDF5           dataset /tokens with one axis, of any whole-number type
//
// All little-endian. A .bin that begins with one of llm.c's magic numbers is llm.c's; as nanoGPT
// these would be tokens above 55,000, which GPT-2's vocabulary does not have.
#include "train/run/data/sources.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/digest.h"
#include "core/error.h"
#include "train/run/data/sources.h"
#include "train/run/data/windows.h"
#include "train/run/records/h5.h"
#include "train/system/files.h"

namespace difftape::run {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

namespace fs = std::filesystem;

namespace {

/// The tokens of a file, as it stores them: they are read whole and not widened.
struct TokenFile {
  std::filesystem::path path;
  std::string format;      ///< "nanoGPT .bin", for messages
  std::string bytes;       ///< the file, or for HDF5 its dataset as int32
  std::size_t offset = 0;  ///< of the first token in `bytes`
  std::size_t width = 2;   ///< bytes a token

  Index size() const { return static_cast<Index>((bytes.size() - offset) / width); }
  /// Token i; those that do not fit into 31 bits are negative.
  std::int32_t operator[](Index i) const;
};

constexpr std::size_t kHeaderBytes = 256 * sizeof(std::int32_t);

template <class T>
T number_at(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// What llm.c writes.
struct LlmcFormat {
  std::int32_t magic, version;
  std::size_t width;
};
constexpr LlmcFormat kLlmc[] = {{20240520, 1, 2}, {20240801, 7, 4}};

const LlmcFormat* llmc_format(const std::string& bytes) {
  if (bytes.size() < sizeof(std::int32_t)) return nullptr;
  for (const LlmcFormat& format : kLlmc) {
    if (number_at<std::int32_t>(bytes, 0) == format.magic) return &format;
  }
  return nullptr;
}

void check_llmc(const TokenFile& file, const LlmcFormat& format) {
  const std::size_t size = file.bytes.size();
  if (size < kHeaderBytes) {
    throw DataError(fmt::format(
        "{}: begins like a token file of llm.c, but is {} bytes long; its header alone has {}: the "
        "file is cut off",
        file.path.string(), size, kHeaderBytes));
  }
  const auto version = number_at<std::int32_t>(file.bytes, 4);
  if (version != format.version) {
    throw DataError(
        fmt::format("{}: token file of llm.c with magic {} and version {}; need version {}",
                    file.path.string(), format.magic, version, format.version));
  }
  const auto count = number_at<std::int32_t>(file.bytes, 8);
  const auto expected =
      static_cast<std::int64_t>(kHeaderBytes) + static_cast<std::int64_t>(format.width) * count;
  if (count < 0 || expected != static_cast<std::int64_t>(size)) {
    throw DataError(fmt::format(
        "{}: the header of llm.c promises {} tokens of {} bytes, {} bytes in all, but the file has "
        "{}: it is cut off or damaged",
        file.path.string(), count, format.width, expected, size));
  }
}

TokenFile bin_file(const fs::path& path, std::string bytes) {
  TokenFile file{path, "nanoGPT .bin", std::move(bytes)};
  if (const LlmcFormat* format = llmc_format(file.bytes)) {
    check_llmc(file, *format);
    file.format = "llm.c .bin";
    file.offset = kHeaderBytes;
    file.width = format->width;
  } else if (file.bytes.size() % file.width != 0) {
    throw DataError(fmt::format(
        "{}: {} bytes, an odd number; a .bin without a header of llm.c holds tokens of 2 bytes",
        path.string(), file.bytes.size()));
  }
  return file;
}

TokenFile h5_file(const fs::path& path) {
  const h5::File stored = h5::File::open(path);
  if (!stored.exists("tokens")) {
    throw DataError(fmt::format("{}: has no dataset /tokens", path.string()));
  }
  const Shape shape = stored.shape("tokens");
  if (shape.rank() != 1) {
    throw DataError(fmt::format("{}: /tokens is {}; need one axis", path.string(), shape.str()));
  }
  TokenFile file{path, "HDF5 /tokens", {}};
  file.width = sizeof(std::int32_t);
  const auto tokens = stored.read<std::int32_t>("tokens");
  file.bytes.assign(reinterpret_cast<const char*>(tokens.data()), tokens.size() * file.width);
  return file;
}

bool is_h5(const fs::path& path, const std::string& bytes) {
  return bytes.starts_with("\x89HDF\r\n\x1a\n") || path.extension() == ".h5" ||
         path.extension() == ".hdf5";
}

std::int32_t TokenFile::operator[](Index i) const {
  const std::size_t at = offset + static_cast<std::size_t>(i) * width;
  return width == 2 ? number_at<std::uint16_t>(bytes, at) : number_at<std::int32_t>(bytes, at);
}

TokenFile read_token_file(const fs::path& path) {
  std::string bytes = system::read_text(path);
  TokenFile file = is_h5(path, bytes) ? h5_file(path) : bin_file(path, std::move(bytes));
  if (file.size() == 0) throw DataError(fmt::format("{}: holds no token", path.string()));
  return file;
}

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
  const auto read = [vocab_size](const char* key, std::span<const std::string> entries) {
    const NameScope scope(key);
    const auto files = find_sources(entries);
    std::vector<TokenFile> stored;
    for (const auto& path : files) stored.push_back(read_token_file(path));
    auto tokens = std::make_unique<TokenData>(std::move(stored), vocab_size);
    tokens->from = "the row of tokens of " + one_or_number(files);
    return tokens;
  };
  return make_windows_of(config, seed, read);
}

}  // namespace difftape::run
