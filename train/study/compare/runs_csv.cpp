#include "train/study/compare/runs_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/error.h"
#include "train/study/compare/quantities.h"
#include "train/system/files.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::vector<std::string>>;

constexpr const char* kRemedy = "restore the file or give the directories of its runs";
constexpr std::string_view kOfDomain = "val_loss/";

/// Columns that every line needs.
constexpr const char* kNeeded[] = {"name",  "arm",        "seed",           "lr", "state", "step",
                                   "steps", "parameters", "tokens_per_step"};

const std::string& field_of(const Strings& line, std::string_view column) {
  static const std::string none;
  const auto found = line.find(column);
  return found == line.end() ? none : found->second;
}

/// Returns the values of a run, without its configuration and domains, by column.
Strings fields_of(const Row& run, const fs::path& folder) {
  const run::RunStatus& status = run.status;
  Strings line = run.facts;
  line.merge(Strings{{"name", run.name},
                     {"arm", run.arm},
                     {"seed", fmt::to_string(run.seed)},
                     {"lr", system::csv_number(run.lr)},
                     {"state", std::string(to_string(status.state))},
                     {"dir", run.dir.lexically_proximate(folder).string()}});
  if (status.state != run::RunState::queued || status.step > 0)
    line.merge(Strings{{"step", fmt::to_string(status.step)},
                       {"steps", fmt::to_string(status.steps)},
                       {"parameters", fmt::to_string(status.parameters)},
                       {"tokens_per_step", fmt::to_string(status.tokens_per_step)}});
  if (status.diverged)
    line.merge(Strings{{"diverged_step", fmt::to_string(status.diverged->step)},
                       {"diverged_in", status.diverged->quantity},
                       {"diverged_op", status.diverged->op}});
  for (const Quantity& quantity : quantities()) {
    if (quantity.is_of_seed()) continue;
    const double number = run.number(quantity);
    if (!run.logged(quantity) && std::isnan(number)) continue;
    line[quantity.name] = std::isnan(number) ? "nan" : fmt::to_string(number);  // never "-nan"
  }
  return line;
}

std::vector<std::string> fixed_columns() {
  std::vector<std::string> columns(std::begin(kNeeded), std::end(kNeeded));
  columns.insert(columns.end(), {"diverged_step", "diverged_in", "diverged_op"});
  for (const Quantity& quantity : quantities())
    if (!quantity.is_of_seed()) columns.emplace_back(quantity.name);
  return columns;
}

/// A line of a file, for errors that name both.
struct Line {
  const fs::path& file;
  const Strings& fields;

  const std::string& field(std::string_view column) const { return field_of(fields, column); }
  DataError wrong(std::string_view column, const std::string& need) const {
    return DataError(fmt::format("{}: run {}: {} is '{}', but must be {}; {}", file.string(),
                                 field("name"), column, field(column), need, kRemedy));
  }
  template <class T>
  T number(std::string_view column) const {
    if (const auto value = system::read_number<T>(field(column))) return *value;
    throw wrong(column, std::is_integral_v<T> ? "an integer" : "a number");
  }
};

run::RunStatus status_of(const Line& line) {
  run::RunStatus status;
  const auto state = from_string<run::RunState>(line.field("state"));
  if (!state)
    throw line.wrong("state", fmt::format("one of {}", fmt::join(names<run::RunState>(), ", ")));
  status.state = *state;
  if (*state == run::RunState::queued && line.field("step").empty()) return status;
  status.step = line.number<Index>("step");
  status.steps = line.number<Index>("steps");
  status.parameters = line.number<Index>("parameters");
  status.tokens_per_step = line.number<Index>("tokens_per_step");
  if (!line.field("diverged_step").empty())
    status.diverged = {line.number<Index>("diverged_step"), line.field("diverged_in"), "",
                       line.field("diverged_op")};
  return status;
}

void read_numbers(const Line& line, Row& row) {
  row.numbers.assign(quantities().size(), kNaN);
  for (std::size_t i = 0; i < row.numbers.size(); ++i) {
    const Quantity& quantity = quantities()[i];
    if (quantity.is_of_seed() || line.field(quantity.name).empty()) continue;
    row.numbers[i] = line.number<double>(quantity.name);
    // A diverged run has values of metrics that it did not log: its final loss is the cap.
    if (!row.diverged() || !quantity.of_diverged) row.logged_metrics.insert(quantity.metric);
  }
  for (const auto& [column, text] : line.fields)
    if (column.starts_with(kOfDomain) && !text.empty())
      row.domains[column.substr(kOfDomain.size())] = line.number<double>(column);
}

Row row_of(const Line& line) {
  const std::string &name = line.field("name"), &dir = line.field("dir");
  Row row{.dir = line.file.parent_path() / (dir.empty() ? name : dir),
          .file = line.file.string(),
          .name = name,
          .arm = line.field("arm"),
          .lr = line.number<double>("lr"),
          .seed = line.number<std::uint64_t>("seed"),
          .status = status_of(line)};
  if (!(row.lr > 0) || std::isinf(row.lr)) throw line.wrong("lr", "a number above 0");
  read_numbers(line, row);
  row.config["optim.lr"] = line.field("lr");
  for (const auto& [column, text] : line.fields)
    if (column.find('.') != column.npos && !column.starts_with(kOfDomain) && !text.empty())
      row.config[column] = text;
  for (const std::string& column : fact_columns())
    if (const std::string& fact = line.field(column); !fact.empty()) row.facts[column] = fact;
  return row;
}

/// Returns the digest of the data of a run and, after a slash, of separate validation data; empty
/// if unknown, as for a generated task.
std::string data_digest(const Row& row) {
  const std::string data = row.fact("data"), val_data = row.fact("val_data");
  return val_data.empty() ? data : data + "/" + val_data;
}

void require_same_data(std::span<const Row> a, std::span<const Row> b) {
  const auto data_of = [](std::span<const Row> rows) {
    std::set<std::string> digests;
    for (const Row& row : rows)
      if (row.complete()) digests.insert(data_digest(row));
    digests.erase("");
    return digests;
  };
  const std::set<std::string> of_a = data_of(a), of_b = data_of(b);
  const bool shared =
      std::ranges::any_of(of_b, [&](const std::string& each) { return of_a.contains(each); });
  if (shared || of_a.empty() || of_b.empty()) return;
  throw DataError(fmt::format(
      "{}: its data has the digest {}, but must have the digest of {}, {}; report them separately",
      b.front().file, *of_b.begin(), a.front().file, *of_a.begin()));
}

/// Returns a quantity in which two rows of one run differ; speed may differ, and a file of an
/// earlier version lacks some.
const Quantity* differing_quantity(const Row& a, const Row& b) {
  const auto differs = [&](const Quantity& each) {
    const double x = a.number(each), y = b.number(each);
    return each.metric != quantity("tokens_per_sec").metric && !std::isnan(x) && !std::isnan(y) &&
           x != y;
  };
  const auto found = std::ranges::find_if(quantities(), differs);
  return found == quantities().end() ? nullptr : &*found;
}

/// Adds a run unless an equal one is known.
void pool(const Row& row, std::vector<Row>& runs) {
  for (const Row& known : runs) {
    const bool same =
        std::tie(known.arm, known.lr, known.seed) == std::tie(row.arm, row.lr, row.seed) &&
        data_digest(known) == data_digest(row) && differing_keys(known, row).empty();
    if (!same) continue;
    const Quantity* quantity = differing_quantity(known, row);
    if (quantity == nullptr) return;
    throw DataError(fmt::format(
        "{}: run {} has the {} {}, but the same run in {} has {}; give only one of the two files",
        row.file, row.name, quantity->label, row.number(*quantity), known.file,
        known.number(*quantity)));
  }
  runs.push_back(row);
}

}  // namespace

std::string runs_csv(std::span<const Row> rows, const fs::path& folder) {
  std::set<std::string> domains, keys;
  for (const Row& row : rows) {
    for (const auto& [domain, loss] : row.domains) domains.insert(domain);
    for (const auto& [key, value] : row.config) keys.insert(key);
  }
  std::vector<std::string> columns = fixed_columns();
  for (const std::string& domain : domains) columns.push_back(std::string(kOfDomain) + domain);
  const std::vector<std::string> facts = fact_columns();
  columns.insert(columns.end(), facts.begin(), facts.end());
  columns.emplace_back("dir");
  columns.insert(columns.end(), keys.begin(), keys.end());
  std::string text = system::csv_line(columns);
  for (const Row& row : rows) {
    Strings line = fields_of(row, folder);
    for (const auto& [domain, loss] : row.domains)
      line[std::string(kOfDomain) + domain] = fmt::to_string(loss);
    line.insert(row.config.begin(), row.config.end());
    text += system::csv_line(
        mapped(columns, [&](const std::string& column) { return field_of(line, column); }));
  }
  return text;
}

namespace {

/// Returns the lines of a file that a spreadsheet may have saved: without a byte order mark, with
/// any ends of lines, and without empty lines.
Lines saved_lines(const fs::path& file) {
  std::string text = system::read_text(file);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (text.find('\n') == text.npos) std::ranges::replace(text, '\r', '\n');
  Lines lines = system::read_csv(text);
  std::erase_if(lines, [](const auto& line) { return line.size() == 1 && line[0].empty(); });
  return lines;
}

bool has_semicolons(const Lines& lines) {
  return !lines.empty() && lines[0].size() == 1 &&
         lines[0][0].find(";tokens_per_step") != std::string::npos;
}

}  // namespace

bool is_runs_csv(const fs::path& file) {
  if (!system::is_there(file)) return false;
  const Lines lines = saved_lines(file);
  return has_semicolons(lines) ||
         (!lines.empty() && std::ranges::all_of(kNeeded, [&](const char* column) {
           return std::ranges::find(lines[0], column) != lines[0].end();
         }));
}

std::vector<Row> read_runs_csv(const fs::path& file) {
  const Lines lines = saved_lines(file);
  throw_if<DataError>(has_semicolons(lines),
                      "{}:1: its fields are separated by semicolons, but must be separated by "
                      "commas; save it as comma-separated values with decimal points",
                      file.string());
  for (const char* column : kNeeded) {
    if (!lines.empty() && std::ranges::find(lines[0], column) != lines[0].end()) continue;
    throw DataError(
        fmt::format("{} has no column '{}', but must be the runs.csv of a sweep; give "
                    "such a file, or the directories of its runs",
                    file.string(), column));
  }
  std::vector<Row> rows;
  std::set<fs::path> dirs;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].size() != lines[0].size())
      throw DataError(fmt::format("{}:{}: has {} fields, but must have {}, as the first line; {}",
                                  file.string(), i + 1, lines[i].size(), lines[0].size(), kRemedy));
    Strings fields;
    for (std::size_t column = 0; column < lines[0].size(); ++column)
      fields[lines[0][column]] = lines[i][column];
    const Row& row = rows.emplace_back(row_of({file, fields}));
    if (!dirs.insert(row.dir).second)
      throw DataError(fmt::format(
          "{}:{}: is a second line of run {}, but each run must have one line; remove one of them",
          file.string(), i + 1, row.name));
  }
  return rows;
}

std::vector<Row> pooled_runs(std::span<const fs::path> files, std::vector<std::string>& notes) {
  std::vector<Row> runs, first;
  for (const fs::path& file : files) {
    const std::vector<Row> rows = read_runs_csv(file);
    if (first.empty()) first = rows;
    require_same_data(first, rows);
    for (const Row& row : rows)
      if (row.complete()) pool(row, runs);
    const auto open = std::ssize(rows) - std::ranges::count_if(rows, &Row::complete);
    if (open > 0)
      notes.push_back(fmt::format("{}: {} of {} runs are not complete; not in the statistics",
                                  file.string(), open, rows.size()));
  }
  if (runs.empty() && !files.empty())
    throw MissingInput(fmt::format("{}: no run is complete; give a file with complete runs",
                                   files.front().string()));
  return runs;
}

}  // namespace difftape::study
