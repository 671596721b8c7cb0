#include "train/system/file_kind.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"

namespace difftape::system {
namespace {

using namespace std::string_view_literals;

constexpr const char* kPrepare =
    "run `difftape data prepare`, which reads the text of each line, or leave the file out";

struct Magic {
  std::string_view bytes;
  FileKind kind;
};

constexpr std::array kMagics = {
    Magic{"\x93NUMPY"sv, {FileFormat::numpy, "a NumPy array", "set data.type to tokens"}},
    Magic{"\x89HDF\r\n\x1a\n"sv, {FileFormat::hdf5, "an HDF5 file", "set data.type to tokens"}},
    Magic{"PK\3\4"sv,
          {FileFormat::compressed, "a zip archive, such as .npz or .pt",
           "unpack it, and save arrays with numpy.save"}},
    Magic{"\x1f\x8b\x08"sv, {FileFormat::compressed, "a gzip file", "unpack it with gunzip"}},
    Magic{"BZh91AY&SY"sv, {FileFormat::compressed, "a bzip2 file", "unpack it with bunzip2"}},
    Magic{"\xfd"
          "7zXZ\0"sv,
          {FileFormat::compressed, "an xz file", "unpack it with unxz"}},
    Magic{"\x28\xb5\x2f\xfd"sv, {FileFormat::compressed, "a zstd file", "unpack it with unzstd"}},
    Magic{"version https://git-lfs.github.com/spec/"sv,
          {FileFormat::lfs_pointer, "a Git LFS pointer", "fetch the file with `git lfs pull`"}},
    Magic{
        "PAR1"sv,
        {FileFormat::other, "a Parquet file", "convert it to JSON lines, for example with pandas"}},
    Magic{
        "ARROW1\0\0"sv,
        {FileFormat::other, "an Arrow file", "convert it to JSON lines, for example with pandas"}},
    Magic{"%PDF-"sv, {FileFormat::other, "a PDF file", "convert it with pdftotext"}},
    Magic{"\x7f"
          "ELF"sv,
          {FileFormat::other, "a program", "leave it out"}},
    Magic{"SQLite format 3\0"sv, {FileFormat::other, "an SQLite database", "export its text"}},
};

constexpr FileKind kHtml{FileFormat::html, "an HTML page",
                         "download the file itself, not the page that shows it"};
constexpr FileKind kModel{FileFormat::sentencepiece, "a SentencePiece model",
                          "leave it out; name it with --tokenizer of `difftape data prepare`"};
constexpr FileKind kLines{FileFormat::json_lines, "JSON lines", kPrepare};
constexpr FileKind kRecords{
    FileFormat::json, "a JSON list",
    "convert it with `jq -c '.[]' FILE > FILE.jsonl`, then run `difftape data prepare`"};
constexpr FileKind kStrings{FileFormat::json, "a JSON list",
                            "convert it with `jq -c '.[] | {text: .}' FILE > FILE.jsonl`, then run "
                            "`difftape data prepare`"};
constexpr FileKind kObject{FileFormat::json, "a JSON object",
                           "convert its list of documents, for example with `jq -c '.data[]' FILE "
                           "> FILE.jsonl`, then run `difftape data prepare`"};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  });
  return result;
}

std::string_view without_space(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == text.npos ? std::string_view() : text.substr(begin);
}

bool is_object(std::string_view line) {
  return without_space(line).starts_with('{') && nlohmann::json::accept(line);
}

/// Returns true if the first two lines with text are JSON objects.
bool has_json_lines(std::string_view text) {
  for (int found = 0; found < 2; ++found) {
    text = without_space(text);
    const std::size_t end = text.find('\n');
    if (!is_object(text.substr(0, end))) return false;
    text.remove_prefix(std::min(end, text.size()));
  }
  return true;
}

/// Returns true for the beginning of a serialized model, whose first piece is <unk>.
bool is_sentencepiece(std::string_view head) {
  return head.size() > 9 && head[0] == '\n' && head[2] == '\n' && head.substr(3, 6) == "\5<unk>"sv;
}

}  // namespace

std::string lower_extension(const std::filesystem::path& path) {
  return lower(path.extension().string());
}

bool is_json(const FileKind& kind) {
  return kind.format == FileFormat::json_lines || kind.format == FileFormat::json;
}

std::optional<FileKind> recognize(const std::filesystem::path& path, std::string_view contents) {
  for (const Magic& magic : kMagics)
    if (contents.starts_with(magic.bytes)) return magic.kind;
  if (is_sentencepiece(contents)) return kModel;
  if (contents.starts_with("\xEF\xBB\xBF")) contents.remove_prefix(3);
  const std::string_view text = without_space(contents);
  const std::string begin = lower(text.substr(0, 14)), extension = lower_extension(path);
  if (begin.starts_with("<!doctype html") || begin.starts_with("<html")) return kHtml;
  const bool is_lines = extension == ".jsonl" || extension == ".ndjson";
  if (is_lines || has_json_lines(text)) return kLines;
  if (text.starts_with('[') && without_space(text.substr(1)).starts_with('{')) return kRecords;
  if (extension == ".json" && text.starts_with('[')) return kStrings;
  if (extension == ".json" && text.starts_with('{')) return kObject;
  return std::nullopt;
}

void refuse(const std::filesystem::path& path, const FileKind& kind, std::string_view need) {
  throw DataError(
      fmt::format("{}: is {}, but must be {}; {}", path.string(), kind.name, need, kind.remedy));
}

void refuse_other(const std::filesystem::path& path, std::string_view contents,
                  std::string_view need) {
  using enum FileFormat;
  const auto kind = recognize(path, contents);
  if (kind && (kind->format == compressed || kind->format == lfs_pointer || kind->format == html ||
               kind->format == other))
    refuse(path, *kind, need);
}

}  // namespace difftape::system
