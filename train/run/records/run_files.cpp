#include "train/run/records/run_files.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "core/distributed.h"
#include "core/error.h"
#include "core/parallel.h"
#include "train/run/config/reader.h"
#include "train/run/records/metrics.h"
#include "train/system/files.h"
#include "train/system/json.h"

namespace difftape::run {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

RunState state_of_name(const std::string& name) {
  const auto state = from_string<RunState>(name);
  if (!state || *state == RunState::queued || *state == RunState::killed)
    throw std::domain_error(fmt::format(
        "state is \"{}\", but must be running, stopped, finished, diverged or failed", name));
  return *state;
}

/// Parses a JSON file and applies `use` to it. Turns any exception into a DataError.
template <class F>
auto parse_file(const fs::path& path, F&& use) {
  const std::string text = system::read_text(path);
  try {
    return use(system::parse_json(text));
  } catch (const std::exception& error) {
    throw DataError(fmt::format("{} is damaged: {}; restore the file or repeat the run",
                                path.string(), error.what()));
  }
}

void store_env(const fs::path& dir, const Json& env) {
  system::replace_text(dir / "env.json", system::json_text(env, 2) + "\n");
}

bool is_new(const fs::path& dir) {
  std::error_code error;
  return !fs::exists(dir, error) || (fs::is_directory(dir, error) && fs::is_empty(dir, error));
}

constexpr std::array<std::string_view, 7> kFirstFiles{
    "lock",         "config.yaml", "config.yaml.tmp", "env.json",
    "env.json.tmp", "stdout.log",  "status.json.tmp"};

bool belongs_to_a_start(const fs::path& path) {
  std::error_code error;
  if (!system::is_file(path)) return false;
  if (path.filename() == "metrics.jsonl") return fs::file_size(path, error) == 0;
  return std::ranges::find(kFirstFiles, path.filename().string()) != kFirstFiles.end();
}

}  // namespace

bool may_begin_in(const fs::path& dir) {
  const std::vector<fs::path> files = system::paths_in(dir);
  return is_new(dir) ||
         (system::is_file(dir / "lock") && std::ranges::all_of(files, belongs_to_a_start));
}

fs::path free_run_dir(const fs::path& dir) {
  const fs::path first = system::without_slash(dir);
  fs::path free = first;
  for (int number = 2; !is_new(free); ++number) free = fmt::format("{}-{}", first.string(), number);
  return free;
}

void create_run_dir(const fs::path& dir) {
  std::error_code error;
  if (!may_begin_in(dir)) {
    const bool run = fs::exists(dir / "status.json", error);
    throw OutputError(fmt::format(
        "{} exists and {}; nothing is overwritten: {}choose another directory with --out, "
        "or --out auto",
        dir.string(), run ? "holds a run" : "is not an empty directory",
        run ? "continue the run with --resume, or " : ""));
  }
  fs::create_directories(dir, error);
  throw_if<OutputError>(bool(error),
                        "cannot create run directory {}: {}; choose another directory with --out",
                        dir.string(), error.message());
}

void require_run_dir(const fs::path& dir, const char* remedy) {
  std::error_code error;
  throw_if<MissingInput>(fs::status(dir, error).type() == fs::file_type::not_found,
                         "{}: no such file or directory; {}", dir.string(), remedy);
  if (!fs::exists(dir / "status.json", error)) {
    if (error) throw MissingInput(fmt::format("cannot read {}: {}", dir.string(), error.message()));
    throw MissingInput(
        fmt::format("{} is not a run directory: it has no status.json; give the directory of a run",
                    dir.string()));
  }
}

void write_status(const fs::path& dir, RunStatus& status) {
  status.updated = utc_now();
  if (status.started.empty()) status.started = status.updated;
  Json json = {{"state", to_string(status.state)},
               {"step", status.step},
               {"steps", status.steps},
               {"diverged", nullptr},
               {"started", status.started},
               {"updated", status.updated},
               {"exit_code", nullptr},
               {"summary",
                {{"parameters", status.parameters}, {"tokens_per_step", status.tokens_per_step}}}};
  if (status.diverged) {
    json["diverged"] = {{"step", status.diverged->step},
                        {"quantity", status.diverged->quantity},
                        {"parameter", status.diverged->parameter},
                        {"op", status.diverged->op}};
  }
  if (status.exit_code) json["exit_code"] = *status.exit_code;
  system::replace_text(dir / "status.json", system::json_text(json, 2) + "\n");
}

namespace {

RunStatus parse_status(const fs::path& dir) {
  return parse_file(dir / "status.json", [](const Json& json) {
    RunStatus status;
    status.state = state_of_name(json.at("state").get<std::string>());
    status.step = system::integer_of(json.at("step"));
    status.steps = system::integer_of(json.at("steps"));
    json.at("started").get_to(status.started);
    json.at("updated").get_to(status.updated);
    status.parameters = system::integer_of(json.at("summary").at("parameters"));
    status.tokens_per_step = system::integer_of(json.at("summary").at("tokens_per_step"));
    if (const Json& at = json.at("diverged"); !at.is_null())
      status.diverged = {system::integer_of(at.at("step")), at.at("quantity"), at.at("parameter"),
                         at.value("op", "")};
    if (const Json& code = json.at("exit_code"); !code.is_null())
      status.exit_code = static_cast<int>(system::integer_of(code));
    return status;
  });
}

}  // namespace

RunStatus read_status(const fs::path& dir) {
  require_run_dir(dir);
  RunStatus status = parse_status(dir);
  if (status.state == RunState::running && !system::DirectoryLock::is_held(dir)) {
    status = parse_status(dir);  // the run may have ended in between
    if (status.state == RunState::running) status.state = RunState::killed;
  }
  if (status.state == RunState::running || status.state == RunState::killed) {
    if (const auto logged = last_logged(dir / "metrics.jsonl")) status.step = logged->step;
  }
  return status;
}

Json write_env(const fs::path& dir, std::span<const std::string> command, const Json& facts) {
  Json env = {{"command", command}, {"date", utc_now()}};
  if (!facts.is_null()) env.update(facts);
  env["machine"] = {{"cpu", cpu_model()},
                    {"threads", num_threads()},
                    {"processes", distributed::count()},
                    {"flushes_subnormals", flushes_subnormals()}};
  store_env(dir, env);
  return env;
}

Json read_env(const fs::path& dir) {
  return parse_file(dir / "env.json", [](Json json) {
    json.at("command").get<std::vector<std::string>>();
    return json;
  });
}

Config config_of_run(const fs::path& dir) {
  const fs::path yaml = dir / "config.yaml";
  return config_from_yaml(system::read_text(yaml), yaml.string());
}

RunDir open_run(const fs::path& dir) {
  return {dir, read_status(dir), read_env(dir), config_of_run(dir)};
}

const char* program_of(std::string_view precision) {
  return precision == "f64" ? "difftape-f64" : "difftape";
}

void require_precision(const fs::path& made, std::string_view precision, std::string_view verb) {
  throw_if<DataError>(precision != kRealName,
                      "{}: was made in {}, but this program computes in {}; {} with {}",
                      made.string(), precision, kRealName, verb, program_of(precision));
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string utc_now() { return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))); }

void remove_temporary_files(const fs::path& dir) {
  for (const fs::path& folder : {dir, dir / "checkpoints"}) {
    for (const fs::path& path : system::paths_in(folder)) {
      std::error_code ignored;
      if (path.extension() == system::kTemporary && system::is_file(path))
        fs::remove(path, ignored);
    }
  }
}

}  // namespace difftape::run
