#pragma once
// Formats tables: aligned for the terminal, or as comma-separated values (RFC 4180).

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/system/number.h"

namespace difftape::system {

/// Width, in characters, of text written to a file or a pipe.
inline constexpr std::size_t kTextWidth = 100;

/// Returns the width, in characters, from the environment variable COLUMNS, else of the terminal
/// of a file descriptor, else `otherwise`.
std::size_t terminal_width(int descriptor, std::size_t otherwise);

struct Column {
  std::string group;  ///< shared by adjacent columns; empty: none
  std::string name;
  bool left = false;  ///< aligned left, as strings are, or right, as numbers are
};

/// Adjacent columns [begin, end) that share a label, or one column without a label.
struct ColumnGroup {
  std::string label;
  std::size_t begin, end;
};
std::vector<ColumnGroup> column_groups(std::span<const Column> columns);

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< one cell per column
};

/// Returns a string that is safe to print on one line: unchanged, or quoted with escapes if it
/// contains unprintable characters such as line breaks or terminal control codes.
std::string printable(const std::string& text);

/// Formats an aligned table that ends in a newline. A line of group labels comes first if there are
/// any. Cells must be printable.
std::string to_text(const Table& table);
/// Does the same in blocks, one below the other, that fit `width` if possible. A block consists of
/// the first `keys` columns and of whole column groups.
std::string to_text(const Table& table, std::size_t width, std::size_t keys);

/// Breaks text between words into lines that begin with `indent` and end in a newline. A line is
/// longer than `width` characters only if a single word is.
std::string wrapped(std::string_view text, std::size_t width, std::string_view indent);

/// Formats a field: quoted if it contains a comma, a quote or a line break.
std::string csv_field(std::string_view text);

/// Formats a line of fields, quoted as needed, with its newline.
std::string csv_line(std::span<const std::string> fields);

/// Returns the unquoted fields of each line. Lines end with LF or CRLF; the last one may end with
/// the text. An empty line has one empty field. Malformed text is accepted: a quote within a field
/// is part of it, and a quoted field that is never closed ends with the text.
std::vector<std::vector<std::string>> read_csv(std::string_view text);

}  // namespace difftape::system
