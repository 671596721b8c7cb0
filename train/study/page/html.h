#pragma once
// Text that is safe inside a page; links, tables and marks of the page.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/study/figures/drawing.h"
#include "train/system/text_table.h"

namespace difftape::study::page {

/// Paragraphs of small print, and of what a reader must not overlook; `html` is HTML.
std::string note(const std::string& html);
std::string notice(const std::string& html);

/// A command line as one types it into a shell.
std::string shell_command(std::span<const std::string> words);

/// Text as a part of an address, where `/` keeps its meaning.
std::string uri_text(std::string_view text);

/// A link that saves `csv` as `name`; the data are in the link.
std::string csv_link(std::string_view name, std::string_view csv);

/// The coloured square of an arm, as in its curves.
std::string swatch(std::size_t arm);

/// The head of a table, with a line of group labels if there are any.
std::string table_head(const system::Table& table);

/// What a row of a table is about.
struct RowMark {
  static constexpr auto kNoArm = static_cast<std::size_t>(-1);
  std::size_t arm = kNoArm;  ///< in whose colour it is marked
  bool diverged = false;     ///< its state is marked
  std::string links = {};    ///< HTML, in a last column if any row has some
};
/// A table, a mark a row. It scrolls where it is too wide.
std::string marked_table(const system::Table& table, std::span<const RowMark> marks);

}  // namespace difftape::study::page
