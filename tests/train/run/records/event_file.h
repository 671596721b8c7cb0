#pragma once
// Reads event files as TensorBoard does, and checks the checksums of their records.

#include <bit>
#include <protozero/pbf_reader.hpp>

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

struct Histogram {
  double min = 0, max = 0, num = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits, counts;
};

struct Event {
  std::int64_t step = 0;
  bool start = false;  ///< voids this step and later ones
  std::string version, config;
  std::map<std::string, float> numbers;
  std::map<std::string, Histogram> histograms;
};

inline Histogram histogram_in(protozero::pbf_reader message) {
  Histogram h;
  while (message.next()) {
    if (message.tag() >= 6) {
      std::vector<double>& list = message.tag() == 6 ? h.limits : h.counts;
      for (const double each : message.get_packed_double()) list.push_back(each);
    } else {
      double* const members[] = {&h.min, &h.max, &h.num, &h.sum, &h.sum_squares};
      double& member = *members[message.tag() - 1];  // before the message forgets its tag
      member = message.get_double();
    }
  }
  return h;
}

inline void read_value(protozero::pbf_reader value, Event& into) {
  std::string tag;
  while (value.next()) {
    if (value.tag() == 1)
      tag = value.get_string();
    else if (value.tag() == 2)
      into.numbers[tag] = value.get_float();
    else if (value.tag() == 5)
      into.histograms[tag] = histogram_in(value.get_message());
    else if (value.tag() == 8) {
      protozero::pbf_reader tensor = value.get_message();
      if (tensor.next(8)) into.config = tensor.get_string();
    } else
      value.skip();
  }
}

inline Event event_of(const std::string& payload) {
  Event event;
  protozero::pbf_reader message(payload);
  while (message.next()) {
    if (message.tag() == 2)
      event.step = message.get_int64();
    else if (message.tag() == 3)
      event.version = message.get_string();
    else if (message.tag() == 5) {
      protozero::pbf_reader summary = message.get_message();
      while (summary.next(1)) read_value(summary.get_message(), event);
    } else if (message.tag() == 7) {
      event.start = true;
      message.skip();
    } else
      message.skip();
  }
  return event;
}

inline std::vector<Event> events_in(const fs::path& file) {
  std::vector<Event> events;
  for (const std::string& payload : records(file)) events.push_back(event_of(payload));
  return events;
}

}  // namespace difftape::test
