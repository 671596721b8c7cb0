#include "train/study/page/report.h"

#include <fmt/format.h>

#include "core/error.h"
#include "train/study/figures/lr_curve.h"
#include "train/study/page/assets.h"
#include "train/study/page/html.h"
#include "train/study/page/sections.h"
#include "train/study/page/selection.h"
#include "train/system/files.h"

namespace difftape::study {

void write_report(const Study& study, const std::filesystem::path& path, const std::string& title,
                  std::span<const std::string> notes) {
  const page::Sections sections = page::sections(study, notes);
  const std::string scripts =
      fmt::format("<script>{}</script>\n<script>{}</script>\n<script>{}</script>",
                  assets::dygraph_js(), assets::synchronizer_js(), assets::page_js());
  system::replace_text(
      path,
      fill_template(assets::page_html(),
                    {{"title", escape_html(title)},
                     {"subtitle", escape_html(sections.subtitle)},
                     {"made", run::utc_now()},
                     {"css", fmt::format("{}\n{}", assets::dygraph_css(), assets::page_css())},
                     {"navigation", sections.navigation},
                     {"sections", sections.html},
                     {"data", json_for_script(sections.data)},
                     {"scripts", scripts}}));
}

void write_report(std::span<const std::filesystem::path> run_dirs,
                  const std::filesystem::path& path, const std::string& title) {
  if (run_dirs.empty()) throw UsageError("report: no runs; give at least one run directory");
  const std::vector<RunRecord> runs = load_runs(run_dirs);
  write_report(make_study(runs), path, title);
}

void write_lr_curve(const Study& study, const std::filesystem::path& path) {
  if (page::rates(study).size() < 2) {
    throw UsageError(
        "report: a learning-rate curve needs runs of at least two peak learning rates; sweep "
        "optim.lr, or leave out --svg");
  }
  system::replace_text(path, lr_curve_svg(lr_curves(study), SvgKind::standalone));
}

}  // namespace difftape::study
