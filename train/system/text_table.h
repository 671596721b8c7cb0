#pragma once
// Tables of text: aligned for the terminal, and comma-separated values as RFC 4180 has them.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/system/number.h"

namespace difftape::system {

/// Columns of a text that goes to a file or to a console that is not a terminal.
inline constexpr std::size_t kTextWidth = 100;

/// Columns of the terminal of a file descriptor; first of all what the variable COLUMNS says, and
/// `otherwise` if there is neither.
std::size_t terminal_width(int descriptor, std::size_t otherwise);

struct Column {
  std::string group;  ///< shared by neighbouring columns; empty: none
  std::string name;
  bool left = false;  ///< text is aligned left, numbers right
};

/// Neighbouring columns [begin, end) that share a label, or one column without.
struct ColumnGroup {
  std::string label;
  std::size_t begin, end;
};
std::vector<ColumnGroup> column_groups(std::span<const Column> columns);

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< one cell a column
};

/// A text on one line: as it is, or quoted with escapes if anything in it is not printable, such as
/// a line break or what a terminal obeys.
std::string printable(const std::string& text);

/// Aligned, with a newline at the end; a line of group labels first, if there are any. Cells are
/// printable.
std::string to_text(const Table& table);
/// The same in blocks of whole column groups that fit `width` where one can, one below the other,
/// each beginning with the first `keys` columns.
std::string to_text(const Table& table, std::size_t width, std::size_t keys);

/// Text broken between words into lines of at most `width`, if its words allow it, each after
/// `indent`; a newline at the end.
std::string wrapped(std::string_view text, std::size_t width, std::string_view indent);

/// A field as it is written: quoted if it holds a comma, a quote or a line break.
std::string csv_field(std::string_view text);

/// A line of fields, each quoted where it must be, with its newline.
std::string csv_line(std::span<const std::string> fields);

/// The fields of each line, unquoted; lines end with LF or CRLF, the last may end with the text. An
/// empty line has one empty field. Malformed text is not refused: a quote within a field is
/// part of it, and a quoted field that is never closed ends with the text.
std::vector<std::vector<std::string>> read_csv(std::string_view text);

}  // namespace difftape::system
