#pragma once
// The sections of the page, each in the source of its name:
//   runs        tables of them, and what they reach at each learning rate
//   grid        the loss over two or more keys that were varied
//   verdicts    on claims
//   curves      as data for the script, and as pictures where there is no JavaScript
//   attention   maps of selected heads, from metrics.h5
//   layers      metrics of each layer over the steps, and accuracy by difficulty of a task
//   settings    how the runs were made: configurations, commands, environments
// and what several of them draw:
//   maps        heat maps as a figure: one a panel, all on one scale, with their numbers as CSV

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/study/compare/listing.h"
#include "train/study/compare/study.h"
#include "train/study/figures/plots.h"
#include "train/study/page/selection.h"
#include "train/system/text_table.h"

namespace difftape::study {
struct JudgedClaims;
}  // namespace difftape::study

namespace difftape::study::page {

std::vector<std::string> arm_names(const Study& study);
/// A paragraph of small print; `text` is HTML.
std::string note(const std::string& text);

/// What the runs reached, with links to the files of each as seen from `page_dir`, the directory of
/// the page.
std::string runs_section(const Study& study, const std::filesystem::path& page_dir);

/// Runs one line each, with links to the files of each.
std::string run_list_section(const RunList& list, const std::filesystem::path& page_dir);

/// Loss against learning rate, and how sensitive each arm is to it. Empty without several rates.
std::string lr_section(const Study& study, const std::vector<LrCurve>& curves);

struct GridSection {
  std::string html;             ///< empty if fewer than two keys beside those of attention vary
  nlohmann::ordered_json data;  ///< {"keys", "values", "lines"}: what page/js/parallel.js reads
};

/// The final loss in the baseline's task over the keys that differ: as heat maps over two of them,
/// and as parallel coordinates that the script draws with d3.
GridSection grid_section(const Study& all);

/// A table of claims. The verdict, a cell that begins with one, gets a shape; on a narrow screen a
/// row becomes a block of labelled cells.
std::string verdict_cards(const system::Table& table);

/// The claims that were tested, as a forest plot and as a table, then the others, folded away, and
/// what is to know about the verdicts.
std::string verdicts_section(const JudgedClaims& claims);

/// {"lrs", "lr", "arms", "conditions", "charts"}: everything page/js/data.js reads.
nlohmann::ordered_json curve_data(const Input& input);

/// The same curves at one learning rate as figures of SVG, and how many charts there was no room
/// for.
std::string curve_figures(const Input& input);

struct AttentionSection {
  std::string html;             ///< empty if no run stored maps
  nlohmann::ordered_json data;  ///< the values behind the pictures, for CSV: a list of heads
};

/// Of each arm, at the shown learning rate, the first seed that has maps: in its last layer the
/// head that attends to the first token most, and head 0. Of two maps also their difference. Many
/// arms show only the first of the two heads. A metrics.h5 that cannot be read is said, not thrown.
AttentionSection attention_section(const Input& input);

/// One figure a map of the charts, one heat map an arm in it, of the first complete run at the
/// shown learning rate. Empty if no run logged any of them.
std::string layer_figures(const Input& input);

/// `task/accuracy/<row>/<column>` at the last validation, the mean over complete runs, one heat map
/// an arm. Empty if no run logged it.
std::string accuracy_figure(const Input& input);

/// Keys with one value an arm (empty: the arm has none), in order. An arm whose runs differ in a
/// key lists their values.
using KeyValues = std::vector<std::pair<std::string, std::vector<std::string>>>;
/// The keys that differ between the arms, or within one, as a table; the others folded away below.
std::string differences(const KeyValues& keys, std::span<const std::string> arms);

KeyValues configs(const Study& study);
/// Everything in env.json but command and config.
KeyValues environments(const Study& study);

/// Each command line once, as one types it into a shell.
std::string commands(const Study& study);

/// What a reader should know before comparing: `notes`, several tasks, how many runs are not
/// finished.
/// Empty if there is nothing to say.
std::string notices(const Study& study, std::span<const std::string> notes);

/// A heat map of an arm.
struct Panel {
  std::string arm;
  svg::HeatMap map;
};

/// Over the numbers of all panels.
svg::Scale scale_of(const std::vector<Panel>& panels);

/// Numbers by size, other names after them.
void sort_names(std::vector<std::string>& names);

/// At least one panel; a panel of one number is a line of text. `file` is the name of the CSV.
std::string map_figure(const std::string& title, const std::string& meaning,
                       const std::string& file, std::vector<Panel> panels, const svg::Scale& scale);

}  // namespace difftape::study::page
