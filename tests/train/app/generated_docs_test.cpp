// The pages of docs/ that are generated: docs/commands.md from the parser, docs/config-reference.md
// from the registry of keys, docs/metrics.md from the registry of metrics. With
// DIFFTAPE_WRITE_DOCS=1 the test writes them, otherwise it compares them.

#include "tests/support/test.h"
#include "train/app/command_line.h"
#include "train/app/commands.h"
#include "train/run/config/fields.h"
#include "train/run/config/sweep_settings.h"
#include "train/run/config/writer.h"
#include "train/run/records/metric_registry.h"

namespace difftape::app {
namespace {

constexpr const char* kNote =
    "\n<!-- Generated; DIFFTAPE_WRITE_DOCS=1 ./dev test -R GeneratedDocs writes it anew. -->\n";

/// Appends one section per command below `above`, whose full name is `name`: its help as printed.
void append_commands(const CLI::App& above, const std::string& name, std::string& page) {
  for (const CLI::App* command : above.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;  // hidden
    const std::string full = name + " " + command->get_name();
    std::string help = command->help(name);
    help.erase(help.find("\n\nExit codes:"));
    page += fmt::format("\n## {}\n\n```\n{}\n```\n", full, help);
    append_commands(*command, full, page);
  }
}

std::string commands_page() {
  const auto program = make_program("difftape");
  Context context;
  for (const AddCommand add : commands()) add(*program, context);
  std::string page = fmt::format(
      "# Commands\n\nThis page shows the `--help` of every command. The README "
      "groups them by purpose, and [run-directory](run-directory.md) lists the exit codes.\n{}",
      kNote);
  append_commands(*program, program->get_name(), page);
  return page;
}

std::string item(const run::KeyInfo& key) {
  std::string facts = key.spec.type();
  if (key.spec.form.empty())
    facts += fmt::format(", default `{}`", run::yaml_text(key.spec.standard()));
  if (const std::string range = key.spec.constraint.str(); range != "any")
    facts += fmt::format(", `{}`", range);
  if (!key.unit.empty()) facts += fmt::format(", in {}", key.unit);
  return fmt::format("- `{}` ({}). {}\n", key.key, facts, key.help);
}

std::string config_page() {
  std::string page = fmt::format(
      "# Configuration reference\n\nThis page lists every key with its type, "
      "default, range and unit. `difftape config keys` prints the same list.\n{}",
      kNote);
  std::string section;
  const auto append = [&](const run::KeyInfo& key) {
    const std::string first = key.key.substr(0, key.key.find('.'));
    if (first != section) page += fmt::format("\n## {}\n\n", section = first);
    page += item(key);
  };
  for (const run::Field& field : run::fields()) append(field);
  for (const run::SweepField& field : run::sweep_fields()) append(field);
  return page;
}

const char* name_of(run::When when) {
  switch (when) {
    case run::When::step:
      return "every step";
    case run::When::validation:
      return "`train.eval_interval`";
    case run::When::parameters:
      return "`log.param_grad_norms_interval`";
    case run::When::diagnostics:
      return "`log.diagnostics_interval`";
  }
  throw std::logic_error("no such When");
}

const char* suffix_of(run::Per per) {
  switch (per) {
    case run::Per::run:
      return "";
    case run::Per::layer:
      return "/LAYER";
    case run::Per::expert:
      return "/LAYER/EXPERT";
    case run::Per::parameter:
      return "/PARAMETER";
    case run::Per::grid:
      return "/ROW/COLUMN";
    case run::Per::domain:
      return "/DOMAIN";
  }
  throw std::logic_error("no such Per");
}

std::string metrics_page() {
  std::string page = fmt::format(
      "# Metrics\n\nThis page lists every metric of `metrics.jsonl`, its unit (none if "
      "dimensionless) and the steps that log it. [run-directory](run-directory.md) shows how to "
      "read the file.\n\nFor text read as bytes, nats per token are nats per byte. A1 and A2 are "
      "the two softmax maps of a differential head. \"The map\" of a head is its softmax map, or "
      "|A1 - lambda A2| with rows normalized to sum to 1. Token 1 is the first of a "
      "sequence.\n{}\n",
      kNote);
  for (const run::Metric& metric : run::kMetrics) {
    const std::string unit =
        metric.unit == std::string_view("1") ? "" : fmt::format("{}; ", metric.unit);
    page += fmt::format("- `{}{}` ({}{}): {}.\n", metric.name, suffix_of(metric.per), unit,
                        name_of(metric.when), metric.what);
  }
  return page;
}

struct GeneratedDocs : testing::TestWithParam<std::pair<const char*, std::string (*)()>> {};

TEST_P(GeneratedDocs, equal_the_output_of_the_program) {
  const auto& [name, page] = GetParam();
  const fs::path path = fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "docs" / name;
  if (std::getenv("DIFFTAPE_WRITE_DOCS")) put(path, page());
  EXPECT_EQ(contents(path), page()) << "write it by DIFFTAPE_WRITE_DOCS=1";
}
INSTANTIATE_TEST_SUITE_P(Pages, GeneratedDocs,
                         testing::Values(std::pair{"commands.md", &commands_page},
                                         std::pair{"config-reference.md", &config_page},
                                         std::pair{"metrics.md", &metrics_page}),
                         [](const auto& page) {
                           const std::string name = page.param.first;
                           return name == "config-reference.md" ? "configuration"
                                                                : name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace difftape::app
