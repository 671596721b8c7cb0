// data.type tokens: token files of other programs.
//
//   nanoGPT .bin   uint16 without a header
//   llm.c .bin     256 int32: magic 20240520, version 1, number of tokens; then uint16
//                  or magic 20240801, version 7, number of tokens; then uint32
//   NumPy .npy     one axis, of any little-endian integer type, as build-nanogpt writes its shards
//   HDF5           dataset /tokens with one axis, of any integer type; chunked or compressed
//                  data are read through HDF5, which is slower
//
// All formats are little-endian. Any bytes would be uint16 tokens, so tokens without a header must
// be in a .bin. Files of other programs are rejected by name, and so are uint32 and int64 tokens
// without a header, which as uint16 would be pairs of a token and 0. A file that begins with a
// magic number of llm.c is an llm.c file; as nanoGPT tokens these numbers exceed 55,000, beyond the
// vocabulary of GPT-2.
#include "train/run/data/sources.h"
#include "train/run/data/token_provenance.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "core/name_scope.h"
#include "train/run/records/h5.h"
#include "train/system/file_kind.h"
#include "train/system/number.h"

namespace difftape::run {

namespace fs = std::filesystem;
using system::FileFormat;

namespace {

constexpr const char* kNanoGpt = "nanoGPT .bin";
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

/// Returns true if the first page of a file, at least 64 bytes, is text. As tokens, nearly all of
/// its bytes would exceed 8,000.
bool begins_like_text(const system::StoredBytes& bytes) {
  constexpr std::size_t kPage = 4096, kFewest = 64;
  constexpr std::string_view kControls = "\b\t\n\v\f\r\x1a\x1b";
  const std::string_view page = bytes.read(0, std::min(bytes.size(), kPage));
  return page.size() >= kFewest && std::ranges::all_of(page, [&](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return (byte >= ' ' && byte != 0x7f) || kControls.find(c) != kControls.npos;
         });
}

/// Returns the number of bytes per token that a file without a header seems to have, 2, 4 or 8. In
/// wider tokens the high words are 0, small for a vocabulary above 65,536, or 0xffff if negative.
std::size_t likely_width(const system::StoredBytes& bytes) {
  constexpr std::size_t kLooked = std::size_t{1} << 20, kFewest = 64;
  constexpr unsigned kLargestHigh = 3;  // of a vocabulary of 262,144
  constexpr unsigned kNegative = 0xffff;
  const std::string_view begin = bytes.read(0, std::min(bytes.size(), kLooked));
  std::array<unsigned, 4> largest{};
  for (std::size_t i = 0; i + 1 < begin.size(); i += 2) {
    const unsigned word = static_cast<unsigned char>(begin[i]) |
                          static_cast<unsigned>(static_cast<unsigned char>(begin[i + 1])) << 8;
    if (word != kNegative) largest[i / 2 % 4] = std::max(largest[i / 2 % 4], word);
  }
  if (begin.size() < kFewest || largest[0] <= kLargestHigh || largest[3] > kLargestHigh) return 2;
  if (bytes.size() % 8 == 0 && largest[1] <= kLargestHigh && largest[2] == 0 && largest[3] == 0)
    return 8;
  const bool is_wide = largest[1] <= kLargestHigh && largest[2] > kLargestHigh;
  return is_wide && bytes.size() % 4 == 0 ? 4 : 2;
}

void require_uint16(const TokenFile& file) {
  throw_if<DataError>(system::lower_extension(file.path) != ".bin",
                      "{}: is not a token file: tokens without a header must be uint16 in a .bin; "
                      "convert text with "
                      "`difftape data prepare`, or set data.type to text, whose tokens are bytes",
                      file.path.string());
  throw_if<DataError>(
      begins_like_text(file.bytes),
      "{}: is a text file, but must be a token file; convert it with `difftape data prepare`",
      file.path.string());
  throw_if<DataError>(file.bytes.size() % file.width != 0,
                      "{}: has {} bytes, but a .bin without an llm.c header must have an even "
                      "number, 2 per token",
                      file.path.string(), file.bytes.size());
  const std::size_t width = likely_width(file.bytes);
  throw_if<DataError>(
      width != 2,
      "{}: seems to store {} bytes per token, because the high words of all tokens are 0, small or "
      "negative, but a .bin without a header must store uint16; write the tokens with numpy.save, "
      "which "
      "records their type",
      file.path.string(), width);
}

/// Throws DataError for a vocabulary whose tokens a .bin without a header cannot hold. A file that
/// `data prepare` describes is uint16.
void require_vocabulary_of_uint16(const TokenFile& file, Index vocab_size) {
  constexpr Index kMost = 65536;
  throw_if<DataError>(
      file.format == kNanoGpt && file.recorded_digest.empty() && vocab_size > kMost,
      "{}: is a .bin without a header, whose tokens are uint16, but model.vocab_size is {}, above "
      "{}; if the tokens are wider, write them with numpy.save, which records their type, else set "
      "model.vocab_size to {} or less",
      file.path.string(), vocab_size, kMost, kMost);
}

TokenFile bin_file(const fs::path& path, system::StoredBytes bytes) {
  TokenFile file{.path = path, .format = kNanoGpt, .bytes = std::move(bytes), .width = 2};
  read_sidecars(file);
  if (const LlmcFormat* format = llmc_format(file.bytes)) {
    check_llmc(file, *format);
    file.format = "llm.c .bin";
    file.offset = kHeaderBytes;
    file.width = format->width;
  } else {
    require_uint16(file);
  }
  file.size = static_cast<Index>((file.bytes.size() - file.offset) / file.width);
  return file;
}

/// Returns the Python literal that follows a key in the header of a NumPy file.
std::string numpy_value(std::string_view header, std::string_view key, char end) {
  const std::size_t at = header.find(key);
  if (at == header.npos) return "";
  std::string_view rest = header.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" :"), rest.size()));
  return std::string(rest.substr(0, rest.find(end)));
}

TokenFile numpy_file(const fs::path& path, system::StoredBytes bytes) {
  const auto require = [&](bool holds, const std::string& what) {
    throw_if<DataError>(!holds, "{}: is a NumPy array {}", path.string(), what);
  };
  constexpr std::size_t kBeforeLength = 8;  // magic and version
  const std::string_view begin = bytes.read(0, std::min<std::size_t>(bytes.size(), 12));
  const std::size_t length_bytes = begin.size() == 12 && begin[6] == 1 ? 2 : 4;
  std::size_t length = 0;
  if (begin.size() == 12) std::memcpy(&length, begin.data() + kBeforeLength, length_bytes);
  const std::size_t offset = kBeforeLength + length_bytes + length;
  require(begin.size() == 12 && offset <= bytes.size(),
          "whose header is cut off; copy the file again");
  const std::string header(bytes.read(0, offset));
  const std::string type = numpy_value(header, "'descr'", ',');
  const std::string shape = numpy_value(header, "'shape'", ')');
  const bool is_integer =
      type.size() == 5 && (type[1] == '<' || type[1] == '|') && (type[2] == 'i' || type[2] == 'u');
  require(is_integer, fmt::format("of type {}, but tokens must be little-endian integers; convert "
                                  "it with array.astype('<u2')",
                                  type));
  const auto size = system::read_number<Index>(
      std::string_view(shape).substr(std::min<std::size_t>(1, shape.size()),
                                     shape.find(',') == shape.npos ? 0 : shape.find(',') - 1));
  require(size && shape.ends_with(','),
          fmt::format("of shape {}), but must have one axis; flatten it with array.reshape(-1)",
                      shape));
  TokenFile file{.path = path,
                 .format = "NumPy " + type.substr(1, 3),
                 .bytes = std::move(bytes),
                 .offset = offset,
                 .width = static_cast<std::size_t>(type[3] - '0'),
                 .is_signed = type[2] == 'i',
                 .size = *size};
  require(file.bytes.size() - offset == static_cast<std::size_t>(*size) * file.width,
          fmt::format("of {} tokens of {} bytes, but {} bytes follow its header; copy it again",
                      *size, file.width, file.bytes.size() - offset));
  read_sidecars(file);
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
  try {
    take_provenance(file, stored->string_attribute("/", "provenance"));
  } catch (const DataError&) {  // another program wrote the file
  }
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

TokenFile open_recognized(const fs::path& path, system::StoredBytes bytes) {
  const auto kind = system::recognize(path, bytes.all());
  if (kind && kind->format == FileFormat::numpy) return numpy_file(path, std::move(bytes));
  if ((kind && kind->format == FileFormat::hdf5) || path.extension() == ".h5" ||
      path.extension() == ".hdf5")
    return h5_file(path, std::move(bytes));
  if (kind && !system::is_json(*kind)) system::refuse(path, *kind, "a token file");
  return bin_file(path, std::move(bytes));
}

TokenFile open_token_file(const fs::path& path) {
  TokenFile file = open_recognized(path, system::StoredBytes(path));
  throw_if<DataError>(file.size == 0, "{}: contains no tokens; leave it out", path.string());
  return file;
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

bool are_text(std::span<const std::string> entries) {
  return std::ranges::all_of(find_source_files(entries).files, [](const SourceFile& file) {
    const std::string extension = system::lower_extension(file.path);
    for (const char* of_tokens : {".bin", ".npy", ".h5", ".hdf5"})
      if (extension == of_tokens) return false;
    const system::StoredBytes bytes(file.path);
    const auto kind = system::recognize(file.path, bytes.all());
    const bool is_read = !kind || system::is_json(*kind) || kind->format == FileFormat::html;
    return is_read && llmc_format(bytes) == nullptr;
  });
}

std::shared_ptr<const TokenSource> read_token_files(const char* key,
                                                    std::span<const std::string> entries,
                                                    Index vocab_size) {
  const NameScope scope(key);
  throw_if<ConfigError>(
      entries.empty(),
      "is empty, but data.type tokens needs token files; name .bin files of nanoGPT or llm.c, .npy "
      "or .h5 files");
  const SourceFiles found = find_source_files(entries);
  const std::vector<SourceFile>& files = found.files;
  std::vector<TokenFile> stored;
  for (const SourceFile& file : files) {
    stored.push_back(open_token_file(file.path));
    require_vocabulary_of_uint16(stored.back(), vocab_size);
    stored.back().domain = file.domain;
  }
  const TextOfTokens text = text_of(stored);
  std::int32_t largest = 0;
  auto tokens = std::make_shared<StoredTokens>(
      std::move(stored), [&](const TokenFile& file, Index first, const auto& piece) {
        largest = std::max(largest, largest_known(file, first, piece, vocab_size));
      });
  text.require_recorded(files, tokens->parts);
  tokens->type = tokens->unit = "tokens";
  tokens->vocab_size = largest + 1;
  tokens->tokenizer = text.tokenizer;
  tokens->text_bytes = text.bytes;
  tokens->eos_token_id = text.eos_token_id;
  tokens->note = found.note();
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
