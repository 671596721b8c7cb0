#pragma once
// Tables of comma-separated values, as RFC 4180 has them.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace difftape::system {

/// A field as it is written: quoted if it holds a comma, a quote or a line break.
std::string csv_field(std::string_view text);

/// A line of fields, each quoted where it must be, with its newline.
std::string csv_line(std::span<const std::string> fields);

/// A number with all its digits, which read back exactly; empty for NaN.
std::string csv_number(double value);

/// The fields of each line, unquoted; lines end with LF or CRLF, the last may end with the text. An
/// empty line has one empty field. Malformed text is not refused: a quote within a field is
/// part of it, and a quoted field that is never closed ends with the text.
std::vector<std::vector<std::string>> read_csv(std::string_view text);

}  // namespace difftape::system
