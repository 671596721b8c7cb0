#include "tests/fuzz/described_h5.h"

#include <sstream>

namespace difftape::fuzz {

namespace {

/// Few numbers.
template <class T>
void add_dataset(run::h5::File& file, std::istream& line) {
  std::string name;
  line >> name;
  std::vector<Index> extents;
  Index size = 1;
  for (Index extent; line >> extent;) {
    if (extent < 0 || extent > 1000 || (size *= std::max<Index>(extent, 1)) > 10000) return;
    extents.push_back(extent);
  }
  const Shape shape(extents);
  file.write<T>(name, shape, std::vector<T>(static_cast<std::size_t>(shape.size()), T(0.5)));
}

}  // namespace

run::h5::File described_h5(const std::filesystem::path& path, std::string_view lines,
                           std::size_t user_block) {
  run::h5::File file = run::h5::File::create(path, user_block);
  std::istringstream all{std::string(lines)};
  for (std::string text; std::getline(all, text);) {
    std::istringstream line(text);
    std::string kind, object, name, value;
    line >> kind;
    if (kind == "floats") {
      add_dataset<float>(file, line);
    } else if (kind == "bytes") {
      add_dataset<std::uint8_t>(file, line);
    } else if (kind == "whole") {
      add_dataset<std::int32_t>(file, line);
    } else if (std::int64_t number = 0; kind == "int" && line >> object >> name >> number) {
      file.set_attribute(object, name, number);
    } else if (kind == "text" && std::getline(line >> object >> name >> std::ws, value)) {
      file.set_attribute(object, name, value);
    }
  }
  return file;
}

bool is_made_up_h5(std::string_view bytes) {
#ifdef DIFFTAPE_FUZZ
  return bytes.starts_with("\x89HDF");
#else
  static_cast<void>(bytes);
  return false;
#endif
}

}  // namespace difftape::fuzz
