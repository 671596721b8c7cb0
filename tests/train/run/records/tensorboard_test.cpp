// Tests the bytes of event files against tensorflow/core/lib/io/record_writer.h and the .proto
// files. read_with_tensorboard.py checks them with TensorBoard itself.
#include "train/run/records/tensorboard.h"

#include "tests/train/run/records/event_file.h"

namespace difftape::run {
namespace {

using testing::Pair;

constexpr const char* kFirst = "events.out.tfevents.000001.difftape";

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
  EventWriter writer(dir.path(), "seed: 1\nlr: 2");
  writer.write(300, {{"train/loss", 2.5}, {"heads", std::vector{1.0, 2.0}}}, {});
  const std::vector<std::string> found = test::records(dir / kFirst);
  ASSERT_EQ(found.size(), 4u);
  using namespace std::string_literals;
  const std::string step = "\x10\xAC\x02"s;  // 300
  EXPECT_EQ(timeless(found[0]), "\x10\0\x1A\x0D"s + "brain.Event:2");
  EXPECT_EQ(timeless(found[1]), step + "\x3A\x02\x08\x01"s);
  EXPECT_EQ(timeless(found[2]), step + "\x2A\x32\x0A\x30\x0A\x06"s + "config" +
                                    "\x42\x1C\x08\x07\x12\0\x42\x16"s + "    seed: 1\n    lr: 2\n" +
                                    "\x4A\x08\x0A\x06\x0A\x04"s + "text");
  EXPECT_EQ(timeless(found[3]),
            step + "\x2A\x13\x0A\x11\x0A\x0A"s + "train/loss" + "\x15\0\0\x20\x40"s);
}

TEST(EventWriter, creates_a_file_at_the_first_event_of_each_start) {
  const ScratchDir dir;
  EventWriter first(dir.path(), "");
  EXPECT_TRUE(fs::is_empty(dir.path()));
  first.write(1, {{"a", 1}}, {});
  first.write(2, {{"a", 2}}, {});
  put(dir / "events.out.tfevents.000041.difftape", "");
  put(dir / "events.out.tfevents.hostile", "");
  EventWriter(dir.path(), "").write(2, {{"a", 3}}, {});
  EXPECT_EQ(test::events_in(dir / kFirst).size(), 5u);
  const auto second = test::events_in(dir / "events.out.tfevents.000042.difftape");
  ASSERT_EQ(second.size(), 4u);
  EXPECT_TRUE(second[1].start);
  EXPECT_EQ(second[1].step, 2);
  EXPECT_THAT(second[3].numbers, ElementsAre(Pair("a", 3)));
}

TEST(EventWriter, writes_a_histogram_with_equal_buckets) {
  const ScratchDir dir;
  std::vector<double> values;
  for (int i = 0; i <= 60; ++i) values.push_back(i / 2.0);  // two values per bucket, such as (0, 1]
  values.insert(values.end(), {kInfinity, -kInfinity, std::nan("")});
  EventWriter(dir.path(), "")
      .write(1, {{"attn/lambda/0", 15}},
             {{"attn/lambda/0", values},
              {"one", std::vector{0.25, 0.25}},
              {"none", std::vector{std::nan("")}}});
  const test::Event event = test::events_in(dir / kFirst).back();
  ASSERT_EQ(event.histograms.size(), 2u);
  const test::Histogram& many = event.histograms.at("attn/lambda/0/histogram");
  ASSERT_EQ(many.limits.size(), 30u);
  EXPECT_EQ(many.limits.front(), 1);
  EXPECT_EQ(many.limits.back(), 30);
  std::vector<double> counts(30, 2);
  counts[0] = 3;  // the first bucket includes 0
  EXPECT_EQ(many.counts, counts);
  EXPECT_EQ(many.min, 0);
  EXPECT_EQ(many.max, 30);
  EXPECT_EQ(many.num, 61);
  EXPECT_EQ(many.sum, 915);
  EXPECT_EQ(many.sum_squares, 18452.5);
  const test::Histogram& one = event.histograms.at("one/histogram");
  EXPECT_THAT(one.limits, ElementsAre(0.25));
  EXPECT_THAT(one.counts, ElementsAre(2));
}

TEST(EventWriter, keeps_values_that_are_not_finite) {
  const ScratchDir dir;
  EventWriter(dir.path(), "")
      .write(1, {{"up", kInfinity}, {"nan", std::nan("")}, {"huge", 1e300}}, {});
  const auto numbers = test::events_in(dir / kFirst).back().numbers;
  EXPECT_EQ(numbers.at("up"), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(numbers.at("nan")));
  EXPECT_EQ(numbers.at("huge"), std::numeric_limits<float>::infinity()) << "beyond a float";
}

TEST(EventWriter, reports_a_missing_directory) {
  const ScratchDir dir;
  EventWriter writer(dir / "gone", "");
  EXPECT_THAT([&] { writer.write(1, {}, {}); },
              ThrowsMessage<OutputError>("cannot write " + (dir / "gone" / kFirst).string() +
                                         ": No such file or directory"));
}

}  // namespace
}  // namespace difftape::run
