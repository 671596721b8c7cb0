// data.type tokens: token files of other programs.
//
//   nanoGPT .bin   uint16 without a header
//   llm.c .bin     256 int32: magic 20240520, version 1, number of tokens; then uint16
//                  or magic 20240801, version 7, number of tokens; then uint32
//   HDF5           dataset /tokens with one axis, of any integer type; chunked or compressed
//                  data are read through HDF5, which is slower
//
// All formats are little-endian. A .bin that begins with a magic number of llm.c is an llm.c file;
// as nanoGPT tokens these numbers exceed 55,000, beyond the vocabulary of GPT-2.
#include "train/run/data/sources.h"

#include <Eigen/Core>
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "core/error.h"
#include "core/name_scope.h"
#include "train/run/records/h5.h"
#include "train/system/files.h"

namespace difftape::run {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kHeaderBytes = 256 * sizeof(std::int32_t);

std::int32_t number_at(const system::StoredBytes& bytes, std::size_t at) {
  std::int32_t value;
  std::memcpy(&value, bytes.read(at, sizeof value).data(), sizeof value);
  return value;
}

/// A format version of llm.c.
struct LlmcFormat {
  std::int32_t magic, version;
  std::size_t width;
};
constexpr LlmcFormat kLlmc[] = {{20240520, 1, 2}, {20240801, 7, 4}};

const LlmcFormat* llmc_format(const system::StoredBytes& bytes) {
  if (bytes.size() < sizeof(std::int32_t)) return nullptr;
  for (const LlmcFormat& format : kLlmc)
    if (number_at(bytes, 0) == format.magic) return &format;
  return nullptr;
}

void check_llmc(const TokenFile& file, const LlmcFormat& format) {
  const std::size_t size = file.bytes.size();
  throw_if<DataError>(
      size < kHeaderBytes,
      "{}: begins like an llm.c token file, but has {} bytes, fewer than the {} of its header; the "
      "file is truncated",
      file.path.string(), size, kHeaderBytes);
  const auto version = number_at(file.bytes, 4);
  throw_if<DataError>(version != format.version,
                      "{}: llm.c token file with magic {} has version {}, but must have version "
                      "{}; convert the data again",
                      file.path.string(), format.magic, version, format.version);
  const auto count = number_at(file.bytes, 8);
  const auto expected =
      static_cast<std::int64_t>(kHeaderBytes) + static_cast<std::int64_t>(format.width) * count;
  throw_if<DataError>(
      count < 0 || expected != static_cast<std::int64_t>(size),
      "{}: the llm.c header states {} tokens of {} bytes, {} bytes in total, but the file has {}; "
      "it is truncated or damaged",
      file.path.string(), count, format.width, expected, size);
}

/// Returns the tokenizer that `data prepare` recorded for tokens. `model` is its file, which may be
/// missing. Throws DataError if its digest differs.
TokenizerFile tokenizer_told(const std::string& provenance, const fs::path& tokens,
                             const fs::path& model) {
  const auto told = nlohmann::json::parse(provenance, nullptr, false);
  const auto tokenizer = told.is_object() ? told.find("tokenizer") : told.end();
  if (!told.is_object() || tokenizer == told.end() || !tokenizer->is_object()) return {};
  const auto text = [&](const char* key) {
    const auto found = tokenizer->find(key);
    return found != tokenizer->end() && found->is_string() ? found->get<std::string>() : "";
  };
  const std::string name = text("name"), digest = text("xxh3_128");
  if (digest.empty()) return {.name = name, .model = {}};
  if (!system::is_there(model)) return {};
  TokenizerFile found{.name = name, .model = system::read_text(model)};
  const std::string is = digest_of(found.model);
  if (is == digest) return found;
  throw DataError(fmt::format(
      "{}: is not the tokenizer of {}: its digest must be {}, but is {}; restore the file, or "
      "remove it to train without",
      model.string(), tokens.string(), digest, is));
}

/// Returns the tokenizer of a .bin from the files next to it, .json and .model; either may be
/// missing.
TokenizerFile tokenizer_beside(const fs::path& path) {
  const fs::path told = path.string() + ".json", model = path.string() + ".model";
  if (system::is_there(told)) return tokenizer_told(system::read_text(told), path, model);
  if (!system::is_there(model)) return {};
  return {.name = model.filename().string(), .model = system::read_text(model)};
}

/// Returns true if the first page of a file consists of printable bytes, which as tokens would all
/// exceed 8,000. A .bin needs at least 64 bytes to be recognized.
bool begins_like_text(const fs::path& path, const system::StoredBytes& bytes) {
  constexpr std::size_t kPage = 4096, kFewest = 64;
  const std::string_view page = bytes.read(0, std::min(bytes.size(), kPage));
  if (page.size() < (path.extension() == ".bin" ? kFewest : 1)) return false;
  return std::ranges::all_of(page, [](unsigned char byte) {
    return byte == '\n' || byte == '\r' || byte == '\t' || (byte >= ' ' && byte != 0x7f);
  });
}

TokenFile bin_file(const fs::path& path, system::StoredBytes bytes) {
  TokenFile file{.path = path,
                 .format = "nanoGPT .bin",
                 .bytes = std::move(bytes),
                 .width = 2,
                 .tokenizer = tokenizer_beside(path)};
  if (const LlmcFormat* format = llmc_format(file.bytes)) {
    check_llmc(file, *format);
    file.format = "llm.c .bin";
    file.offset = kHeaderBytes;
    file.width = format->width;
  } else if (begins_like_text(path, file.bytes)) {
    throw DataError(fmt::format(
        "{}: is a text file, but must be a token file; convert it with `difftape data prepare` and "
        "the model's tokenizer, or set data.type to text, whose tokens are bytes",
        path.string()));
  } else if (file.bytes.size() % file.width != 0) {
    throw DataError(
        fmt::format("{}: has {} bytes, but a .bin without an llm.c header must have an even "
                    "number, 2 per token",
                    path.string(), file.bytes.size()));
  }
  file.size = static_cast<Index>((file.bytes.size() - file.offset) / file.width);
  return file;
}

TokenFile h5_file(const fs::path& path, system::StoredBytes bytes) {
  auto stored = std::make_shared<const h5::File>(h5::File::open(path));
  throw_if<DataError>(!stored->exists("tokens"),
                      "{}: has no dataset /tokens; `difftape data prepare` writes one",
                      path.string());
  const Shape shape = stored->shape("tokens");
  throw_if<DataError>(shape.rank() != 1,
                      "{}: /tokens has shape {}, but must have one axis; flatten it", path.string(),
                      shape.str());
  TokenFile file{.path = path,
                 .format = "HDF5 /tokens",
                 .bytes = std::move(bytes),
                 .size = shape[0],
                 .tokenizer = read_tokenizer(*stored, "")};
  if (const auto at = stored->contiguous("tokens")) {
    file.offset = at->offset;
    file.width = at->width;
    const std::size_t there = file.bytes.size();
    throw_if<DataError>(at->offset > there ||
                            static_cast<std::size_t>(file.size) > (there - at->offset) / at->width,
                        "{}: is truncated; copy or prepare it again", path.string());
  } else {
    file.pieces = std::move(stored);
  }
  return file;
}

bool is_h5(const fs::path& path, const system::StoredBytes& bytes) {
  constexpr std::string_view kMagic = "\x89HDF\r\n\x1a\n";
  return bytes.read(0, std::min(kMagic.size(), bytes.size())) == kMagic ||
         path.extension() == ".h5" || path.extension() == ".hdf5";
}

TokenFile open_token_file(const fs::path& path) {
  system::StoredBytes bytes(path);
  TokenFile file =
      is_h5(path, bytes) ? h5_file(path, std::move(bytes)) : bin_file(path, std::move(bytes));
  throw_if<DataError>(file.size == 0, "{}: contains no tokens; leave it out", path.string());
  return file;
}

/// Returns the tokenizer of all files; none if it is unknown for one of them.
TokenizerFile common_tokenizer(const std::vector<TokenFile>& files) {
  const TokenFile& first = files.front();
  for (const TokenFile& file : files) {
    if (!file.tokenizer.is_known()) return {};
    if (file.tokenizer == first.tokenizer) continue;
    throw DataError(fmt::format(
        "{} was made by tokenizer {}, but {} by {}; prepare both with the same",
        first.path.string(), first.tokenizer.name, file.path.string(), file.tokenizer.name));
  }
  return first.tokenizer;
}

/// Returns the largest token. Throws DataError if one is not in the vocabulary.
std::int32_t largest_known(const TokenFile& file, Index first, std::span<const std::int32_t> tokens,
                           Index vocab_size) {
  const Eigen::Map<const Eigen::ArrayXi> all(tokens.data(), std::ssize(tokens));
  const std::int32_t largest = all.maxCoeff();
  if (all.minCoeff() >= 0 && largest < vocab_size) return largest;
  const auto unknown = std::ranges::find_if(
      tokens, [&](std::int32_t token) { return token < 0 || token >= vocab_size; });
  throw DataError(
      fmt::format("{}: token {} is {} (format {}), but must be 0 to {}, because model.vocab_size "
                  "is {}; raise it, or use a file with another vocabulary",
                  file.path.string(), first + (unknown - tokens.begin()),
                  *unknown < 0 ? "negative or above 2147483647" : std::to_string(*unknown),
                  file.format, vocab_size - 1, vocab_size));
}

}  // namespace

std::shared_ptr<const TokenSource> read_token_files(const char* key,
                                                    std::span<const std::string> entries,
                                                    Index vocab_size) {
  const NameScope scope(key);
  throw_if<ConfigError>(
      entries.empty(),
      "is empty, but data.type tokens needs token files; name .bin files of nanoGPT or llm.c, or "
      ".h5 files");
  const std::vector<SourceFile> files = find_source_files(entries);
  std::vector<TokenFile> stored;
  for (const auto& [path, domain] : files) {
    stored.push_back(open_token_file(path));
    stored.back().domain = domain;
  }
  const TokenizerFile tokenizer = common_tokenizer(stored);
  std::int32_t largest = 0;
  auto tokens = std::make_shared<StoredTokens>(
      std::move(stored), [&](const TokenFile& file, Index first, const auto& piece) {
        largest = std::max(largest, largest_known(file, first, piece, vocab_size));
      });
  tokens->type = tokens->unit = "tokens";
  tokens->vocab_size = largest + 1;
  tokens->tokenizer = tokenizer;
  tokens->from = "the data in " + one_or_number(files);
  return tokens;
}

std::unique_ptr<Dataset> make_token_data(const DataConfig& config, Index vocab_size,
                                         std::uint64_t seed, Index micro_batches) {
  return make_windows_of(config, seed, micro_batches,
                         [vocab_size](const char* key, const auto& entries) {
                           return read_token_files(key, entries, vocab_size);
                         });
}

}  // namespace difftape::run
