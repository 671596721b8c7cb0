#include "train/run/data/prepare/corpus.h"

#include <algorithm>
#include <boost/locale/utf.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "core/error.h"
#include "train/run/data/near_duplicates.h"
#include "train/system/file_kind.h"
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

constexpr std::size_t kPiece = std::size_t{16} << 20;  ///< bytes per piece

/// Returns the length of the piece at the beginning of a text that continues: up to the end of its
/// last line, or of its last complete character if it has no line end.
std::size_t piece_of(std::string_view text) {
  const std::size_t line = text.rfind('\n');
  if (line != std::string_view::npos) return line + 1;
  std::size_t end = text.size();
  while (end > 1 && (static_cast<unsigned char>(text[end - 1]) & 0xC0) == 0x80) --end;
  return end > 1 && (static_cast<unsigned char>(text[end - 1]) & 0xC0) == 0xC0 ? end - 1
                                                                               : text.size();
}

/// Throws DataError unless the piece `text` of a file, from its byte `first` on, is text and, if
/// `utf8`, valid UTF-8. `head` are the first bytes of the file.
void require_text(const fs::path& path, std::string_view head, std::size_t first,
                  std::string_view text, bool utf8) {
  if (const std::size_t zero = text.find('\0'); zero != text.npos)
    throw not_text(path, head, static_cast<Index>(first + zero), "leave it out");
  const std::size_t foreign = utf8 ? first_foreign(text) : text.npos;
  throw_if<DataError>(
      foreign != text.npos,
      "{}: byte {} is not UTF-8, but the file must be; convert it, for example with "
      "iconv",
      path.string(), first + foreign);
}

/// Returns the first bytes of a file, enough for a byte order mark.
std::string head_of(const system::StoredBytes& file) {
  constexpr std::size_t kHead = 4;
  return file.copy(0, std::min(file.size(), kHead));
}

void read_text_file(const fs::path& path, const system::StoredBytes& file, bool utf8,
                    const std::function<void(const Piece&)>& see) {
  std::size_t read = 0;  // limit of the next piece, a multiple of kPiece
  for (std::size_t begin = 0; begin < file.size();) {
    read = std::min(read + kPiece, file.size());
    const std::string bytes = file.copy(begin, read - begin);
    std::string_view text = bytes;
    if (read < file.size()) text = text.substr(0, piece_of(text));
    require_text(path, head_of(file), begin, text, utf8);
    begin += text.size();
    see({.text = text,
         .ends_document = begin == file.size(),
         .bytes_read = static_cast<Index>(read)});
  }
}

struct Line {
  std::string text, group;
};

/// Returns what is wrong with a line of invalid JSON, and how to mend it.
std::string json_problem(const nlohmann::json::parse_error& error, std::string_view line) {
  std::string what = error.what();
  const std::size_t last_read = what.find("; last read");
  if (last_read != what.npos) what.resize(last_read);  // it may not be valid text
  const std::size_t reason = what.rfind(" - ");
  if (reason != what.npos) what.erase(0, reason + 3);
  const auto says = [&](const char* text) { return what.find(text) != what.npos; };
  const char* remedy = "write it with a JSON library";
  if (says("surrogate")) remedy = "remove the lone surrogate, half of a UTF-16 pair";
  const std::string_view rest =
      line.substr(std::clamp<std::size_t>(error.byte, 1, line.size()) - 1);
  if (rest.starts_with("NaN") || rest.starts_with("Infinity"))
    remedy = "JSON has no NaN and no Infinity, which Python writes; write null";
  if (says("UTF-8"))
    remedy = "convert the file to UTF-8, for example with iconv -f LATIN1 -t UTF-8";
  return fmt::format("is not valid JSON near byte {}: {}; {}", error.byte, what, remedy);
}

/// Parses a line of JSON; `where` names it in errors.
Line parse_line(std::string_view line, const std::string& key, const std::string& where) {
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    throw DataError(fmt::format("{}: {}", where, json_problem(error, line)));
  }
  throw_if<DataError>(!object.is_object(),
                      "{}: is not a JSON object; write {{\"{}\": \"...\"}} on each line", where,
                      key);
  const auto text = object.find(key);
  throw_if<DataError>(text == object.end() || !text->is_string(),
                      "{}: has no string under \"{}\"; select another key with --key", where, key);
  const auto group = object.find("group");
  const bool grouped = group != object.end() && group->is_string();
  return {text->get<std::string>(), grouped ? group->get<std::string>() : ""};
}

/// Throws DataError for JSON in UTF-16.
void require_no_utf16(const fs::path& path, std::string_view head) {
  using namespace std::string_view_literals;
  std::string_view name;
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) name = "UTF-16";
  if (head.starts_with("{\0"sv)) name = "UTF-16LE";
  if (head.starts_with("\0{"sv)) name = "UTF-16BE";
  throw_if<DataError>(!name.empty(),
                      "{}: is UTF-16, but must be UTF-8; convert it with iconv -f {} -t UTF-8",
                      path.string(), name);
}

/// Calls f(line, end) for each line of a file; `end` is the offset after it.
void for_each_line(const system::StoredBytes& file,
                   const std::function<void(std::string_view, std::size_t)>& f) {
  std::string waiting;  // the beginning of a line
  for (std::size_t read = 0; read < file.size();) {
    const std::size_t size = std::min(kPiece, file.size() - read);
    waiting += file.copy(read, size);
    read += size;
    std::size_t begin = 0;
    const std::size_t before = read - waiting.size();
    for (std::size_t end; (end = waiting.find('\n', begin)) != waiting.npos; begin = end + 1)
      f(std::string_view(waiting).substr(begin, end - begin), before + end + 1);
    waiting.erase(0, begin);
  }
  if (!waiting.empty()) f(waiting, file.size());
}

/// Reads a file of JSON lines. JSON is always UTF-8, so the lines need no check.
void read_lines(const fs::path& path, const system::StoredBytes& file, const std::string& key,
                const std::function<void(const Piece&)>& see) {
  require_no_utf16(path, head_of(file));
  Index number = 0;
  for_each_line(file, [&](std::string_view line, std::size_t end) {
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) return;
    const auto [text, group] = parse_line(line, key, fmt::format("{}:{}", path.string(), number));
    see({.text = text, .bytes_read = static_cast<Index>(end), .group = group});
  });
}

std::string digest_of_file(const system::StoredBytes& file) {
  Digest digest;
  for (std::size_t at = 0; at < file.size(); at += kPiece) {
    const std::string piece = file.copy(at, std::min(kPiece, file.size() - at));
    digest.add(std::string_view(piece));
  }
  return digest.hex();
}

/// Returns true for a file of JSON lines, false for text, as other JSON in a folder is. Throws
/// DataError for other files.
bool has_lines(const SourceFile& file, const system::StoredBytes& stored) {
  using enum system::FileFormat;
  const auto kind = system::recognize(file.path, stored.all());
  if (!kind || kind->format == html || (file.in_folder && kind->format == json)) return false;
  if (kind->format != json_lines) system::refuse(file.path, *kind, "text or JSON lines");
  return true;
}

}  // namespace

std::vector<ReadFile> read_documents(std::span<const SourceFile> files, const std::string& key,
                                     bool utf8, const std::function<void(const Piece&)>& see) {
  std::vector<ReadFile> read;
  Index before = 0;
  for (const SourceFile& source : files) {
    const fs::path& file = source.path;
    system::StoredBytes stored(file);
    const std::string digest = digest_of_file(stored);
    stored.accept_if(0, stored.size(),
                     [&](std::string_view now) { return digest_of(now) == digest; });
    const bool lines = has_lines(source, stored);
    const auto see_in_all = [&](Piece piece) {
      piece.bytes_read += before;
      piece.file = std::ssize(read);
      see(piece);
    };
    if (lines)
      read_lines(file, stored, key, see_in_all);
    else
      read_text_file(file, stored, utf8, see_in_all);
    stored.all();  // throws if the file changed meanwhile
    // The digest shows if the file changes between two passes.
    read.push_back({file, std::ssize(stored), digest});
    before += read.back().bytes;
  }
  return read;
}

Index total_size(std::span<const SourceFile> files) {
  Index total = 0;
  for (const SourceFile& file : files) {
    std::error_code gone;  // reading the file reports it
    const auto size = fs::file_size(file.path, gone);
    if (!gone) total += static_cast<Index>(size);
  }
  return total;
}

namespace {

struct Document {
  std::string text;
  Index domain = 0;
  std::string digest;  ///< digest of the text
  std::string unit;    ///< digest of the group, or of the text; equal units stay together
};

void require_fraction(const char* option, const std::optional<double>& fraction, bool may_be_0) {
  if (!fraction || (*fraction > 0 && *fraction < 1) || (may_be_0 && *fraction == 0)) return;
  throw UsageError(fmt::format("{}: is {}, but must be {} 0 and below 1", option, *fraction,
                               may_be_0 ? "at least" : "above"));
}

/// The documents with their fates so far.
class DividedCorpus {
 public:
  DividedCorpus(Corpus corpus, std::vector<Document> documents)
      : corpus_(std::move(corpus)), documents_(std::move(documents)) {
    corpus_.fates.assign(documents_.size(), Fate::trains);
  }

  void drop_near_duplicates(double fraction);
  void hold_out(double fraction);
  /// Measures overlap, and drops held-out documents until it is at most `most`.
  void limit_overlap(const std::optional<double>& most);
  Corpus counted();

 private:
  void hold_out(double fraction, Index domain);
  ReadDocument read() const {
    return [this](size_t i) { return std::string_view(documents_[i].text); };
  }
  std::vector<size_t> with_fate(Fate fate) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < documents_.size(); ++i)
      if (corpus_.fates[i] == fate) found.push_back(i);
    return found;
  }

  Corpus corpus_;
  std::vector<Document> documents_;
};

void DividedCorpus::drop_near_duplicates(double fraction) {
  std::vector<DocumentFacts> facts;
  for (const Document& each : documents_) facts.push_back({std::ssize(each.text), each.digest});
  const std::vector<bool> drop = find_near_duplicates(facts, fraction, 0, read());
  std::vector<Index> left(corpus_.domains.size());
  for (size_t i = 0; i < drop.size(); ++i) {
    if (drop[i]) corpus_.fates[i] = Fate::dropped;
    if (!drop[i]) ++left[documents_[i].domain];
  }
  for (size_t domain = 0; domain < left.size(); ++domain) {
    if (left[domain] > 0) continue;
    throw DataError(fmt::format(
        "domain {}: all documents are near-duplicates of longer ones in other domains; leave it "
        "out, or raise --drop-duplicates",
        corpus_.domains[domain].name));
  }
}

void DividedCorpus::hold_out(double fraction) {
  for (Index domain = 0; domain < std::ssize(corpus_.domains); ++domain) hold_out(fraction, domain);
}

void DividedCorpus::hold_out(double fraction, Index domain) {
  std::map<std::string, std::vector<size_t>> units;
  for (const size_t i : with_fate(Fate::trains))
    if (documents_[i].domain == domain) units[documents_[i].unit].push_back(i);
  std::vector<DocumentFacts> facts;
  double all = 0, held_out = 0;
  for (const auto& [digest, members] : units) {
    facts.push_back({0, digest});
    for (const size_t i : members) facts.back().bytes += std::ssize(documents_[i].text);
    all += static_cast<double>(facts.back().bytes);
  }
  const std::vector<bool> chosen = choose_held_out(facts, fraction);
  size_t unit = 0;
  for (const auto& [digest, members] : units) {
    if (chosen[unit]) held_out += static_cast<double>(facts[unit].bytes);
    for (const size_t i : members)
      if (chosen[unit]) corpus_.fates[i] = Fate::validates;
    ++unit;
  }
  if (is_about(held_out, fraction * all)) return;
  throw DataError(fmt::format(
      "domain {}: {} of {} bytes can be held out as whole documents or groups, of which "
      "there are {}, but --val-fraction is {}; give more or shorter documents, or "
      "another fraction",
      corpus_.domains[domain].name, held_out, all, facts.size(), fraction));
}

void DividedCorpus::limit_overlap(const std::optional<double>& most) {
  const std::vector<size_t> held_out = with_fate(Fate::validates);
  const std::vector<Index> shared = count_shared_bytes(with_fate(Fate::trains), held_out, read());
  for (size_t domain = 0; domain < corpus_.domains.size(); ++domain) {
    std::vector<Overlap> overlaps;
    std::vector<size_t> documents;
    for (size_t n = 0; n < held_out.size(); ++n) {
      const Document& document = documents_[held_out[n]];
      if (document.domain != static_cast<Index>(domain)) continue;
      overlaps.push_back({std::ssize(document.text), shared[n]});
      documents.push_back(held_out[n]);
    }
    const std::vector<bool> drop = choose_overlapping(overlaps, most.value_or(1));
    for (size_t n = 0; n < drop.size(); ++n) {
      if (drop[n]) corpus_.fates[documents[n]] = Fate::dropped;
      if (!drop[n]) corpus_.domains[domain].shared_bytes += overlaps[n].shared;
    }
    if (drop.empty() || std::ranges::find(drop, false) != drop.end()) continue;
    throw DataError(fmt::format(
        "domain {}: every held-out document shares more than {} of its bytes with training; leave "
        "it out, or raise --max-overlap",
        corpus_.domains[domain].name, *most));
  }
}

Corpus DividedCorpus::counted() {
  for (size_t i = 0; i < documents_.size(); ++i) {
    DomainCounts& domain = corpus_.domains[documents_[i].domain];
    const Index bytes = std::ssize(documents_[i].text);
    ++domain.documents;
    switch (corpus_.fates[i]) {
      case Fate::trains:
        domain.train_bytes += bytes;
        break;
      case Fate::validates:
        ++domain.held_out;
        domain.val_bytes += bytes;
        break;
      case Fate::dropped:
        ++domain.dropped;
        domain.dropped_bytes += bytes;
        break;
    }
  }
  return std::move(corpus_);
}

}  // namespace

Corpus divide_documents(std::span<const SourceFile> files, const std::string& key, bool utf8,
                        const CorpusOptions& options, const std::function<void(Index)>& on_read) {
  require_fraction("--drop-duplicates", options.drop_duplicates, true);
  require_fraction("--val-fraction", options.val_fraction, false);
  require_fraction("--max-overlap", options.max_overlap, true);
  Corpus corpus;
  for (const SourceFile& file : files) {
    const auto known = std::ranges::find(corpus.domains, file.domain, &DomainCounts::name);
    corpus.domain_of.push_back(known - corpus.domains.begin());
    if (known == corpus.domains.end()) corpus.domains.push_back({.name = file.domain});
  }
  std::vector<Document> documents;
  std::string text;
  corpus.files = read_documents(files, key, utf8, [&](const Piece& piece) {
    text += piece.text;
    on_read(piece.bytes_read);
    if (!piece.ends_document) return;
    const std::string digest = digest_of(text);
    documents.push_back({.text = std::exchange(text, {}),
                         .domain = corpus.domain_of[piece.file],
                         .digest = digest,
                         .unit = piece.group.empty() ? digest : digest_of(piece.group)});
  });
  DividedCorpus division(std::move(corpus), std::move(documents));
  if (options.drop_duplicates) division.drop_near_duplicates(*options.drop_duplicates);
  if (options.val_fraction) {
    division.hold_out(*options.val_fraction);
    division.limit_overlap(options.max_overlap);
  }
  return division.counted();
}

}  // namespace difftape::run
