// data.type tokens: files of tokens that other programs wrote.
//
//   nanoGPT .bin   uint16, nothing else
//   llm.c .bin     256 int32: magic 20240520, version 1, number of tokens; then uint16
//                  or magic 20240801, version 7, number of tokens; then uint32
//   HDF5           dataset /tokens with one axis, of any whole-number type; what is stored in
//                  chunks, as compressed ones are, is read through HDF5, which takes longer
//
// All little-endian. A .bin that begins with one of llm.c's magic numbers is llm.c's; as nanoGPT
// these would be tokens above 55,000, which GPT-2's vocabulary does not have.
#include "train/run/data/sources.h"

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

/// What llm.c writes.
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
      "{}: begins like a token file of llm.c, but is {} bytes long; its header alone has {}: the "
      "file is cut off",
      file.path.string(), size, kHeaderBytes);
  const auto version = number_at(file.bytes, 4);
  throw_if<DataError>(version != format.version,
                      "{}: token file of llm.c with magic {} and version {}; need version {}",
                      file.path.string(), format.magic, version, format.version);
  const auto count = number_at(file.bytes, 8);
  const auto expected =
      static_cast<std::int64_t>(kHeaderBytes) + static_cast<std::int64_t>(format.width) * count;
  throw_if<DataError>(
      count < 0 || expected != static_cast<std::int64_t>(size),
      "{}: the header of llm.c promises {} tokens of {} bytes, {} bytes in all, but the file has "
      "{}: it is cut off or damaged",
      file.path.string(), count, format.width, expected, size);
}

/// What `data prepare` said of tokens: their tokenizer, in whose place `model` is, if it is there.
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
      "{}: is not the tokenizer of {}, whose digest is {}, but has {}: bring it back, or remove it "
      "to train without",
      model.string(), tokens.string(), digest, is));
}

/// The tokenizer of a .bin, from the files beside it; a model may be there without more.
TokenizerFile tokenizer_beside(const fs::path& path) {
  const fs::path told = path.string() + ".json", model = path.string() + ".model";
  if (system::is_there(told)) return tokenizer_told(system::read_text(told), path, model);
  if (!system::is_there(model)) return {};
  return {.name = model.filename().string(), .model = system::read_text(model)};
}

/// Whether a file begins as no tokens do: with a page of bytes that are all printed, so that every
/// number of it is above 8,000. Few bytes tell only where the name is not that of tokens.
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
        "{}: is text, not tokens; make tokens of it by `difftape data prepare`, with the model's "
        "tokenizer if it has one, or set data.type to text, whose tokens are its bytes",
        path.string()));
  } else if (file.bytes.size() % file.width != 0) {
    throw DataError(fmt::format(
        "{}: {} bytes, an odd number; a .bin without a header of llm.c holds tokens of 2 bytes",
        path.string(), file.bytes.size()));
  }
  file.size = static_cast<Index>((file.bytes.size() - file.offset) / file.width);
  return file;
}

TokenFile h5_file(const fs::path& path, system::StoredBytes bytes) {
  auto stored = std::make_shared<const h5::File>(h5::File::open(path));
  throw_if<DataError>(!stored->exists("tokens"), "{}: has no dataset /tokens", path.string());
  const Shape shape = stored->shape("tokens");
  throw_if<DataError>(shape.rank() != 1, "{}: /tokens is {}; need one axis", path.string(),
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
                        "{}: is cut off", path.string());
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
  throw_if<DataError>(file.size == 0, "{}: holds no token", path.string());
  return file;
}

/// The tokenizer of all files; none if one does not know its own.
TokenizerFile common_tokenizer(const std::vector<TokenFile>& files) {
  const TokenFile& first = files.front();
  for (const TokenFile& file : files) {
    if (!file.tokenizer.is_known()) return {};
    if (file.tokenizer == first.tokenizer) continue;
    throw DataError(fmt::format(
        "{} was made by the tokenizer {}, {} by another, {}: prepare both "
        "with one",
        first.path.string(), first.tokenizer.name, file.path.string(), file.tokenizer.name));
  }
  return first.tokenizer;
}

void require_known(const TokenFile& file, Index first, std::span<const std::int32_t> tokens,
                   Index vocab_size) {
  const auto unknown = std::ranges::find_if(
      tokens, [&](std::int32_t token) { return token < 0 || token >= vocab_size; });
  if (unknown != tokens.end()) {
    throw DataError(fmt::format(
        "{}: token {} is {} (read as {}); need 0 to {}, as model.vocab_size is {}: raise it, or "
        "give a file of another vocabulary",
        file.path.string(), first + (unknown - tokens.begin()),
        *unknown < 0 ? "negative or above 2147483647" : std::to_string(*unknown), file.format,
        vocab_size - 1, vocab_size));
  }
}

}  // namespace

std::shared_ptr<const TokenSource> read_token_files(const char* key,
                                                    std::span<const std::string> entries,
                                                    Index vocab_size) {
  const NameScope scope(key);
  throw_if<ConfigError>(
      entries.empty(),
      "type tokens reads token files; name them: .bin of nanoGPT or llm.c, or .h5");
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
        require_known(file, first, piece, vocab_size);
        largest = std::max(largest, std::ranges::max(piece));
      });
  tokens->type = tokens->unit = "tokens";
  tokens->vocab_size = largest + 1;
  tokens->tokenizer = tokenizer;
  tokens->from = "the row of tokens of " + one_or_number(files);
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
