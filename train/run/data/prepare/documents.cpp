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

/// What reads one file: its lines or pieces, its digest.
class Reader {
 public:
  Reader(const fs::path& path, bool utf8) : path_(path), bytes_(path), utf8_(utf8) {}

  /// Calls f(text, line number or byte, last) for pieces that `cut` measures in what is read.
  template <class Cut, class See>
  void read(Cut&& cut, See&& see) {
    std::string text;
    while (at_ < bytes_.size()) {
      const std::size_t before = text.size(), more = std::min(kPiece, bytes_.size() - at_);
      text.resize(before + more);
      const auto fresh = std::as_writable_bytes(std::span(text)).subspan(before);
      bytes_.read(at_, fresh);
      digest_.add(fresh);
      at_ += more;
      const std::size_t end = at_ == bytes_.size() ? text.size() : cut(text);
      if (end > 0) see(std::string_view(text).substr(0, end));
      text.erase(0, end);
    }
  }

  /// Throws DataError for a piece that begins with byte `first` of the file.
  void require_text(std::string_view text, std::size_t first) const {
    const std::size_t zero = text.find('\0');
    if (zero != std::string_view::npos) {
      throw DataError(
          fmt::format("{}: is no text, byte {} of it is 0", path_.string(), first + zero));
    }
    const std::size_t foreign = utf8_ ? first_foreign(text) : std::string_view::npos;
    if (foreign == std::string_view::npos) return;
    throw DataError(fmt::format("{}: is no UTF-8 at byte {}; convert it, with iconv for example",
                                path_.string(), first + foreign));
  }

  bool done() const { return at_ == bytes_.size(); }
  Index bytes_read() const { return static_cast<Index>(at_); }
  ReadFile facts() const { return {path_, bytes_read(), digest_.hex()}; }

 private:
  fs::path path_;
  system::StoredBytes bytes_;
  bool utf8_;
  std::size_t at_ = 0;
  Digest digest_;
};

ReadFile read_text_file(const fs::path& path, bool utf8,
                        const std::function<void(const Piece&)>& see) {
  Reader reader(path, utf8);
  std::size_t first = 0;
  reader.read(piece_of, [&](std::string_view text) {
    reader.require_text(text, first);
    first += text.size();
    const bool whole = reader.done();
    see({.text = text, .ends_document = whole, .bytes_read = reader.bytes_read()});
  });
  return reader.facts();
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

ReadFile read_lines(const fs::path& path, const std::string& key,
                    const std::function<void(const Piece&)>& see) {
  Reader reader(path, false);  // of text that is no UTF-8 JSON is none
  Index number = 0;
  const auto after_line = [](std::string_view text) { return text.rfind('\n') + 1; };
  reader.read(after_line, [&](std::string_view lines) {
    while (!lines.empty()) {
      const std::string_view line = lines.substr(0, lines.find('\n'));
      lines.remove_prefix(std::min(line.size() + 1, lines.size()));
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const auto [text, group] = parse_line(line, key, fmt::format("{}:{}", path.string(), number));
      see({.text = text, .bytes_read = reader.bytes_read() - std::ssize(lines), .group = group});
    }
  });
  return reader.facts();
}

}  // namespace

std::vector<ReadFile> read_documents(std::span<const fs::path> files, const std::string& key,
                                     bool utf8, const std::function<void(const Piece&)>& see) {
  std::vector<ReadFile> read;
  Index before = 0;
  for (const fs::path& file : files) {
    const bool lines = file.extension() == ".jsonl" || file.extension() == ".ndjson";
    const auto see_in_all = [&](Piece piece) {
      piece.bytes_read += before;
      piece.file = std::ssize(read);
      see(piece);
    };
    read.push_back(lines ? read_lines(file, key, see_in_all)
                         : read_text_file(file, utf8, see_in_all));
    before += read.back().bytes;
  }
  return read;
}

Index total_size(std::span<const fs::path> files) {
  Index total = 0;
  for (const fs::path& file : files) {
    std::error_code gone;  // reading it will say so
    const auto size = fs::file_size(file, gone);
    if (!gone) total += static_cast<Index>(size);
  }
  return total;
}

}  // namespace difftape::run
