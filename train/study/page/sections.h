#pragma once
// The sections of the page, each in the source of its name:
//   runs        tables of them, and what they reach at each learning rate
//   verdicts    on claims
//   settings    how the runs were made: configurations, commands, environments
// and those whose pictures the script draws from data:
//   curves      metrics over the steps
//   grid        the loss over two or more keys that were varied, as heat maps
//   maps        metrics of each layer over the steps, and accuracy by difficulty of a task
//   attention   maps of selected heads, from metrics.h5

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/study/compare/collection.h"
#include "train/study/compare/study.h"
#include "train/study/page/selection.h"

namespace difftape::study {
struct JudgedClaims;
}  // namespace difftape::study

namespace difftape::study::page {

/// What the runs reached, with links to the files of each as seen from `page_dir`, the directory of
/// the page.
std::string runs_section(const Study& study, const std::filesystem::path& page_dir);

/// Loss against learning rate, and how sensitive each arm is to it. Empty without several rates.
std::string lr_section(const Study& study, const std::vector<LrCurve>& curves);

/// The claims that were tested, as a forest plot and as a table, then the others, folded away, and
/// what is to know about the verdicts.
std::string verdicts_section(const JudgedClaims& claims);

/// Keys with one value an arm (empty: the arm has none), in order. An arm whose runs differ in a
/// key lists their values.
using KeyValues = std::vector<std::pair<std::string, std::vector<std::string>>>;
/// The keys that differ between the arms, or within one, as a table; the others folded away below.
std::string differences(const KeyValues& keys, std::span<const std::string> arms);

KeyValues configs(const Study& study);
KeyValues environments(const Study& study);

std::string commands(const Study& study);

/// What a reader should know before comparing: `notes`, several tasks, how many runs are not
/// finished.
std::string notices(const Study& study, std::span<const std::string> notes);

/// A section of pictures: html is empty if there are none.
struct Section {
  std::string html;
  nlohmann::ordered_json data;
};

/// Data: {"lrs", "lr", "arms", "conditions", "charts"}, as page/js/data.js reads them.
Section curves_section(const Input& input);

/// The final loss in the baseline's task over two keys beside those of attention, if at least two
/// vary. Data: heat maps.
Section grid_section(const Study& all);

/// A heat map a map of the charts, a panel an arm in it, of the first complete run at the shown
/// learning rate. Data: heat maps.
Section layers_section(const Input& input);

/// `task/accuracy/<row>/<column>` at the last validation, the mean over complete runs, a panel an
/// arm. Data: one heat map, or none if no run logged it.
Section accuracy_section(const Input& input);

/// Of each arm, at the shown learning rate, the first seed that has maps: in its last layer the
/// head that attends to the first token most, and head 0.
Section attention_section(const Input& input);

/// A heat map of an arm.
struct Panel {
  std::string arm;
  std::vector<std::string> columns, rows;  ///< names; the first row is at the bottom
  std::vector<double> values;              ///< (rows, columns) row-major; NaN: an empty cell
};
/// Heat maps on one scale, as page/js/maps.js reads them: a title and its meaning, the name of a
/// CSV file, what columns and rows are.
nlohmann::ordered_json heat_map(const std::string& title, const std::string& meaning,
                                const std::string& file, const std::string& x, const std::string& y,
                                const std::vector<Panel>& panels);

/// Numbers by size, other names after them.
void sort_names(std::vector<std::string>& names);

/// With six digits, which are more than a screen shows; null where an axis cannot hold it.
nlohmann::ordered_json rounded(const std::vector<double>& values);

/// Where the script draws, and what stands there without it.
extern const char* const kDrawn;

}  // namespace difftape::study::page
