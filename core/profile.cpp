#include "core/profile.h"

#include <algorithm>
#include <cassert>
#include <chrono>

namespace difftape::profile {

namespace {

std::int64_t nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

bool is_op(const Event& event) {
  return event.category == Category::forward || event.category == Category::backward;
}

Row& find_or_add_row(std::vector<Row>& rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &Row::name);
  return found == rows.end() ? rows.emplace_back(Row{std::string(name), {}, {}}) : *found;
}

/// Returns the milliseconds of each event without the events that it directly contains.
std::vector<double> own_ms(std::span<const Event> events) {
  std::vector<double> own;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < events.size(); ++i) {
    while (!open.empty() && events[open.back()].end <= events[i].begin) open.pop_back();
    own.push_back(static_cast<double>(events[i].end - events[i].begin) / 1e6);
    if (!open.empty()) own[open.back()] -= own[i];
    open.push_back(i);
  }
  return own;
}

}  // namespace

Recorder::Recorder() : start_(nanoseconds()) {}

std::int64_t Recorder::now() const { return nanoseconds() - start_; }

std::size_t Recorder::open(Category category, const char* name, std::string_view scope) {
  events_.push_back({category, name, std::string(scope), last_ = now()});
  return events_.size() - 1;
}

void Recorder::close(std::size_t event) {
  assert(events_[event].end == 0);
  events_[event].end = last_ = now();
}

void Recorder::since_last(Category category, const char* name, std::string_view scope) {
  events_.push_back({category, name, std::string(scope), last_, now()});
  last_ = events_.back().end;
}

Table table_of(std::span<const Event> events) {
  const std::vector<double> own = own_ms(events);
  Table table;
  std::int64_t step_end = 0, phase_end = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    const double whole = static_cast<double>(event.end - event.begin) / 1e6;
    if (event.category == Category::step) {
      ++table.steps;
      table.ms += whole;
      step_end = event.end;
    }
    if (event.begin >= step_end || event.begin < phase_end) continue;
    if (event.category == Category::phase) {
      Cost& cost = find_or_add_row(table.phases, event.name).forward;
      ++cost.calls;
      cost.ms += whole;
      phase_end = event.end;
    } else if (is_op(event)) {
      Row& row = find_or_add_row(table.ops, event.name);
      Cost& cost = event.category == Category::forward ? row.forward : row.backward;
      ++cost.calls;
      cost.ms += own[i];
    } else {
      table.rest_ms += own[i];
    }
  }
  std::ranges::stable_sort(table.ops, std::greater<>(), &Row::ms);
  return table;
}

}  // namespace difftape::profile
