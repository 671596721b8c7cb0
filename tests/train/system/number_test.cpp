#include "train/system/number.h"

#include "tests/support/test.h"

namespace difftape::system {
namespace {

TEST(Numbers, of_one_format_have_one_nan) {
  EXPECT_EQ(number(0.05, "{:+.4f}"), "+0.0500");
  EXPECT_EQ(number(-kNaN, "{:.4f}"), "nan");
  EXPECT_EQ(number(kNaN, "{:.4f}", "-"), "-");
}

TEST(ExactNumbers, follow_the_rules_of_their_file) {
  EXPECT_EQ(json_number(-kNaN) + json_number(-kInfinity), "NaN-Infinity");
  EXPECT_EQ(csv_number(0.1) + csv_number(kNaN), "0.1");
  EXPECT_EQ(yaml_number(1e-5), "1.0e-05");
  EXPECT_EQ(scientific_number(0.001), "1e-03");
}

TEST(ShortNumber, has_no_trailing_zeros) {
  EXPECT_EQ(short_number(3e-4), "3e-4");
  EXPECT_EQ(short_number(0.003), "3e-3");
  EXPECT_EQ(short_number(0.03), "0.03");
  EXPECT_EQ(short_number(120000), "120000");
  EXPECT_EQ(short_number(1.25e7), "1.25e7");
  EXPECT_EQ(short_number(0), "0");
}

TEST(DescribeDuration, is_short) {
  EXPECT_EQ(describe_duration(0.4), "0s");
  EXPECT_EQ(describe_duration(59.6), "1m00s");
  EXPECT_EQ(describe_duration(72), "1m12s");
  EXPECT_EQ(describe_duration(7500), "2h05m");
  EXPECT_EQ(describe_duration(kInfinity), "-");
}

TEST(DescribeBytes, has_two_digits_or_three) {
  EXPECT_EQ(describe_bytes(0), "0 B");
  EXPECT_EQ(describe_bytes(999), "999 B");
  EXPECT_EQ(describe_bytes(1000), "1.0 kB");
  EXPECT_EQ(describe_bytes(37.4e6), "37 MB");
  EXPECT_EQ(describe_bytes(881e9), "881 GB");
  EXPECT_EQ(describe_bytes(999.6e9), "1.0 TB");
}

}  // namespace
}  // namespace difftape::system
