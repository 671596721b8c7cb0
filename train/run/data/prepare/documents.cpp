#include "train/run/data/prepare/documents.h"

#include <algorithm>
#include <boost/locale/utf.hpp>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "core/error.h"
#include "train/system/stored_bytes.h"

namespace difftape::run {

namespace fs = std::filesystem;

std::size_t first_foreign(std::string_view text) {
  using Utf8 = boost::locale::utf::utf_traits<char>;
  for (const char* at = text.data(); at != text.data() + text.size();) {
    const char* const begin = at;
    const auto point = Utf8::decode(at, text.data() + text.size());
    if (point == boost::locale::utf::illegal || point == boost::locale::utf::incomplete)
      return static_cast<std::size_t>(begin - text.data());
  }
  return std::string_view::npos;
}

namespace {

constexpr std::size_t kPiece = std::size_t{16} << 20;  ///< bytes of text that are seen together

/// How much of a text, of which more follows, is a piece: up to the end of its last line or,
/// without one, of its last whole character.
std::size_t piece_of(std::string_view text) {
  const std::size_t line = text.rfind('\n');
  if (line != std::string_view::npos) return line + 1;
  std::size_t end = text.size();
  while (end > 1 && (static_cast<unsigned char>(text[end - 1]) & 0xC0) == 0x80) --end;
  return end > 1 && (static_cast<unsigned char>(text[end - 1]) & 0xC0) == 0xC0 ? end - 1
                                                                               : text.size();
}

/// Throws DataError for a piece that begins with byte `first` of the file.
void require_text(const fs::path& path, std::string_view text, std::size_t first, bool utf8) {
  if (const std::size_t zero = text.find('\0'); zero != text.npos)
    throw DataError(fmt::format("{}: is no text, byte {} of it is 0", path.string(), first + zero));
  const std::size_t foreign = utf8 ? first_foreign(text) : text.npos;
  if (foreign == text.npos) return;
  throw DataError(fmt::format("{}: is no UTF-8 at byte {}; convert it, with iconv for example",
                              path.string(), first + foreign));
}

void read_text_file(const fs::path& path, std::string_view all, bool utf8,
                    const std::function<void(const Piece&)>& see) {
  std::size_t read = 0;  // a multiple of kPiece, up to which the next piece may go
  for (std::size_t begin = 0; begin < all.size();) {
    read = std::min(read + kPiece, all.size());
    std::string_view text = all.substr(begin, read - begin);
    if (read < all.size()) text = text.substr(0, piece_of(text));
    require_text(path, text, begin, utf8);
    begin += text.size();
    see({.text = text,
         .ends_document = begin == all.size(),
         .bytes_read = static_cast<Index>(read)});
  }
}

struct Line {
  std::string text, group;
};

/// A line of JSON, which `where` names in errors.
Line parse_line(std::string_view line, const std::string& key, const std::string& where) {
  nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) {
    throw DataError(
        fmt::format("{}: is no JSON object; need {{\"{}\": \"...\"}} on each line", where, key));
  }
  const auto text = object.find(key);
  if (text == object.end() || !text->is_string()) {
    throw DataError(fmt::format("{}: has no text under \"{}\"; --key names another", where, key));
  }
  const auto group = object.find("group");
  const bool grouped = group != object.end() && group->is_string();
  return {text->get<std::string>(), grouped ? group->get<std::string>() : ""};
}

/// Of text that is no UTF-8 JSON is none.
void read_lines(const fs::path& path, std::string_view all, const std::string& key,
                const std::function<void(const Piece&)>& see) {
  Index number = 0;
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const auto [text, group] = parse_line(line, key, fmt::format("{}:{}", path.string(), number));
    see({.text = text, .bytes_read = std::ssize(all) - std::ssize(rest), .group = group});
  }
}

}  // namespace

std::vector<ReadFile> read_documents(std::span<const SourceFile> files, const std::string& key,
                                     bool utf8, const std::function<void(const Piece&)>& see) {
  std::vector<ReadFile> read;
  Index before = 0;
  for (const auto& [file, domain] : files) {
    const bool lines = file.extension() == ".jsonl" || file.extension() == ".ndjson";
    const system::StoredBytes stored(file);
    const auto see_in_all = [&](Piece piece) {
      piece.bytes_read += before;
      piece.file = std::ssize(read);
      see(piece);
    };
    if (lines) {
      read_lines(file, stored.all(), key, see_in_all);
    } else {
      read_text_file(file, stored.all(), utf8, see_in_all);
    }
    Digest digest;
    digest.add(stored.all());  // which tells if it changed meanwhile
    read.push_back({file, static_cast<Index>(stored.size()), digest.hex()});
    before += read.back().bytes;
  }
  return read;
}

Index total_size(std::span<const SourceFile> files) {
  Index total = 0;
  for (const SourceFile& file : files) {
    std::error_code gone;  // reading it will say so
    const auto size = fs::file_size(file.path, gone);
    if (!gone) total += static_cast<Index>(size);
  }
  return total;
}

}  // namespace difftape::run
