#include "train/app/length_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "train/app/commands.h"
#include "train/run/inference/model.h"
#include "train/run/inference/validation.h"
#include "train/stats/descriptive.h"
#include "train/stats/interval.h"
#include "train/study/figures/drawing.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

namespace svg = study::svg;
using Names = std::vector<std::string>;

/// Returns the overrides for a run with this configuration at another length.
Names overrides_at(const LengthGridRequest& request, const run::Config& config, Index length) {
  Names all = request.overrides;
  all.push_back(fmt::format("data.seq_len={}", length));
  if (length > config.model.max_seq_len) all.push_back(fmt::format("model.max_seq_len={}", length));
  const Index trained = config.data.seq_len;
  if (request.rope_scaling != "none" && length > trained) {
    all.push_back("model.rope_scaling.rope_type=" + request.rope_scaling);
    all.push_back(fmt::format("model.rope_scaling.factor={}",
                              static_cast<double>(length) / static_cast<double>(trained)));
    if (request.rope_scaling == "yarn")
      all.push_back(fmt::format("model.rope_scaling.original_seq_len={}", trained));
  }
  return all;
}

std::string arm_of(const run::Config& config) {
  return config.run.arm.empty() ? config.run.name : config.run.arm;
}

/// Returns the last part of a path that is not empty.
std::string run_name(const std::filesystem::path& path) {
  return system::without_slash(path).filename().string();
}

/// Appends the cells of one model at one length.
void measure(const std::string& model, const Names& overrides, std::optional<Index> batches,
             LengthGrid& grid) {
  const run::NamedModel named = run::open_model(model, overrides);
  const run::Config& config = named.config;
  const auto data = make_dataset(config.data, config.model, config.run.seed);
  const Index available = data->val_batches();
  const run::Validation found =
      validate(*named.model, *data,
               {.batches = batches ? std::min(*batches, available)
                                   : batches_to_validate(config, config.train.steps, available),
                .precision = precision_of(config)});
  GridCell cell{run_name(model), arm_of(config), static_cast<Index>(config.run.seed),
                config.data.seq_len};
  for (const auto& [name, value] : found.metrics) {
    constexpr std::string_view prefix = "task/accuracy/";
    if (!name.starts_with(prefix)) continue;
    const auto slash = name.find('/', prefix.size());
    cell.row = name.substr(prefix.size(), slash - prefix.size());
    cell.column = name.substr(slash + 1);
    cell.accuracy = value;
    grid.push_back(cell);
  }
}

/// Returns the different values of a member in the order of their first cells.
template <class Value>
std::vector<Value> values_of(const LengthGrid& grid, Value GridCell::*member) {
  std::vector<Value> values;
  for (const GridCell& cell : grid)
    if (std::ranges::find(values, cell.*member) == values.end()) values.push_back(cell.*member);
  return values;
}

/// Returns the mean over columns of each seed, by seed.
std::map<Index, double> by_seed(const LengthGrid& grid, const std::string& arm,
                                const std::string& row, Index length) {
  std::map<Index, std::vector<double>> cells;
  for (const GridCell& cell : grid)
    if (cell.arm == arm && cell.row == row && cell.length == length)
      cells[cell.seed].push_back(cell.accuracy);
  std::map<Index, double> means;
  for (const auto& [seed, accuracies] : cells) means[seed] = stats::mean(accuracies);
  return means;
}

/// Returns "+0.123 ± 0.045", the difference of two arms over the seeds of both; "" without any.
std::string difference_text(const std::map<Index, double>& arm,
                            const std::map<Index, double>& reference) {
  std::vector<double> a, b;
  for (const auto& [seed, accuracy] : arm) {
    const auto other = reference.find(seed);
    if (other == reference.end()) continue;
    a.push_back(accuracy);
    b.push_back(other->second);
  }
  if (a.empty()) return "";
  const stats::Interval difference = stats::paired_difference(a, b).difference;
  if (!std::isfinite(difference.half_width)) return fmt::format("{:+.3f}", difference.mean);
  return fmt::format("{:+.3f} ± {:.3f}", difference.mean, difference.half_width);
}

/// Returns a color from white, for accuracy 0, to blue, for 1.
std::string shade(double accuracy) {
  const auto mix = [&](int full) {
    return static_cast<int>(std::lround(255 + accuracy * (full - 255)));
  };
  return fmt::format("fill=\"#{:02x}{:02x}{:02x}\"", mix(0x00), mix(0x72), mix(0xb2));
}

constexpr double kCellWidth = 44, kCellHeight = 22, kLeft = 44, kHead = 22, kFoot = 34;

/// Draws one heat map with its upper left corner at `corner`.
void draw_map(svg::Drawing& drawing, const LengthGrid& grid, svg::Point corner,
              const std::string& title) {
  const auto lengths = values_of(grid, &GridCell::length);
  const auto columns = values_of(grid, &GridCell::column);
  const std::string small = std::string(svg::kMuted) + " font-size=\"9\" text-anchor=";
  drawing.text({corner.x + kLeft, corner.y + 12}, title,
               std::string(svg::kText) + " font-size=\"11\"");
  for (size_t y = 0; y < lengths.size(); ++y) {
    const double top = corner.y + kHead + kCellHeight * static_cast<double>(y);
    drawing.text({corner.x + kLeft - 5, top + 14}, fmt::format("{}", lengths[y]),
                 small + "\"end\"");
    for (size_t x = 0; x < columns.size(); ++x) {
      std::vector<double> runs;
      for (const GridCell& cell : grid)
        if (cell.length == lengths[y] && cell.column == columns[x]) runs.push_back(cell.accuracy);
      if (runs.empty()) continue;
      const double accuracy = stats::mean(runs),
                   left = corner.x + kLeft + kCellWidth * static_cast<double>(x);
      drawing.rect({left, top}, kCellWidth - 1, kCellHeight - 1, shade(accuracy));
      drawing.text({left + kCellWidth / 2, top + 14}, fmt::format("{:.2f}", accuracy),
                   fmt::format("fill=\"{}\" font-size=\"9\" text-anchor=\"middle\"",
                               accuracy > 0.6 ? "#ffffff" : "#1c2126"));
    }
  }
  const double bottom = corner.y + kHead + kCellHeight * static_cast<double>(lengths.size());
  for (size_t x = 0; x < columns.size(); ++x)
    drawing.text({corner.x + kLeft + kCellWidth * (static_cast<double>(x) + 0.5), bottom + 11},
                 columns[x], small + "\"middle\"");
}

}  // namespace

LengthGrid measure_lengths(const LengthGridRequest& request) {
  throw_if<UsageError>(request.batches && *request.batches < 1,
                       "--batches: expected an integer of at least 1, got {}",
                       request.batches.value_or(0));
  std::vector<run::Config> configs;
  for (const std::string& model : request.models) {
    configs.push_back(run::open_model(model, request.overrides).config);
    const run::Config& config = configs.back();
    throw_if<UsageError>(
        !is_task(config.data.type),
        "{}: the data is {}, but must be a generated task (needles, mqar or backcopy); for text, "
        "use 'difftape eval --positions'",
        model, to_string(config.data.type));
    const auto is_same = [&](const run::Config& other) {
      return arm_of(other) == arm_of(config) && other.run.seed == config.run.seed;
    };
    throw_if<UsageError>(std::ranges::count_if(configs, is_same) > 1,
                         "{}: is a second run of arm '{}' with seed {}, but must be the only one; "
                         "leave one of them out",
                         model, arm_of(config), config.run.seed);
  }
  LengthGrid grid;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const run::Config& config = configs[i];
    const std::string& model = request.models[i];
    for (const Index length : request.lengths) {
      say(fmt::format("{}, length {}", model, length));
      measure(model, overrides_at(request, config, length), request.batches, grid);
    }
  }
  return grid;
}

std::string length_table(const LengthGrid& grid) {
  const Names arms = values_of(grid, &GridCell::arm);
  system::Table table{{{"", "arm", true},
                       {"", "level", true},
                       {"", "runs"},
                       {"", "length"},
                       {"accuracy", "mean"},
                       {"accuracy", "difference to " + arms.front()}},
                      {}};
  for (const std::string& arm : arms)
    for (const std::string& row : values_of(grid, &GridCell::row))
      for (const Index length : values_of(grid, &GridCell::length)) {
        const auto means = by_seed(grid, arm, row, length);
        if (means.empty()) continue;
        std::vector<double> runs;
        for (const auto& [seed, accuracy] : means) runs.push_back(accuracy);
        table.rows.push_back(
            {arm, row, fmt::format("{}", runs.size()), fmt::format("{}", length),
             fmt::format("{:.3f}", stats::mean(runs)),
             arm == arms.front()
                 ? ""
                 : difference_text(means, by_seed(grid, arms.front(), row, length))});
      }
  return to_text(table);
}

std::string length_grid_svg(const LengthGrid& grid) {
  const Names arms = values_of(grid, &GridCell::arm), rows = values_of(grid, &GridCell::row);
  const auto count = [](const auto& values) { return static_cast<double>(values.size()); };
  const double width = kLeft + kCellWidth * count(values_of(grid, &GridCell::column)) + 12;
  const double height = kHead + kCellHeight * count(values_of(grid, &GridCell::length)) + kFoot;
  svg::Drawing drawing(width * count(arms), "Accuracy by sequence length");
  for (size_t y = 0; y < rows.size(); ++y)
    for (size_t x = 0; x < arms.size(); ++x) {
      LengthGrid part;
      std::ranges::copy_if(grid, std::back_inserter(part), [&](const GridCell& cell) {
        return cell.arm == arms[x] && cell.row == rows[y];
      });
      draw_map(drawing, part, {width * static_cast<double>(x), height * static_cast<double>(y)},
               arms[x] + ", " + rows[y]);
    }
  drawing.height = height * count(rows);
  return drawing.standalone(2);
}

std::string length_grid_csv(const LengthGrid& grid) {
  std::string csv = std::string(kLengthGridHeader) + "\n";
  for (const GridCell& cell : grid)
    csv += system::csv_line(std::vector<std::string>{
        cell.run, cell.arm, fmt::format("{}", cell.seed), fmt::format("{}", cell.length), cell.row,
        cell.column, system::csv_number(cell.accuracy)});
  return csv;
}

}  // namespace difftape::app
