#include "train/run/data/prepare/sentencepiece_model.h"

#include <cstdint>
#include <cstring>
#include <protozero/pbf_reader.hpp>
#include <vector>

namespace difftape::run {

namespace {

/// A unit of a double array, as darts-clone lays it out.
struct Unit {
  std::uint32_t bits;
  bool is_value() const { return bits >> 31 != 0; }
  bool has_leaf() const { return (bits >> 8 & 1) != 0; }
  std::uint32_t value() const { return bits & 0x7fffffff; }
  std::uint32_t offset() const { return bits >> 10 << ((bits & 1u << 9) >> 6); }
};

/// From every node all 256 children must lie within the array, and every value within the texts.
bool is_sound(const std::vector<Unit>& units, std::string_view texts) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (i > 0 && units[i].is_value()) continue;
    const std::size_t children = i ^ units[i].offset();
    if ((children | 0xff) >= units.size()) return false;
    if (units[i].has_leaf() && units[children].value() >= texts.size()) return false;
  }
  return true;
}

/// The size of the array in bytes, the array, texts that end with 0.
bool is_sound_table(std::string_view table) {
  std::uint32_t bytes = 0;
  if (table.empty()) return true;
  if (table.size() <= sizeof bytes) return false;
  std::memcpy(&bytes, table.data(), sizeof bytes);
  table.remove_prefix(sizeof bytes);
  if (bytes >= table.size() || bytes == 0 || bytes % sizeof(Unit) != 0 || table.back() != 0)
    return false;
  std::vector<Unit> units(bytes / sizeof(Unit));
  std::memcpy(units.data(), table.data(), bytes);
  return is_sound(units, table.substr(bytes));
}

}  // namespace

bool has_sound_tables(std::string_view model) {
  constexpr protozero::pbf_tag_type kNormalizer = 3, kDenormalizer = 5, kTable = 2;
  constexpr auto kLengthDelimited = protozero::pbf_wire_type::length_delimited;
  try {
    protozero::pbf_reader whole(model.data(), model.size());
    while (whole.next()) {
      const bool normalizes = whole.tag() == kNormalizer || whole.tag() == kDenormalizer;
      if (!normalizes || whole.wire_type() != kLengthDelimited) {
        whole.skip();
        continue;
      }
      protozero::pbf_reader normalizer = whole.get_message();
      while (normalizer.next(kTable, kLengthDelimited)) {
        const protozero::data_view table = normalizer.get_view();
        if (!is_sound_table({table.data(), table.size()})) return false;
      }
    }
  } catch (const protozero::exception&) {  // what the library may read on in another way
    return false;
  }
  return true;
}

}  // namespace difftape::run
