#pragma once
// Reads event files as TensorBoard does, and checks the checksums of their records.

#include <bit>
#include <cstring>

#include "tests/support/test.h"

namespace difftape::test {

/// Computes the masked CRC-32C of event files bit by bit.
inline std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
  }
  return std::rotr(~crc, 15) + 0xA282EAD8U;
}

/// Returns the payloads of the complete records of a file, and checks each.
inline std::vector<std::string> records(const fs::path& file) {
  const std::string bytes = contents(file);
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, size);
    return value;
  };
  std::vector<std::string> found;
  for (std::size_t at = 0; at + 12 <= bytes.size();) {
    const std::uint64_t size = number(at, 8);
    EXPECT_EQ(number(at + 8, 4), masked_crc(std::string_view(bytes).substr(at, 8)));
    if (at + 16 + size > bytes.size()) break;
    found.push_back(bytes.substr(at + 12, size));
    EXPECT_EQ(number(at + 12 + size, 4), masked_crc(found.back()));
    at += 16 + size;
  }
  return found;
}

/// A field of a protocol buffer: a number (type 0), or bytes (8 of type 1, any of 2, 4 of 5).
struct ProtoField {
  std::uint64_t number = 0, type = 0, value = 0;
  std::string bytes;
};

inline std::vector<ProtoField> fields_of(std::string_view message) {
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
  };
  std::vector<ProtoField> fields;
  while (at < message.size()) {
    const std::uint64_t key = varint();
    ProtoField field{key >> 3, key & 7, 0, {}};
    if (field.type == 0) {
      field.value = varint();
    } else {
      const std::uint64_t size = field.type == 1 ? 8 : field.type == 5 ? 4 : varint();
      EXPECT_LE(size, message.size() - at);
      field.bytes = message.substr(at, size);
      at += size;
    }
    fields.push_back(field);
  }
  return fields;
}

struct Event {
  std::int64_t step = 0;
  bool start = false;  ///< voids this step and later ones
  std::map<std::string, float> numbers;
};

inline Event event_of(const std::string& payload) {
  Event event;
  for (const ProtoField& field : fields_of(payload)) {
    if (field.number == 2) event.step = static_cast<std::int64_t>(field.value);
    if (field.number == 7) event.start = true;
    if (field.number != 5) continue;
    for (const ProtoField& value : fields_of(field.bytes)) {
      std::string tag;
      for (const ProtoField& part : fields_of(value.bytes)) {
        if (part.number == 1) tag = part.bytes;
        if (part.number == 2) std::memcpy(&event.numbers[tag], part.bytes.data(), sizeof(float));
      }
    }
  }
  return event;
}

inline std::vector<Event> events_in(const fs::path& file) {
  std::vector<Event> events;
  for (const std::string& payload : records(file)) events.push_back(event_of(payload));
  return events;
}

/// Returns the event files of a directory in the order of their names, in which TensorBoard reads
/// them.
inline std::vector<fs::path> event_files(const fs::path& dir) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(dir))
    if (entry.path().filename().string().starts_with("events.out.tfevents."))
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace difftape::test
