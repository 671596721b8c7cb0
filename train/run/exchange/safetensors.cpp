#include "train/run/exchange/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/bf16.h"
#include "core/error.h"
#include "train/system/file_kind.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::run::safetensors {

static_assert(std::endian::native == std::endian::little,
              "elements are copied without a byte swap");

namespace {

using Json = nlohmann::json;
using Size = std::uint64_t;

constexpr const char* kMetadata = "__metadata__";
constexpr Size kLengthBytes = 8;
constexpr Size kLargestHeader = 100'000'000;  // the limit of the reference library
constexpr Size kNone = std::numeric_limits<Size>::max();

/// Types and their bytes per element.
constexpr std::pair<std::string_view, Size> kDtypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
    {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
    {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8}};

Size bytes_of(std::string_view dtype) {
  const auto found = std::ranges::find(kDtypes, dtype, &std::pair<std::string_view, Size>::first);
  return found == std::end(kDtypes) ? kNone : found->second;
}

Size length_in(std::string_view bytes) {
  Size length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  return length;
}

}  // namespace

std::string Entry::shape_text() const { return fmt::format("({})", fmt::join(shape, ", ")); }

std::string to_bytes(const Metadata& metadata, std::vector<NamedTensor> tensors) {
  std::ranges::sort(tensors, {}, &NamedTensor::name);
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  Size end = 0;
  for (const auto& [name, value] : tensors) {
    const Size begin = std::exchange(end, end + value.values().size_bytes());
    header[name] = {{"dtype", kRealDtype},
                    {"shape", std::vector<Index>(value.shape().begin(), value.shape().end())},
                    {"data_offsets", {begin, end}}};
  }
  std::string json = system::json_text(header);
  json.append((kLengthBytes - json.size() % kLengthBytes) % kLengthBytes, ' ');
  const Size length = json.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  bytes.reserve(kLengthBytes + length + end);
  bytes += json;
  for (const auto& [name, value] : tensors) {
    const std::span<const std::byte> numbers = std::as_bytes(value.values());
    bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size());
  }
  return bytes;
}

namespace {

/// Quotes a name from a file, which may contain any bytes.
std::string quoted(const std::string& name) {
  return system::printable(name) == name ? "'" + name + "'" : system::printable(name);
}

}  // namespace

/// Parses the bytes of a file.
class Reader {
 public:
  explicit Reader(File& file) : file_(file), bytes_(*file.bytes_) {}

  void read() {
    const Json header = header_of_file();
    for (const auto& [name, value] : header.items())
      if (name == kMetadata)
        add_metadata(value);
      else
        add_tensor(name, value);
    require_no_holes();
  }

 private:
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> problem, Args&&... args) const {
    if (!holds) {
      throw DataError(fmt::format("{} is not a valid safetensors file: {}; export it again",
                                  file_.path_.string(),
                                  fmt::format(problem, std::forward<Args>(args)...)));
    }
  }

  Json header_of_file() {
    system::refuse_other(file_.path_, bytes_, "a safetensors file");
    require(bytes_.size() >= kLengthBytes, "it has {} bytes, fewer than the length of a header",
            bytes_.size());
    const Size length = length_in(bytes_), left = bytes_.size() - kLengthBytes;
    require(length <= kLargestHeader, "its header would be {} bytes long, but must be at most {}",
            length, kLargestHeader);
    require(length <= left, "its header is cut off: {} of {} bytes", left, length);
    data_ = bytes_.substr(kLengthBytes + length);
    const std::string_view text = bytes_.substr(kLengthBytes, length);
    require(text.starts_with('{'), "its header does not begin with '{{'");
    try {
      return system::parse_json_without_duplicates(text);
    } catch (const Json::exception& error) {
      require(false, "its header is not JSON: {}", error.what());
    } catch (const DataError& error) {
      require(false, "its header is ambiguous: {}", error.what());
    }
    return {};
  }

  void add_metadata(const Json& texts) {
    require(texts.is_object(), "its metadata is not a JSON object");
    for (const auto& [name, text] : texts.items()) {
      require(text.is_string(), "metadata entry {} is not a string", quoted(name));
      file_.metadata_[name] = text.get<std::string>();
    }
  }

  void add_tensor(const std::string& name, const Json& value) {
    const auto need = [&]<class... Args>(bool holds, fmt::format_string<Args...> problem,
                                         Args&&... args) {
      if (holds) return;
      require(false, "tensor {}: {}", quoted(name),
              fmt::format(problem, std::forward<Args>(args)...));
    };
    need(value.is_object() && value.size() == 3 && value.contains("dtype") &&
             value.contains("shape") && value.contains("data_offsets"),
         "must have exactly dtype, shape and data_offsets");
    const Json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
    Entry entry;
    need(dtype.is_string() && bytes_of(dtype.get<std::string>()) != kNone,
         "the dtype {} is unknown", system::json_text(dtype));
    entry.dtype = dtype.get<std::string>();
    Size size = bytes_of(entry.dtype);
    need(shape.is_array(), "its shape is not a list");
    for (const Json& extent : shape) {
      need(extent.is_number_unsigned() && extent.get<Size>() <= kLargestExtent,
           "an extent of its shape is {}", system::json_text(extent));
      entry.shape.push_back(extent.get<Index>());
      need(extent == 0 || size <= kLargestExtent / extent.get<Size>(), "its shape is too large");
      size *= extent.get<Size>();
    }
    need(offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
             offsets[1].is_number_unsigned(),
         "its data_offsets are not two non-negative integers");
    const Size begin = offsets[0], end = offsets[1];
    need(begin <= end && end <= data_.size(),
         "its data_offsets [{}, {}] are outside the {} bytes of data", begin, end, data_.size());
    need(end - begin == size, "it has {} bytes, but its shape {} of {} needs {}", end - begin,
         entry.shape_text(), entry.dtype, size);
    entry.bytes = data_.substr(begin, size);
    file_.tensors_[name] = std::move(entry);
  }

  /// Requires that the tensors cover all data without overlap.
  void require_no_holes() const {
    std::vector<std::pair<Size, Size>> ranges;
    for (const auto& [name, entry] : file_.tensors_) {
      const auto begin = static_cast<Size>(entry.bytes.data() - data_.data());
      ranges.emplace_back(begin, begin + entry.bytes.size());
    }
    std::ranges::sort(ranges);
    Size reached = 0;
    for (const auto& [begin, end] : ranges) {
      require(begin >= reached, "tensors overlap at byte {} of the data", begin);
      require(begin == reached, "bytes {} to {} of the data belong to no tensor", reached, begin);
      reached = end;
    }
    require(reached == data_.size(), "its tensors end at byte {} of the data, which has {}",
            reached, data_.size());
  }

  static constexpr Size kLargestExtent = std::numeric_limits<Index>::max();
  File& file_;
  std::string_view bytes_, data_;
};

File File::read(const std::filesystem::path& path) {
  File file;
  file.path_ = path;
  file.bytes_ = std::make_shared<const std::string>(system::read_text(path));
  Reader(file).read();
  return file;
}

std::string why_not_read(std::string_view dtype) {
  if (dtype == "F32" || dtype == "BF16" || dtype == "F16" || dtype == kRealDtype) return "";
  if (dtype == "F64") return "single precision would round it; import with difftape-f64";
  return "only F32, F64, F16 and BF16 are supported; convert it";
}

namespace {

/// Returns the value of a half-precision number: 1 bit of sign, 5 of exponent, 10 of fraction.
real from_f16_bits(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const auto sign = static_cast<real>(bits >> 15 == 0 ? 1 : -1);
  if (exponent == 31)
    return sign * (fraction == 0 ? std::numeric_limits<real>::infinity()
                                 : std::numeric_limits<real>::quiet_NaN());
  const int digits = exponent == 0 ? fraction : fraction + 1024;
  return sign * std::ldexp(static_cast<real>(digits), std::max(exponent, 1) - 25);
}

}  // namespace

void copy_numbers(const Entry& from, std::span<real> into) {
  const auto convert = [&]<class Stored>(Stored, auto number_of) {
    for (size_t i = 0; i < into.size(); ++i) {
      Stored stored;
      std::memcpy(&stored, from.bytes.data() + i * sizeof(Stored), sizeof(Stored));
      into[i] = number_of(stored);
    }
  };
  const auto as_is = [](auto stored) { return static_cast<real>(stored); };
  if (from.dtype == "F32") return convert(float{}, as_is);
  if (from.dtype == "F64") return convert(double{}, as_is);
  if (from.dtype == "F16") return convert(std::uint16_t{}, from_f16_bits);
  convert(std::uint16_t{}, from_bf16_bits);
}

}  // namespace difftape::run::safetensors
