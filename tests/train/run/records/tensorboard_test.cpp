// Tests the bytes of event files against tensorflow/core/lib/io/record_writer.h and the .proto
// files. read_with_tensorboard.py checks them with TensorBoard itself.
#include "train/run/records/tensorboard.h"

#include <unistd.h>

#include "tests/train/run/records/event_file.h"

namespace difftape::run {
namespace {

using testing::Pair;

/// Returns a payload without the wall time at its beginning, which must not be 0.
std::string timeless(const std::string& payload) {
  EXPECT_EQ(payload[0], '\x09');
  EXPECT_NE(payload.substr(1, 8), std::string(8, '\0'));
  return payload.substr(9);
}

TEST(EventWriter, writes_the_records_of_the_format) {
  ASSERT_EQ(std::rotl(test::masked_crc("123456789") - 0xA282EAD8U, 15), 0xE3069283U)
      << "the check value of CRC-32C";
  const ScratchDir dir;
  EventWriter writer(dir.path());
  writer.write(300, {{"train/loss", 2.5}});
  const std::vector<std::string> found = test::records(test::event_files(dir.path()).at(0));
  ASSERT_EQ(found.size(), 3u);
  using namespace std::string_literals;
  const std::string step = "\x10\xAC\x02"s;  // 300
  EXPECT_EQ(timeless(found[0]), "\x10\0\x1A\x0D"s + "brain.Event:2");
  EXPECT_EQ(timeless(found[1]), step + "\x3A\x02\x08\x01"s);
  EXPECT_EQ(timeless(found[2]),
            step + "\x2A\x13\x0A\x11\x0A\x0A"s + "train/loss" + "\x15\0\0\x20\x40"s);
}

TEST(EventWriter, writes_a_summary_longer_than_127_bytes) {
  const ScratchDir dir;
  Metrics metrics;
  for (int i = 0; i < 40; ++i) metrics.emplace_back(fmt::format("metric/{}", i), i / 3.0);
  EventWriter(dir.path()).write(1, metrics);
  const auto numbers = test::events_in(test::event_files(dir.path()).at(0)).back().numbers;
  ASSERT_EQ(numbers.size(), 40u);
  EXPECT_EQ(numbers.at("metric/31"), static_cast<float>(31 / 3.0));
}

TEST(EventWriter, creates_a_file_at_the_first_event_of_each_start) {
  const ScratchDir dir;
  EventWriter first(dir.path());
  EXPECT_TRUE(fs::is_empty(dir.path()));
  first.write(1, {{"a", 1}});
  first.write(2, {{"a", 2}});
  EventWriter(dir.path()).write(2, {{"a", 3}});
  const std::vector<fs::path> files = test::event_files(dir.path());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(test::events_in(files[0]).size(), 4u);
  const auto second = test::events_in(files[1]);
  ASSERT_EQ(second.size(), 3u);
  EXPECT_TRUE(second[1].start);
  EXPECT_EQ(second[1].step, 2);
  EXPECT_THAT(second[2].numbers, ElementsAre(Pair("a", 3)));
}

TEST(EventWriter, names_files_by_time_host_and_number) {
  const ScratchDir dir;
  const auto before = static_cast<std::int64_t>(std::time(nullptr));
  for (int start = 0; start < 2; ++start) EventWriter(dir.path()).write(1, {{"a", 1}});
  std::string host(256, '\0');
  ASSERT_EQ(gethostname(host.data(), host.size()), 0);
  host.resize(host.find('\0'));
  for (const fs::path& file : test::event_files(dir.path())) {
    const std::string name = file.filename().string().substr(20);
    const std::int64_t seconds = std::stoll(name);
    EXPECT_GE(seconds, before);
    EXPECT_LE(seconds, before + 60);
    EXPECT_THAT(name, testing::AnyOf(fmt::format("{}.{}.0", seconds, host),
                                     fmt::format("{}.{}.1", seconds, host)));
  }
}

TEST(EventWriter, keeps_values_that_are_not_finite) {
  const ScratchDir dir;
  EventWriter(dir.path()).write(1, {{"up", kInfinity}, {"nan", std::nan("")}, {"huge", 1e300}});
  const auto numbers = test::events_in(test::event_files(dir.path()).at(0)).back().numbers;
  EXPECT_EQ(numbers.at("up"), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(numbers.at("nan")));
  EXPECT_EQ(numbers.at("huge"), std::numeric_limits<float>::infinity()) << "beyond a float";
}

TEST(EventWriter, reports_a_missing_directory) {
  const ScratchDir dir;
  EventWriter writer(dir / "gone");
  EXPECT_THAT([&] { writer.write(1, {}); },
              ThrowsMessage<OutputError>(
                  AllOf(StartsWith("cannot write " + (dir / "gone/events.out.tfevents.").string()),
                        EndsWith(": No such file or directory"))));
}

}  // namespace
}  // namespace difftape::run
