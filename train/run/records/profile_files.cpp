#include "train/run/records/profile_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::run {

namespace {

using Json = nlohmann::ordered_json;
using profile::Category;

Json arguments_of(const profile::Event& event) {
  if (event.scope.empty()) return Json::object();
  return {{event.category == Category::step ? "step" : "layer", event.scope}};
}

}  // namespace

std::string trace_json(std::span<const profile::Event> events) {
  Json all = Json::array();
  const auto name_thread = [&](const char* what, const char* name) {
    all.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", name}}}});
  };
  name_thread("process_name", "difftape");
  name_thread("thread_name", "main");
  for (const profile::Event& event : events) {
    all.push_back({{"name", event.name},
                   {"cat", to_string(event.category)},
                   {"ph", "X"},
                   {"ts", static_cast<double>(event.begin) / 1e3},
                   {"dur", static_cast<double>(event.end - event.begin) / 1e3},
                   {"pid", 1},
                   {"tid", 1},
                   {"args", arguments_of(event)}});
  }
  return system::json_text(Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(all)}}) + "\n";
}

std::string profile_text(const profile::Table& table, double step_tokens, double step_flops) {
  const double steps = static_cast<double>(table.steps);
  const auto calls = [&](const profile::Cost& cost) {
    return fmt::format("{:.4g}", static_cast<double>(cost.calls) / steps);
  };
  system::Table text{{{"", "op", true},
                      {"forward", "calls"},
                      {"forward", "ms"},
                      {"backward", "calls"},
                      {"backward", "ms"},
                      {"", "ms a step"},
                      {"", "%"}},
                     {}};
  const auto add = [&](const std::string& name, std::vector<std::string> cells, double ms) {
    cells.insert(cells.begin(), name);
    cells.push_back(fmt::format("{:.3f}", ms / steps));
    cells.push_back(fmt::format("{:.1f}", 100 * ms / table.ms));
    text.rows.push_back(std::move(cells));
  };
  for (const profile::Row& op : table.ops) {
    std::vector<std::string> cells;
    for (const profile::Cost& cost : {op.forward, op.backward}) {
      cells.push_back(cost.calls == 0 ? "-" : calls(cost));
      cells.push_back(cost.calls == 0 ? "-" : fmt::format("{:.3f}", cost.ms / steps));
    }
    add(op.name, cells, op.ms());
  }
  for (const profile::Row& phase : table.phases)
    add(phase.name, {calls(phase.forward), "", "", ""}, phase.ms());
  add("rest", {"", "", "", ""}, table.rest_ms);
  add("step", {"", "", "", ""}, table.ms);
  const double seconds = table.ms / 1e3 / steps;
  return fmt::format("profile of {} steps: {} tokens/s, {:.1f} GFLOP/s\n{}", table.steps,
                     system::grouped(static_cast<Index>(step_tokens / seconds)),
                     step_flops / seconds / 1e9, to_text(text));
}

}  // namespace difftape::run
