#include "train/study/compare/listing.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/quantities.h"
#include "train/study/compare/tables.h"

namespace difftape::study {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kListed[] = {"train_loss", "val_loss", "loss_spikes", "grad_spikes"};

Json object_of(const RunRecord& run) {
  const run::RunStatus& status = run.status;
  Json object{{"dir", run.dir.string()}, {"name", run.name},
              {"arm", run.arm},          {"state", to_string(status.state)},
              {"step", status.step},     {"steps", status.steps},
              {"diverged_in", nullptr},  {"updated", status.updated}};
  if (status.diverged) object["diverged_in"] = status.diverged->quantity;
  for (const char* each : kListed) {
    const double number = run.number(each);
    object[each] = std::isnan(number) ? Json() : Json(number);
  }
  return object;
}

}  // namespace

ListedRun listed(const RunRecord& run) {
  const run::RunStatus& status = run.status;
  std::vector<std::string> cells{run.dir.string(), std::string(to_string(status.state)),
                                 fmt::format("{}/{}", status.step, status.steps)};
  for (const char* each : kListed)
    cells.push_back(written(run.number(each), quantity(each).column.format));
  cells.push_back(status.updated);
  return {cells, object_of(run)};
}

system::Table table_of(std::span<const ListedRun> runs) {
  system::Table table{{{"", "run", true}, {"", "state", true}, {"", "step"}}, {}};
  for (const char* name : kListed) {
    const Column& column = quantity(name).column;
    table.columns.push_back({column.group, column.head});
  }
  table.columns.push_back({"", "updated", true});
  for (const ListedRun& run : runs) table.rows.push_back(run.cells);
  return table;
}

RunList list_runs(std::span<const fs::path> dirs) {
  RunList list;
  for (const fs::path& dir : run_directories(dirs)) {
    try {
      list.runs.push_back(listed(load_run(dir)));
    } catch (const Error& error) {
      list.left_out.emplace_back(error.what());
    }
  }
  return list;
}

}  // namespace difftape::study
