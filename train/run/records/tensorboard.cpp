#include "train/run/records/tensorboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <protozero/pbf_builder.hpp>
#include <span>
#include <string_view>

namespace difftape::run {
namespace {

namespace fs = std::filesystem;

// The written fields, with the names and numbers of the .proto files.
enum class Event : protozero::pbf_tag_type {
  wall_time = 1,  // seconds since 1970
  step = 2,
  file_version = 3,
  summary = 5,
  session_log = 7
};
enum class SessionLog : protozero::pbf_tag_type { status = 1 };
enum class Summary : protozero::pbf_tag_type { value = 1 };
enum class Value : protozero::pbf_tag_type {
  tag = 1,
  simple_value = 2,
  histo = 5,
  tensor = 8,
  metadata = 9
};
enum class SummaryMetadata : protozero::pbf_tag_type { plugin_data = 1 };
enum class PluginData : protozero::pbf_tag_type { plugin_name = 1 };
enum class TensorProto : protozero::pbf_tag_type { dtype = 1, shape = 2, string_val = 8 };
enum class HistogramProto : protozero::pbf_tag_type {
  min = 1,
  max = 2,
  num = 3,
  sum = 4,
  sum_squares = 5,
  bucket_limit = 6,
  bucket = 7
};

constexpr std::int32_t kStart = 1;   // SessionLog: voids events of this step and later ones
constexpr std::int32_t kString = 7;  // DataType
constexpr std::size_t kBuckets = 30;
constexpr std::string_view kPrefix = "events.out.tfevents.";

template <class T>
using Message = protozero::pbf_builder<T>;

std::string little_endian(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
  return text;
}

/// Returns the masked CRC-32C of TensorFlow: rotated and shifted, so that data may hold checksums.
std::string checksum(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const auto sum = static_cast<std::uint32_t>(crc.checksum());
  return little_endian(((sum >> 15) | (sum << 17)) + 0xA282EAD8U, 4);
}

std::string record(std::string_view event) {
  const std::string length = little_endian(event.size(), 8);
  return length + checksum(length) + std::string(event) + checksum(event);
}

/// Returns the record of an event with the current time; `fill` adds its contents.
template <class F>
std::string event_record(Index step, F&& fill) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::string bytes;
  Message<Event> event(bytes);
  event.add_double(Event::wall_time, now.count());
  event.add_int64(Event::step, step);
  fill(event);
  return record(bytes);
}

void add_config(Message<Summary>& summary, const std::string& config) {
  std::string markdown;  // indented lines are shown verbatim
  for (std::size_t begin = 0; begin < config.size();) {
    const std::size_t end = std::min(config.find('\n', begin), config.size());
    markdown += fmt::format("    {}\n", std::string_view(config).substr(begin, end - begin));
    begin = end + 1;
  }
  Message<Value> value(summary, Summary::value);
  value.add_string(Value::tag, "config");
  {
    Message<TensorProto> tensor(value, Value::tensor);
    tensor.add_enum(TensorProto::dtype, kString);
    tensor.add_message(TensorProto::shape, std::string());  // rank 0
    tensor.add_bytes(TensorProto::string_val, markdown);
  }
  Message<SummaryMetadata> metadata(value, Value::metadata);
  Message<PluginData> plugin(metadata, SummaryMetadata::plugin_data);
  plugin.add_string(PluginData::plugin_name, "text");
}

/// Adds a histogram with equal buckets from the smallest to the largest value; one if all are
/// equal.
void add_histogram(Message<Summary>& summary, const std::string& tag,
                   const std::vector<double>& values) {
  const auto [low, high] = std::ranges::minmax(values);
  const std::size_t buckets = low == high ? 1 : kBuckets;
  std::vector<double> limits(buckets), counts(buckets);
  for (std::size_t i = 0; i < buckets; ++i)
    limits[i] = std::lerp(low, high, static_cast<double>(i + 1) / static_cast<double>(buckets));
  for (const double value : values) {
    const auto limit = std::ranges::lower_bound(limits, value);
    counts[limit - limits.begin()] += 1;
  }
  Message<Value> value(summary, Summary::value);
  value.add_string(Value::tag, tag);
  Message<HistogramProto> histogram(value, Value::histo);
  histogram.add_double(HistogramProto::min, low);
  histogram.add_double(HistogramProto::max, high);
  histogram.add_double(HistogramProto::num, static_cast<double>(values.size()));
  histogram.add_double(HistogramProto::sum, std::accumulate(values.begin(), values.end(), 0.0));
  histogram.add_double(HistogramProto::sum_squares,
                       std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
  histogram.add_packed_double(HistogramProto::bucket_limit, limits.begin(), limits.end());
  histogram.add_packed_double(HistogramProto::bucket, counts.begin(), counts.end());
}

/// Returns the path of the next event file, one above the largest number in the directory.
fs::path next_file(const fs::path& dir) {
  std::int64_t last = 0;
  for (const fs::path& path : system::paths_in(dir)) {
    const std::string name = path.filename().string();
    std::int64_t number = 0;
    if (name.starts_with(kPrefix))
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
    last = std::max(last, number);
  }
  return dir / fmt::format("{}{:06}.difftape", kPrefix, last + 1);
}

/// Returns the first records of a file: version, start at `step`, configuration.
std::string head(Index step, const std::string& config) {
  return event_record(0,
                      [](Message<Event>& event) {
                        event.add_string(Event::file_version, "brain.Event:2");
                      }) +
         event_record(step,
                      [](Message<Event>& event) {
                        Message<SessionLog> session(event, Event::session_log);
                        session.add_enum(SessionLog::status, kStart);
                      }) +
         event_record(step, [&config](Message<Event>& event) {
           Message<Summary> summary(event, Event::summary);
           add_config(summary, config);
         });
}

}  // namespace

void EventWriter::write(Index step, const Metrics& metrics, const Metrics& distributions) {
  if (!file_) file_.emplace(next_file(dir_)).append(head(step, config_));
  file_->append(event_record(step, [&](Message<Event>& event) {
    Message<Summary> summary(event, Event::summary);
    for (const auto& [name, logged] : metrics) {
      const double* number = std::get_if<double>(&logged);
      if (number == nullptr) continue;
      Message<Value> value(summary, Summary::value);
      value.add_string(Value::tag, name);
      value.add_float(Value::simple_value, static_cast<float>(*number));
    }
    for (const auto& [name, logged] : distributions) {
      std::vector<double> values = std::get<std::vector<double>>(logged);
      std::erase_if(values, [](double value) { return !std::isfinite(value); });
      if (!values.empty()) add_histogram(summary, name + "/histogram", values);
    }
  }));
}

}  // namespace difftape::run
