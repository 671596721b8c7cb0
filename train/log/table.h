#pragma once
// Tables of text for the terminal.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/real.h"

namespace difftape {

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

/// A number with thousands separated: 820224 -> "820,224".
std::string grouped(Index number);

}  // namespace difftape
