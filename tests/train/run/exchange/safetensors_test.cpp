// Tests the format against bytes of the reference library, and all rejected files.
#include "train/run/exchange/safetensors.h"

#include "tests/support/test.h"

namespace difftape::run::safetensors {
namespace {

using namespace std::string_literals;

/// File that safetensors 0.8.0 for Python writes for a (1, 3), b (2), metadata {"format": "pt"}.
const std::string kHeader =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,3],"data_offsets":[0,12]},)"
    R"("b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}} )";
const std::string kNumbers =
    "\x00\x00\x00\x00\x00\x00\x80\x3f\x00\x00\x80\x3e\x00\x00\xc0\x3f\x00\x00\x00\xc0"s;

std::string with_length(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

struct Safetensors : testing::Test {
  File read(const std::string& bytes) {
    put(dir / "x.safetensors", bytes);
    return File::read(dir / "x.safetensors");
  }
  /// Returns the error for a file with these bytes; empty if it is accepted.
  std::string refusal(const std::string& bytes) {
    return message_of<DataError>([&] { read(bytes); });
  }
  /// Returns the error for a header with one tensor "a" and this many bytes of data.
  std::string of_tensor(const std::string& value, size_t bytes = 4) {
    return refusal(with_length(R"({"a":)" + value + "}", std::string(bytes, 'x')));
  }
  /// Returns the error for one F32 tensor at these offsets.
  std::string of_offsets(const std::string& shape, const std::string& offsets, size_t bytes = 4) {
    return of_tensor(R"({"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}",
                     bytes);
  }

  ScratchDir dir;
};

TEST_F(Safetensors, writes_the_bytes_of_the_reference_library) {
  const std::vector<NamedTensor> tensors{
      {"b", Tensor::from({2}, std::vector<real>{1.5, -2})},
      {"a", Tensor::from({1, 3}, std::vector<real>{0, 1, 0.25})}};
  EXPECT_EQ(to_bytes({{"format", "pt"}}, tensors), with_length(kHeader, kNumbers));
}

TEST_F(Safetensors, reads_what_it_writes) {
  const File file = read(with_length(kHeader, kNumbers));
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  ASSERT_EQ(file.tensors().size(), 2U);
  const Entry& a = file.tensors().at("a");
  EXPECT_EQ(a.dtype, "F32");
  EXPECT_THAT(a.shape, ElementsAre(1, 3));
  std::vector<real> numbers(3);
  copy_numbers(a, numbers);
  EXPECT_THAT(numbers, ElementsAre(0, 1, 0.25));
}

TEST_F(Safetensors, reads_bf16_exactly_and_names_types_that_it_cannot_read) {
  const File file = read(with_length(R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})",
                                     "\x80\x3f\x49\xc0"s));
  std::vector<real> numbers(2);
  copy_numbers(file.tensors().at("a"), numbers);
  EXPECT_THAT(numbers, ElementsAre(1, -3.140625));
  EXPECT_EQ(why_not_read("BF16"), "");
  EXPECT_THAT(why_not_read("F64"), HasSubstr("difftape-f64"));
  EXPECT_THAT(why_not_read("I16"), HasSubstr("convert it"));
  EXPECT_EQ(of_tensor(R"({"dtype":"I16","shape":[2],"data_offsets":[0,4]})"), "")
      << "the file itself is valid";
}

// The values of np.array([...], "<u2").view(np.float16) in NumPy 2.
TEST_F(Safetensors, reads_f16_exactly) {
  const File file =
      read(with_length(R"({"a":{"dtype":"F16","shape":[8],"data_offsets":[0,16]}})",
                       "\x00\x3c\x48\xc2\x01\x00\xff\x03\x00\x04\xff\x7b\x00\xfc\x01\x7e"s));
  std::vector<real> numbers(8);
  copy_numbers(file.tensors().at("a"), numbers);
  EXPECT_TRUE(std::isnan(numbers.back()));
  numbers.pop_back();
  EXPECT_THAT(numbers, ElementsAre(1, -3.140625, 5.9604644775390625e-08, 6.097555160522461e-05,
                                   6.103515625e-05, 65504, -std::numeric_limits<real>::infinity()));
  EXPECT_EQ(why_not_read("F16"), "");
}

TEST_F(Safetensors, a_truncated_file_is_rejected) {
  const std::string whole = with_length(kHeader, kNumbers);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(refusal(whole.substr(0, size)), HasSubstr("is not a valid safetensors file"))
        << size;
  EXPECT_THAT(refusal(whole + "x"),
              HasSubstr("its tensors end at byte 20 of the data, which has 21"));
}

TEST_F(Safetensors, a_header_of_impossible_length_is_rejected_before_allocation) {
  std::string bytes = with_length(kHeader, kNumbers);
  const std::uint64_t longest = 100'000'000;
  for (const std::uint64_t length : {longest + 1, ~std::uint64_t{0}}) {
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_THAT(refusal(bytes), HasSubstr("must be at most 100000000"));
  }
  std::memcpy(bytes.data(), &longest, 8);
  EXPECT_THAT(refusal(bytes), HasSubstr("its header is cut off: 164 of 100000000 bytes"));
}

TEST_F(Safetensors, a_header_must_be_an_object_with_distinct_names) {
  EXPECT_THAT(refusal(with_length("", "")), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(refusal(with_length(" {}", "")), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(refusal(with_length("{", "")), HasSubstr("its header is not JSON"));
  EXPECT_THAT(refusal(with_length("{} {}", "")), HasSubstr("its header is not JSON"));
  EXPECT_THAT(refusal(with_length("{\"a\xff\":1}", "")), HasSubstr("its header is not JSON"));
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(refusal(with_length("{" + a + "," + a + "}", "1234")),
              HasSubstr("the key 'a' appears twice"));
  EXPECT_THAT(of_tensor(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
              HasSubstr("the key 'dtype' appears twice"));
  EXPECT_THAT(refusal(with_length(R"({"__metadata__":{"a":1}})", "")),
              HasSubstr("metadata entry 'a' is not a string"));
  EXPECT_THAT(refusal(with_length(R"({"__metadata__":[]})", "")), HasSubstr("not a JSON object"));
  EXPECT_EQ(refusal(with_length("{}", "")), "") << "no tensors";
}

TEST_F(Safetensors, a_header_nested_too_deeply_is_rejected) {
  const std::string deep(2'000'000, '[');
  EXPECT_THAT(of_tensor(R"({"dtype":)" + deep), HasSubstr("nested more than 64 levels deep"));
  EXPECT_THAT(of_tensor(R"({"dtype":"\")" + std::string(60, '[')), Not(HasSubstr("nested")))
      << "of what is in quotes nothing counts";
}

TEST_F(Safetensors, many_tensors_are_read_in_linear_time) {
  std::string header = "{";
  for (int i = 0; i < 200'000; ++i)
    header += fmt::format(R"({}"t{}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
                          i > 0 ? "," : "", i);
  EXPECT_EQ(read(with_length(header + "}", "")).tensors().size(), 200'000u);
}

TEST_F(Safetensors, control_characters_in_names_are_quoted) {
  EXPECT_THAT(refusal(with_length("{\"\\u001b[31m\\n../x\":{}}", "")),
              HasSubstr("tensor \"\\x1b[31m\\n../x\": must have exactly dtype"));
}

TEST_F(Safetensors, a_malformed_tensor_entry_is_rejected) {
  EXPECT_THAT(of_tensor("1"), HasSubstr("must have exactly dtype, shape and data_offsets"));
  EXPECT_THAT(of_tensor(R"({"dtype":"F32","shape":[1]})"), HasSubstr("must have exactly dtype"));
  EXPECT_THAT(of_tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1})"),
              HasSubstr("must have exactly dtype"));
  EXPECT_THAT(of_tensor(R"({"dtype":"f32","shape":[1],"data_offsets":[0,4]})"),
              AllOf(HasSubstr("tensor 'a'"), HasSubstr("the dtype \"f32\" is unknown")));
  EXPECT_THAT(of_tensor(R"({"dtype":4,"shape":[1],"data_offsets":[0,4]})"),
              HasSubstr("the dtype 4 is unknown"));
  EXPECT_THAT(of_offsets("1", "[0,4]"), HasSubstr("its shape is not a list"));
  for (const std::string extent : {"-1", "1.0", "1e0", "\"1\"", "9223372036854775808"})
    EXPECT_THAT(of_offsets("[" + extent + "]", "[0,4]"), HasSubstr("an extent of its shape is"));
  EXPECT_THAT(of_offsets("[4294967296,4294967296]", "[0,4]"), HasSubstr("its shape is too large"));
  EXPECT_THAT(of_offsets("[4611686018427387904]", "[0,0]"), HasSubstr("its shape is too large"));
  EXPECT_EQ(of_offsets("[4294967296,0,4294967296]", "[0,0]", 0), "") << "is empty";
}

TEST_F(Safetensors, invalid_offsets_are_rejected) {
  for (const std::string offsets : {"[0]", "[0,4,8]", "0", "[-4,0]", "[0,4.0]", "[null,4]"})
    EXPECT_THAT(of_offsets("[1]", offsets), HasSubstr("not two non-negative integers")) << offsets;
  for (const std::string offsets : {"[4,0]", "[0,8]", "[4,8]", "[0,18446744073709551615]"})
    EXPECT_THAT(of_offsets("[1]", offsets), HasSubstr("are outside the 4 bytes")) << offsets;
  EXPECT_THAT(of_offsets("[2]", "[0,4]"),
              HasSubstr("it has 4 bytes, but its shape (2) of F32 needs 8"));
  EXPECT_THAT(of_offsets("[1]", "[4,8]", 8),
              HasSubstr("bytes 0 to 4 of the data belong to no tensor"));
  EXPECT_EQ(of_offsets("[1]", "[0,4]"), "");
}

TEST_F(Safetensors, overlapping_tensors_and_gaps_are_rejected) {
  const auto two = [&](const std::string& second, size_t bytes) {
    return refusal(with_length(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":)"
                               R"({"dtype":"F32","shape":[1],"data_offsets":)" +
                                   second + "}}",
                               std::string(bytes, 'x')));
  };
  EXPECT_EQ(two("[4,8]", 8), "");
  EXPECT_THAT(two("[0,4]", 4), HasSubstr("tensors overlap at byte 0"));
  EXPECT_THAT(two("[2,6]", 6), HasSubstr("tensors overlap at byte 2"));
  EXPECT_THAT(two("[5,9]", 9), HasSubstr("bytes 4 to 5 of the data belong to no tensor"));
  EXPECT_THAT(two("[4,8]", 9), HasSubstr("its tensors end at byte 8 of the data, which has 9"));
}

TEST_F(Safetensors, a_changed_header_byte_is_rejected_or_harmless) {
  const std::string whole = with_length(kHeader, kNumbers);
  int refused = 0;
  for (size_t i = 0; i < whole.size() - kNumbers.size(); ++i) {
    for (const char change : {'\x01', '\x10', '\x80'}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ change);
      if (!refusal(bytes).empty()) {
        ++refused;
        continue;
      }
      size_t held = 0;
      const File file = read(bytes);
      for (const auto& [name, entry] : file.tensors()) held += entry.bytes.size();
      EXPECT_EQ(held, kNumbers.size()) << "byte " << i << " to " << bytes;
    }
  }
  EXPECT_GT(refused, 300) << "of 3 x 152 changes; the others change names";
}

TEST_F(Safetensors, a_missing_file_or_a_directory_is_missing_input) {
  EXPECT_THROW(File::read(dir / "gone.safetensors"), MissingInput);
  EXPECT_THROW(File::read(dir.path()), MissingInput);
}

}  // namespace
}  // namespace difftape::run::safetensors
