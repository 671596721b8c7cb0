#include "train/study/figures/png.h"

#include <fmt/format.h>
#include <png.h>

#include <vector>

#include "core/error.h"

namespace difftape::study {

namespace {

/// The colour map of libpng: RGBA, its first entry transparent.
std::vector<png_byte> color_map(std::span<const svg::Rgb> palette) {
  std::vector<png_byte> map = {0, 0, 0, 0};
  for (const svg::Rgb color : palette) {
    map.insert(map.end(), {color.red, color.green, color.blue, 255});
  }
  return map;
}

}  // namespace

std::string png_data_uri(int width, std::span<const int> shades,
                         std::span<const svg::Rgb> palette) {
  std::vector<png_byte> pixels;
  for (const int shade : shades) pixels.push_back(static_cast<png_byte>(shade < 0 ? 0 : shade + 1));
  const std::vector<png_byte> map = color_map(palette);
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(std::ssize(shades) / width);
  image.format = PNG_FORMAT_RGBA_COLORMAP;
  image.colormap_entries = static_cast<png_uint_32>(palette.size() + 1);
  png_alloc_size_t bytes = 0;
  std::vector<png_byte> file;
  const auto write = [&] {
    return png_image_write_to_memory(&image, file.empty() ? nullptr : file.data(), &bytes, 0,
                                     pixels.data(), width, map.data()) != 0;
  };
  bool ok = write();  // without memory it only counts
  if (ok) file.resize(bytes), ok = write();
  if (!ok) throw OutputError(fmt::format("png: a picture of the report: {}", image.message));
  return "data:image/png;base64," + base64(std::span(file).first(bytes));
}

std::string base64(std::span<const unsigned char> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const unsigned group = static_cast<unsigned>(bytes[i]) << 16 |
                           (left > 1 ? static_cast<unsigned>(bytes[i + 1]) << 8 : 0u) |
                           (left > 2 ? static_cast<unsigned>(bytes[i + 2]) : 0u);
    text += kDigits[group >> 18 & 63];
    text += kDigits[group >> 12 & 63];
    text += left > 1 ? kDigits[group >> 6 & 63] : '=';
    text += left > 2 ? kDigits[group & 63] : '=';
  }
  return text;
}

}  // namespace difftape::study
