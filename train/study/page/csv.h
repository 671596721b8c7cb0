#pragma once
// The numbers of a picture as a file that needs no JavaScript to be saved.

#include <string>
#include <string_view>

namespace difftape::study::page {

/// A link that saves `csv` as `name`; the data are in the link.
std::string csv_link(std::string_view name, std::string_view csv);

}  // namespace difftape::study::page
