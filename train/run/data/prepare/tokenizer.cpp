#include "train/run/data/prepare/tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <protozero/pbf_reader.hpp>
#include <unordered_map>

#include "core/digest.h"
#include "core/error.h"
#include "train/run/data/sources.h"
#include "train/system/file_kind.h"
#include "train/system/files.h"

namespace difftape::run {
namespace {

const std::string kReplacement = "\xEF\xBF\xBD";  // U+FFFD, which replaces invalid bytes

/// Returns whether the library reads a model with pieces. It throws at some damaged models.
bool loads(sentencepiece::SentencePieceProcessor& processor, const std::string& model) {
  try {
    return processor.LoadFromSerializedProto(model).ok() && processor.GetPieceSize() > 0;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

Index known_tokens(const Tokenizer& tokenizer, Index eos_token_id, Index vocab_size) {
  return std::min(std::max(tokenizer.vocab_size, eos_token_id + 1), vocab_size);
}

namespace {

Index length_of_byte(std::int32_t token) { return Index{token >= 0 && token < kBytes}; }

}  // namespace

Tokenizer byte_tokenizer() {
  return {.file = {.name = kByteTokenizer, .model = {}},
          .digest = {},
          .vocab_size = kBytes,
          .encode =
              [](std::string_view text) {
                std::vector<std::int32_t> tokens;
                for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
                return tokens;
              },
          .decode =
              [](std::span<const std::int32_t> tokens) {
                std::string text;
                for (const std::int32_t token : tokens)
                  if (token < kBytes) text += static_cast<char>(token);
                return text;
              },
          .bytes = length_of_byte,
          .first_bytes = length_of_byte};
}

namespace {

/// A unit of a double array in the layout of darts-clone.
struct Unit {
  std::uint32_t bits;
  bool is_value() const { return bits >> 31 != 0; }
  bool has_leaf() const { return (bits >> 8 & 1) != 0; }
  std::uint32_t value() const { return bits & 0x7fffffff; }
  std::uint32_t offset() const { return bits >> 10 << ((bits & 1u << 9) >> 6); }
};

/// Returns true if all 256 children of every node lie within the array, and every value within the
/// strings.
bool is_sound(const std::vector<Unit>& units, std::string_view texts) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (i > 0 && units[i].is_value()) continue;
    const std::size_t children = i ^ units[i].offset();
    if ((children | 0xff) >= units.size()) return false;
    if (units[i].has_leaf() && units[children].value() >= texts.size()) return false;
  }
  return true;
}

/// Checks a table: the size of the array in bytes, the array, then strings that end with 0.
bool is_sound_table(std::string_view table) {
  std::uint32_t bytes = 0;
  if (table.empty()) return true;
  if (table.size() <= sizeof bytes) return false;
  std::memcpy(&bytes, table.data(), sizeof bytes);
  table.remove_prefix(sizeof bytes);
  if (bytes >= table.size() || bytes == 0 || bytes % sizeof(Unit) != 0 || table.back() != 0)
    return false;
  std::vector<Unit> units(bytes / sizeof(Unit));
  std::memcpy(units.data(), table.data(), bytes);
  return is_sound(units, table.substr(bytes));
}

/// Returns true if the model's table for text normalization, a double array of darts-clone and its
/// strings, has only valid indices. The library follows them unchecked.
bool has_sound_tables(std::string_view model) {
  constexpr protozero::pbf_tag_type kNormalizer = 3, kDenormalizer = 5, kTable = 2;
  constexpr auto kLengthDelimited = protozero::pbf_wire_type::length_delimited;
  try {
    protozero::pbf_reader whole(model.data(), model.size());
    while (whole.next()) {
      const bool normalizes = whole.tag() == kNormalizer || whole.tag() == kDenormalizer;
      if (!normalizes || whole.wire_type() != kLengthDelimited) {
        whole.skip();
        continue;
      }
      protozero::pbf_reader normalizer = whole.get_message();
      while (normalizer.next(kTable, kLengthDelimited)) {
        const protozero::data_view table = normalizer.get_view();
        if (!is_sound_table({table.data(), table.size()})) return false;
      }
    }
  } catch (const protozero::exception&) {  // the library may parse invalid input differently
    return false;
  }
  return true;
}

using Processor = std::shared_ptr<const sentencepiece::SentencePieceProcessor>;

std::vector<std::int32_t> encode(const Processor& processor, std::string_view text) {
  std::vector<int> tokens;
  const auto status = processor->Encode(absl::string_view(text.data(), text.size()), &tokens);
  if (!status.ok()) throw DataError(status.ToString());
  return {tokens.begin(), tokens.end()};
}

std::string decode(const Processor& processor, std::span<const std::int32_t> tokens) {
  std::vector<int> known;
  std::ranges::copy_if(tokens, std::back_inserter(known),
                       [&](std::int32_t token) { return token < processor->GetPieceSize(); });
  std::string text;
  const auto status = processor->Decode(known, &text);
  if (!status.ok()) throw DataError(status.ToString());
  return text;
}

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

/// Returns the length of a piece's text, in which U+2581 stands for a space.
Index bytes_of_piece(const Processor& processor, std::int32_t token) {
  if (token >= processor->GetPieceSize() || processor->IsControl(token)) return 0;
  if (processor->IsByte(token)) return 1;
  const std::string& piece = processor->IdToPiece(token);
  Index bytes = std::ssize(piece);
  for (std::size_t at = piece.find(kSpace); at != piece.npos; at = piece.find(kSpace, at + 1))
    bytes -= std::ssize(kSpace) - 1;
  return bytes;
}

/// Returns the same for the first piece of a document.
Index bytes_of_first(const Processor& processor, bool adds_space, std::int32_t token) {
  const Index bytes = bytes_of_piece(processor, token);
  return bytes - Index{adds_space && bytes > 0 && processor->IdToPiece(token).starts_with(kSpace)};
}

/// Returns true if the model puts a space before every text.
bool adds_space(const Processor& processor) {
  const std::vector<std::int32_t> tokens = encode(processor, "a");
  return !tokens.empty() && processor->IdToPiece(tokens.front()).starts_with(kSpace);
}

Tokenizer tokenizer_by(const Processor& processor, const TokenizerFile& file) {
  return {
      .file = file,
      .digest = digest_of(file.model),
      .vocab_size = processor->GetPieceSize(),
      .eos_token_id = processor->eos_id(),
      .utf8 = true,
      .encode = [processor](std::string_view text) { return encode(processor, text); },
      .decode = [processor](std::span<const std::int32_t> ids) { return decode(processor, ids); },
      .bytes = [processor](std::int32_t token) { return bytes_of_piece(processor, token); },
      .first_bytes = [processor, adds = adds_space(processor)](
                         std::int32_t token) { return bytes_of_first(processor, adds, token); },
      .unknown = processor->unk_id()};
}

/// Returns true if `rest` gives the lines after an interruption the tokens of the whole text.
bool continues(const Processor& begin, const Processor& rest) {
  const std::string line = "a value\n", next = "of it";
  std::vector<std::int32_t> parts = encode(begin, line);
  const std::vector<std::int32_t> tail = encode(rest, next);
  parts.insert(parts.end(), tail.begin(), tail.end());
  return parts == encode(begin, line + next);
}

/// Returns the model without the space that it puts before every text. Fields at the end of a
/// serialized message override earlier ones: normalizer_spec (3) with add_dummy_prefix (3) = 0.
std::string without_dummy_prefix(const std::string& model) {
  return model + std::string("\x1a\x02\x18\x00", 4);
}

Tokenizer sentencepiece_tokenizer(const TokenizerFile& file, const std::string& where,
                                  const char* remedy) {
  const auto processor = std::make_shared<sentencepiece::SentencePieceProcessor>();
  if (!has_sound_tables(file.model) || !loads(*processor, file.model)) {
    system::refuse_other(where, file.model, "a SentencePiece model");
    throw DataError(fmt::format("{}: is not a SentencePiece model; {}", where, remedy));
  }
  Tokenizer tokenizer = tokenizer_by(processor, file);
  if (continues(processor, processor)) return tokenizer;
  const auto rest = std::make_shared<sentencepiece::SentencePieceProcessor>();
  if (loads(*rest, without_dummy_prefix(file.model)) && continues(processor, rest))
    tokenizer.rest = std::make_shared<const Tokenizer>(tokenizer_by(rest, file));
  return tokenizer;
}

/// Returns the length of the first part of a text: up to a line end with no space at either side,
/// because a tokenizer may join spaces; else up to the last line end, or the end of a longer line.
std::size_t part_of(std::string_view text) {
  if (text.size() <= kPartBytes) return text.size();
  constexpr std::string_view kSpaces = " \t\r\n";
  for (std::size_t at = kPartBytes; (at = text.rfind('\n', at - 1)) != text.npos && at > 1;)
    if (kSpaces.find(text[at - 1]) == text.npos && kSpaces.find(text[at + 1]) == text.npos)
      return at + 1;
  std::size_t line = text.rfind('\n', kPartBytes - 1);
  if (line == text.npos) line = text.find('\n', kPartBytes);
  return line == text.npos ? text.size() : line + 1;
}

/// Counts the characters of UTF-8 text.
using Characters = std::unordered_map<std::string_view, Index>;

Characters characters_of(std::string_view text) {
  Characters count;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    ++count[text.substr(at, end - at)];
    at = end;
  }
  return count;
}

}  // namespace

void encode_in_parts(
    const Tokenizer& tokenizer, std::string_view text, bool continues,
    const std::function<void(std::string_view, std::span<const std::int32_t>)>& see) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, part_of(text));
    const Tokenizer& now = continues && tokenizer.rest ? *tokenizer.rest : tokenizer;
    see(part, now.encode(part));
    text.remove_prefix(part.size());
    continues = true;
  }
}

void TextLoss::add(const Tokenizer& tokenizer, std::string_view text,
                   std::span<const std::int32_t> tokens, bool continues) {
  const Tokenizer& now = continues && tokenizer.rest ? *tokenizer.rest : tokenizer;
  const std::string decoded = now.decode(tokens);
  if (decoded == text) return;
  const Index lacking = std::ranges::count(tokens, tokenizer.unknown);
  unknown += lacking;
  Characters kept = characters_of(decoded);
  kept[" "] -= 2 * lacking;  // an unknown token is decoded as " \u2047 "
  for (const auto& [character, count] : characters_of(text)) {
    const auto found = kept.find(character);
    const Index lost = std::max<Index>(0, count - (found == kept.end() ? 0 : found->second));
    (character == "\n" ? newlines : character == " " ? spaces : characters) += lost;
  }
}

void require_same_tokenizer(const std::filesystem::path& checkpoint, const ModelTokens& model,
                            const TokenizerFile& data) {
  const bool bytes = data.is_known() && data.model.empty();
  throw_if<DataError>(
      !model.tokenizer.is_known() && model.of_token_files && bytes,
      "{}: the model was trained on token files whose tokenizer is unknown, but the data is bytes; "
      "give token files of the same tokenizer",
      checkpoint.string());
  if (!model.tokenizer.is_known() || !data.is_known() || model.tokenizer == data) return;
  const auto named = [&](const TokenizerFile& file) {
    return model.tokenizer.name == data.name
               ? fmt::format("{} of digest {}", file.name, digest_of(file.model))
               : file.name;
  };
  throw DataError(fmt::format(
      "{0}: the model was trained with the tokenizer {1}, but the data has {2}; tokenize the data "
      "with `difftape data prepare --tokenizer {0}`",
      checkpoint.string(), named(model.tokenizer), named(data)));
}

Tokenizer sentencepiece_tokenizer(const std::filesystem::path& model, const char* remedy) {
  return sentencepiece_tokenizer({model.filename().string(), system::read_text(model)},
                                 model.string(), remedy);
}

Tokenizer tokenizer_of(const TokenizerFile& file) {
  return file.model.empty() ? byte_tokenizer()
                            : sentencepiece_tokenizer(file, file.name, kTrainOne);
}

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> prompt)
    : tokenizer_(tokenizer), tokens_(prompt.begin(), prompt.end()) {
  forget_shown();
}

/// Keeps only the tokens that the text of the next one may depend on.
void TextStream::forget_shown() {
  auto last = tokens_.end();
  while (last != tokens_.begin() && tokenizer_.decode({last, tokens_.end()}).empty()) --last;
  tokens_.erase(tokens_.begin(), last);
  shown_ = tokenizer_.decode(tokens_).size();
}

std::string TextStream::add(std::int32_t token) {
  tokens_.push_back(token);
  return from_shown(false);
}

std::string TextStream::rest() { return from_shown(true); }

std::string TextStream::from_shown(bool all) {
  std::string text = tokenizer_.decode(tokens_);
  const std::size_t whole = text.size();
  constexpr int kMissing = 3;  // longest incomplete character, bytes
  for (int i = 0; i < kMissing && !all && tokenizer_.utf8 && text.ends_with(kReplacement); ++i)
    text.resize(text.size() - kReplacement.size());
  std::string fresh = text.substr(std::min(shown_, text.size()));
  const bool waits = text.size() < whole || text.size() < shown_;
  shown_ = std::max(shown_, text.size());
  if (!waits) forget_shown();
  return fresh;
}

}  // namespace difftape::run
