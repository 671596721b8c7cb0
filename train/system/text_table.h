#pragma once
// Tables of text for the terminal.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace difftape::system {

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

/// Aligned, with a newline at the end; a line of group labels first, if there are any.
std::string to_text(const Table& table);
/// The same in blocks of whole column groups that fit `width` where one can, one below the other,
/// each beginning with the first `keys` columns.
std::string to_text(const Table& table, std::size_t width, std::size_t keys);

/// Text broken between words into lines of at most `width`, if its words allow it, each after
/// `indent`; a newline at the end.
std::string wrapped(std::string_view text, std::size_t width, std::string_view indent);

/// A number, at least 0, with its thousands separated: 820224 -> "820,224".
std::string grouped(std::int64_t number);

}  // namespace difftape::system
