#include "train/study/compare/listing.h"

#include <fmt/format.h>

#include <cmath>

#include "train/study/compare/quantities.h"
#include "train/study/compare/tables.h"

namespace difftape::study {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kListed[] = {"train_loss", "val_loss", "loss_spikes", "grad_spikes"};

}  // namespace

system::Table run_list() {
  system::Table table{{{"", "run", true}, {"", "state", true}, {"", "step"}}, {}};
  for (const char* name : kListed) {
    const Column& column = quantity(name).column;
    table.columns.push_back({column.group, column.head});
  }
  table.columns.push_back({"", "updated", true});
  return table;
}

std::vector<std::string> run_line(const RunRecord& run, const std::string& name) {
  const run::RunStatus& status = run.status;
  std::vector<std::string> cells{name, std::string(to_string(status.state)),
                                 fmt::format("{}/{}", status.step, status.steps)};
  for (const char* each : kListed)
    cells.push_back(written(run.number(each), quantity(each).column.format));
  cells.push_back(status.updated);
  return cells;
}

Json run_object(const RunRecord& run) {
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

}  // namespace difftape::study
