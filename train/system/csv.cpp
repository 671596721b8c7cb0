#include "train/system/csv.h"

#include <fmt/format.h>

#include <cmath>

namespace difftape::system {

namespace {

/// Reads the field that begins at `at`, and moves `at` behind it.
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
  for (; !ends_line(at) && text[at] != ','; ++at) {
    if (text[at] != '\r' || !ends_line(at + 1)) field += text[at];
  }
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

std::string csv_number(double value) { return std::isnan(value) ? "" : fmt::to_string(value); }

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
