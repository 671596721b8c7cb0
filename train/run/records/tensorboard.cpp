#include "train/run/records/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace difftape::run {
namespace {

namespace fs = std::filesystem;

std::string little_endian(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
  return text;
}

std::string varint(std::uint64_t number) {
  std::string text;
  for (; number >= 0x80; number >>= 7) text += static_cast<char>(number | 0x80);
  return text + static_cast<char>(number);
}

// Fields of a message. A field begins with 8 * number + type; the type is 0 for a varint, 1 for 8
// bytes, 2 for bytes with a length, 5 for 4 bytes.
std::string integer_field(int number, Index value) {
  return varint(8 * number) + varint(static_cast<std::uint64_t>(value));
}
std::string bytes_field(int number, std::string_view bytes) {
  return varint(8 * number + 2) + varint(bytes.size()) + std::string(bytes);
}
std::string double_field(int number, double value) {
  return varint(8 * number + 1) + little_endian(std::bit_cast<std::uint64_t>(value), 8);
}
std::string float_field(int number, float value) {
  return varint(8 * number + 5) + little_endian(std::bit_cast<std::uint32_t>(value), 4);
}

/// Returns the masked CRC-32C of TensorFlow: rotated and shifted, so that data may hold checksums.
std::string checksum(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
  }
  return little_endian(std::rotr(~crc, 15) + 0xA282EAD8U, 4);
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Returns a record with an Event: wall_time = 1, step = 2, and these fields.
std::string record(Index step, const std::string& fields) {
  const std::string event = double_field(1, seconds_since_1970()) + integer_field(2, step) + fields;
  const std::string length = little_endian(event.size(), 8);
  return length + checksum(length) + event + checksum(event);
}

/// Returns the first records of a file: file_version = 3, and session_log = 7 with status = START,
/// which voids events of this step and later ones.
std::string head(Index step) {
  return record(0, bytes_field(3, "brain.Event:2")) +
         record(step, bytes_field(7, integer_field(1, 1)));
}

fs::path new_file(const fs::path& dir) {
  std::array<char, 256> host{};
  const bool named = gethostname(host.data(), host.size() - 1) == 0;
  const std::string name =
      fmt::format("events.out.tfevents.{}.{}.", static_cast<std::int64_t>(seconds_since_1970()),
                  named ? host.data() : "unknown");
  for (int n = 0;; ++n)
    if (fs::path path = dir / (name + std::to_string(n)); !system::is_there(path)) return path;
}

}  // namespace

void EventWriter::write(Index step, const Metrics& metrics) {
  std::string summary;  // of values = 1: tag = 1, simple_value = 2
  for (const auto& [name, value] : metrics)
    summary += bytes_field(1, bytes_field(1, name) + float_field(2, static_cast<float>(value)));
  if (!file_) file_.emplace(new_file(dir_)).append(head(step));
  file_->append(record(step, bytes_field(5, summary)));
}

}  // namespace difftape::run
