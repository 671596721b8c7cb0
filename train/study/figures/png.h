#pragma once
// Small pictures inside the page. Only png.cpp includes libpng.

#include <span>
#include <string>

#include "train/study/figures/drawing.h"

namespace difftape::study {

/// A picture of `width` columns and as many rows as `shades` fills, row-major from the top: a shade
/// in [0, 255] is a colour of `palette`, and a negative one is transparent. The result is a
/// data URI, "data:image/png;base64,...", the same bytes for the same picture. `palette` has at
/// most 255 colours. Throws OutputError if libpng fails.
std::string png_data_uri(int width, std::span<const int> shades, std::span<const svg::Rgb> palette);

/// RFC 4648, with padding.
std::string base64(std::span<const unsigned char> bytes);

}  // namespace difftape::study
