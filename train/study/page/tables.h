#pragma once
// Tables of text as tables of the page.

#include <span>
#include <string>
#include <vector>

#include "train/system/text_table.h"

namespace difftape::study::page {

/// The coloured square of an arm, as in its curves.
std::string swatch(std::size_t arm);

/// A table whose rows belong to arms: row r to arm `arms[r]`, in whose colour it is marked.
std::string arm_table(const system::Table& table, std::span<const std::size_t> arms);

/// A table of claims. The verdict, a cell that says "supported", "not supported" or "no difference
/// detected", gets a shape; on a narrow screen a row becomes a block of labelled cells.
std::string verdict_cards(const system::Table& table);

/// The position in `names` of the arm each row is about: the longest name its first cell is, or
/// begins with. A row about none gets names.size().
std::vector<std::size_t> arms_of(const system::Table& table, std::span<const std::string> names);

}  // namespace difftape::study::page
