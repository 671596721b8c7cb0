#include "train/system/text_table.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>

namespace difftape::system {
namespace {

constexpr std::size_t kGap = 2;

/// Ranges of characters that a terminal shows in no column or in two, after Unicode's East Asian
/// Width and its combining marks.
struct WidthRange {
  char32_t first, last;
  std::size_t columns;
};
constexpr WidthRange kWidths[] = {
    {0x0300, 0x036f, 0},   {0x0483, 0x0489, 0},   {0x0591, 0x05bd, 0},   {0x064b, 0x065f, 0},
    {0x1100, 0x115f, 2},   {0x200b, 0x200f, 0},   {0x20d0, 0x20f0, 0},   {0x2e80, 0x303e, 2},
    {0x3041, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},
    {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},
    {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2}};

/// Returns the number of columns of a terminal that UTF-8 text takes. Invalid bytes take one each.
std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    char32_t point = length == 1 ? byte : byte & (0xffu >> (length + 1));
    for (std::size_t i = 1; i < length && at + i < text.size(); ++i)
      point = point << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3f);
    const auto* const wide = std::ranges::find_if(kWidths, [point](const WidthRange& range) {
      return point >= range.first && point <= range.last;
    });
    columns += wide == std::end(kWidths) ? 1 : wide->columns;
    at += length;
  }
  return columns;
}

/// Returns text with spaces up to a number of columns, after it or before it.
std::string padded(const std::string& text, std::size_t columns, bool left) {
  const std::string spaces(columns - std::min(columns, columns_of(text)), ' ');
  return left ? text + spaces : spaces + text;
}

/// Returns the width of a group in characters.
std::size_t extent(const ColumnGroup& group, const std::vector<std::size_t>& widths) {
  std::size_t sum = kGap * (group.end - group.begin - 1);
  for (std::size_t c = group.begin; c < group.end; ++c) sum += widths[c];
  return sum;
}

std::vector<std::size_t> widths_of(const Table& table, const std::vector<ColumnGroup>& groups) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = columns_of(table.columns[c].name);
    for (const auto& row : table.rows) width = std::max(width, columns_of(row[c]));
    widths.push_back(width);
  }
  for (const ColumnGroup& group : groups) {
    const std::size_t needed = columns_of(group.label) + 2, given = extent(group, widths);
    if (!group.label.empty() && given < needed) widths[group.begin] += needed - given;
  }
  return widths;
}

/// Joins cells with the gap and drops spaces at the end.
std::string line_of(const std::vector<std::string>& cells) {
  std::string line = fmt::to_string(fmt::join(cells, std::string(kGap, ' ')));
  return line.erase(line.find_last_not_of(' ') + 1) + "\n";
}

/// Returns the table restricted to some columns.
Table part_of(const Table& table, const std::vector<std::size_t>& columns) {
  Table part;
  part.rows.resize(table.rows.size());
  for (const std::size_t c : columns) {
    part.columns.push_back(table.columns[c]);
    for (std::size_t r = 0; r < table.rows.size(); ++r) part.rows[r].push_back(table.rows[r][c]);
  }
  return part;
}

std::size_t width_of(const Table& table) {
  std::vector<std::size_t> widths = widths_of(table, column_groups(table.columns));
  return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
}

}  // namespace

std::size_t terminal_width(int descriptor, std::size_t otherwise) {
  if (const char* columns = std::getenv("COLUMNS")) {
    if (const auto width = read_number<std::size_t>(columns); width > std::size_t{0}) return *width;
  }
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return otherwise;
}

std::vector<ColumnGroup> column_groups(std::span<const Column> columns) {
  std::vector<ColumnGroup> groups;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::string& label = columns[c].group;
    if (!groups.empty() && !label.empty() && groups.back().label == label)
      groups.back().end = c + 1;
    else
      groups.push_back({label, c, c + 1});
  }
  return groups;
}

std::string printable(const std::string& text) {
  const std::string quoted = fmt::format("{:?}", text);
  const auto escaped = std::ranges::count(text, '"') + std::ranges::count(text, '\\');
  return std::ssize(quoted) == std::ssize(text) + escaped + 2 ? text : quoted;
}

std::string to_text(const Table& unsafe) {
  Table table = unsafe;
  for (auto& row : table.rows) std::ranges::transform(row, row.begin(), printable);
  const std::vector<ColumnGroup> groups = column_groups(table.columns);
  const std::vector<std::size_t> widths = widths_of(table, groups);

  std::vector<std::string> labels, names;
  for (const ColumnGroup& group : groups) {
    const std::string label = group.label.empty() ? "" : fmt::format(" {} ", group.label);
    const std::size_t width = extent(group, widths);
    labels.push_back(label.empty() ? std::string(width, ' ')
                                   : fmt::format("{:-^{}}", label, width));
  }
  const auto aligned = [&](const std::string& cell, std::size_t c) {
    return padded(cell, widths[c], table.columns[c].left);
  };
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    names.push_back(aligned(table.columns[c].name, c));
  const bool labelled = std::any_of(groups.begin(), groups.end(),
                                    [](const ColumnGroup& group) { return !group.label.empty(); });
  std::string text = (labelled ? line_of(labels) : "") + line_of(names);
  for (std::vector<std::string>& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) row[c] = aligned(row[c], c);
    text += line_of(row);
  }
  return text;
}

std::string to_text(const Table& table, std::size_t width, std::size_t keys) {
  if (width_of(table) <= width) return to_text(table);
  std::vector<std::size_t> key_columns(keys);
  std::iota(key_columns.begin(), key_columns.end(), std::size_t{0});
  std::string text;
  std::vector<std::size_t> columns = key_columns;
  const auto finish_block = [&] {
    if (!text.empty()) text += '\n';
    text += to_text(part_of(table, columns));
    columns = key_columns;
  };
  for (const ColumnGroup& group : column_groups(table.columns)) {
    if (group.begin < keys) continue;
    std::vector<std::size_t> longer = columns;
    for (std::size_t c = group.begin; c < group.end; ++c) longer.push_back(c);
    if (columns.size() > keys && width_of(part_of(table, longer)) > width) {
      finish_block();
      for (std::size_t c = group.begin; c < group.end; ++c) columns.push_back(c);
    } else {
      columns = longer;
    }
  }
  finish_block();
  return text;
}

std::string wrapped(std::string_view text, std::size_t width, std::string_view indent) {
  std::string result, line(indent);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (line.size() > indent.size() && line.size() + 1 + word.size() > width) {
      result += line + "\n";
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += word;
    begin = end + 1;
  }
  return result + line + "\n";
}

namespace {

/// Reads the field that begins at `at`, and moves `at` past it.
std::string field_at(std::string_view text, std::size_t& at) {
  std::string field;
  if (at < text.size() && text[at] == '"') {
    for (++at; at < text.size(); ++at) {
      if (text[at] != '"') {
        field += text[at];
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        field += text[at++];
      } else {
        ++at;
        break;
      }
    }
  }
  const auto ends_line = [&](std::size_t i) { return i == text.size() || text[i] == '\n'; };
  for (; !ends_line(at) && text[at] != ','; ++at)
    if (text[at] != '\r' || !ends_line(at + 1)) field += text[at];
  return field;
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted(1, '"');
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted.append(1, '"');
}

std::string csv_line(std::span<const std::string> fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ',';
    line += csv_field(field);
  }
  return line + '\n';
}

std::vector<std::vector<std::string>> read_csv(std::string_view text) {
  std::vector<std::vector<std::string>> lines;
  std::size_t at = 0;
  while (at < text.size()) {
    std::vector<std::string>& line = lines.emplace_back();
    line.push_back(field_at(text, at));
    while (at < text.size() && text[at] == ',') line.push_back(field_at(text, ++at));
    ++at;  // the end of the line
  }
  return lines;
}

}  // namespace difftape::system
