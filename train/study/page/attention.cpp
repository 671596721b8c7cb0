#include "train/study/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "train/run/records/metrics.h"
#include "train/study/figures/png.h"
#include "train/study/page/html.h"
#include "train/system/number.h"

namespace difftape::study::page {

namespace {

using Json = nlohmann::ordered_json;

/// Heads on the whole page, about 35 kB each.
constexpr std::size_t kHeads = 16;
constexpr int kShades = 255;
constexpr Index kLongest = 64;  ///< tokens

/// The (T, T) maps of one head: a query a row, a key a column.
struct Head {
  Index tokens = 0;
  std::vector<std::span<const real>> maps;  ///< map; or A1, A2, what is applied
};

Head head_of(const Tensor& layer, Index head) {  // layer: (H, S, T, T)
  const Index maps = layer.shape()[1], tokens = layer.shape()[3];
  const auto size = static_cast<std::size_t>(tokens * tokens);
  Head result{tokens, {}};
  for (Index map = 0; map < maps; ++map) {
    const auto begin = static_cast<std::size_t>(head * maps + map) * size;
    result.maps.push_back(layer.values().subspan(begin, size));
  }
  return result;
}

/// Mean attention to the first token, in the map that is applied.
double first_token(const Head& head) {
  double sum = 0;
  for (Index query = 0; query < head.tokens; ++query) {
    sum += head.maps.back()[static_cast<std::size_t>(query * head.tokens)];
  }
  return sum / static_cast<double>(head.tokens);
}

std::vector<Index> selected_heads(const Tensor& layer, std::size_t wanted) {
  Index largest = 0;
  for (Index head = 1; head < layer.shape()[0]; ++head) {
    if (first_token(head_of(layer, head)) > first_token(head_of(layer, largest))) largest = head;
  }
  std::vector<Index> heads = {largest};
  if (largest != 0 && wanted > 1) heads.push_back(0);
  return heads;
}

std::vector<svg::Rgb> palette(svg::Rgb (*color)(double), double low) {
  std::vector<svg::Rgb> colors;
  for (int i = 0; i < kShades; ++i) colors.push_back(color(low + (1 - low) * i / (kShades - 1.0)));
  return colors;
}

int shade(double share) {
  return static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * (kShades - 1)));
}

/// Keys after the query stay transparent. `share` maps an attention to its place on the scale.
template <class F>
std::vector<int> shades_of(Index tokens, F&& share) {
  std::vector<int> shades;
  for (Index query = 0; query < tokens; ++query) {
    for (Index key = 0; key < tokens; ++key) {
      const double value = key > query ? 0 : share(static_cast<std::size_t>(query * tokens + key));
      shades.push_back(key > query || !std::isfinite(value) ? -1 : shade(value));
    }
  }
  return shades;
}

std::string picture(const std::string& name, const std::string& alt, Index tokens,
                    const std::vector<int>& shades, const std::vector<svg::Rgb>& colors) {
  return fmt::format(
      "<div><p>{}</p><img class=\"map\" width=\"{}\" height=\"{}\" alt=\"{}\" src=\"{}\"></div>\n",
      name, tokens, tokens, escape_html(alt),
      png_data_uri(static_cast<int>(tokens), shades, colors));
}

std::string pictures(const Head& head, const std::string& whose) {
  static const std::vector<svg::Rgb> kMap = palette(svg::sequential, 0);
  static const std::vector<svg::Rgb> kDifference = palette(svg::diverging, -1);
  const auto map = [&](std::size_t i, const char* name) {
    return picture(
        name, fmt::format("{}: {}, queries down, keys across", whose, name), head.tokens,
        shades_of(head.tokens, [&](std::size_t at) { return std::sqrt(head.maps[i][at]); }), kMap);
  };
  if (head.maps.size() < 3) return map(0, "attention");
  const auto difference = [&](std::size_t at) {
    const double signed_part = head.maps[0][at] - head.maps[1][at];
    return 0.5 + 0.5 * std::copysign(std::sqrt(std::abs(signed_part)), signed_part);
  };
  return map(0, "A1") + map(1, "A2") +
         picture("A1 − A2", whose + ": A1 minus A2, queries down, keys across", head.tokens,
                 shades_of(head.tokens, difference), kDifference) +
         map(2, "applied");
}

/// Keys up to the query, row by row, as 16-bit little-endian numbers: 65535 is an attention of 1.
std::string packed(const Head& head, std::span<const real> map) {
  std::vector<unsigned char> bytes;
  for (Index query = 0; query < head.tokens; ++query) {
    for (Index key = 0; key <= query; ++key) {
      const double value = map[static_cast<std::size_t>(query * head.tokens + key)];
      const auto level = static_cast<unsigned>(
          std::isfinite(value) ? std::lround(65535 * std::clamp(value, 0.0, 1.0)) : 0);
      bytes.push_back(static_cast<unsigned char>(level & 255));
      bytes.push_back(static_cast<unsigned char>(level >> 8));
    }
  }
  return base64(bytes);
}

std::string figure(const std::string& arm, const RunRecord& run, const run::AttentionMaps& maps,
                   std::size_t wanted, Json& data) {
  const Tensor& layer = maps.layers.back();
  std::string html;
  for (const Index index : selected_heads(layer, wanted)) {
    const Head head = head_of(layer, index);
    const std::string whose =
        fmt::format("{}, layer {}, head {}", arm, maps.layers.size() - 1, index);
    html += fmt::format(
        "<figure class=\"attention\"><figcaption>{} <span class=\"muted\">layer {}, head {}, step "
        "{}, first token {:.3f}</span> <button type=\"button\" class=\"csv\" data-head=\"{}\" "
        "hidden>CSV</button></figcaption>\n<div class=\"maps\">\n{}</div></figure>\n",
        escape_html(arm), maps.layers.size() - 1, index, maps.step,
        system::shown(first_token(head)), data.size(), pictures(head, whose));
    Json values = Json::array();
    for (const auto& map : head.maps) values.push_back(packed(head, map));
    data.push_back({{"run", run.name},
                    {"layer", maps.layers.size() - 1},
                    {"head", index},
                    {"step", maps.step},
                    {"tokens", head.tokens},
                    {"maps", std::move(values)}});
  }
  return html;
}

bool has_maps(const Tensor& layer) {
  const Shape& shape = layer.shape();
  return shape.rank() == 4 && shape[0] > 0 && (shape[1] == 1 || shape[1] == 3) && shape[2] > 0 &&
         shape[2] == shape[3] && shape[3] <= kLongest;
}

/// The first replicate with maps of at least one layer.
const RunRecord* run_with_maps(const Condition& condition, std::optional<run::AttentionMaps>& maps,
                               std::string& notes) {
  const auto note = [&](const std::string& text) {
    notes += fmt::format("<p class=\"notice\">{}</p>\n", escape_html(text));
  };
  for (const RunRecord* run : condition.runs) {
    const std::filesystem::path path = run->dir / "metrics.h5";
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    try {
      maps = run::read_attention_maps(path);
    } catch (const Error& error) {
      note(error.what());
    }
    if (!maps || maps->layers.empty()) continue;
    if (has_maps(maps->layers.back())) return run;
    note(fmt::format("{}: attention_maps are {}; need (heads, 1 or 3, T, T) with T up to {}",
                     path.string(), maps->layers.back().shape().str(), kLongest));
  }
  return nullptr;
}

}  // namespace

AttentionSection attention_section(const Input& input) {
  AttentionSection section{"", Json::array()};
  const std::size_t wanted = 2 * input.study.arms.size() <= kHeads ? 2 : 1;
  std::string notes;
  for (const Arm& arm : input.study.arms) {
    const Condition* condition = shown_condition(arm, input.lr);
    if (!condition || section.data.size() + wanted > kHeads) continue;
    std::optional<run::AttentionMaps> maps;
    const RunRecord* run = run_with_maps(*condition, maps, notes);
    if (run) section.html += figure(arm.name, *run, *maps, wanted, section.data);
  }
  section.html = notes + section.html;
  return section;
}

}  // namespace difftape::study::page
