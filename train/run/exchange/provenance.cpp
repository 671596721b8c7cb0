#include "train/run/exchange/provenance.h"

#include <charconv>

#include "core/error.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/system/json.h"

namespace difftape::run {

namespace {

constexpr const char *kLayout = "difftape_layout", *kConfig = "difftape_config",
                     *kStep = "difftape_step", *kData = "difftape_data";

Index step_in(const std::string& text) {
  Index step = -1;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, step);
  return error == std::errc() && stopped == end ? step : -1;
}

}  // namespace

safetensors::Metadata to_metadata(const NamedModel& named, WeightLayout layout) {
  return {{"format", "pt"},
          {kLayout, std::string(to_string(layout))},
          {kConfig, to_yaml(named.config)},
          {kStep, std::to_string(named.step)},
          {kData, system::json_text(named.data)}};
}

std::optional<Provenance> provenance_of(const safetensors::File& file,
                                        const std::vector<std::string>& overrides) {
  const safetensors::Metadata& metadata = file.metadata();
  if (!metadata.contains(kConfig)) return std::nullopt;
  const auto require = [&file](bool holds, const char* key) {
    if (holds) return;
    throw DataError(fmt::format("{}: {} of its metadata is missing or wrong; export it again",
                                file.path().string(), key));
  };
  for (const char* key : {kLayout, kStep, kData}) require(metadata.contains(key), key);
  const auto layout = from_string<WeightLayout>(metadata.at(kLayout));
  require(layout.has_value(), kLayout);
  const Index step = step_in(metadata.at(kStep));
  require(step >= 0, kStep);
  const nlohmann::json data = system::json_or_discarded(metadata.at(kData));
  require(!data.is_discarded(), kData);
  return Provenance{
      *layout, config_from_yaml(metadata.at(kConfig), file.path().string(), overrides), step, data};
}

}  // namespace difftape::run
