#include <algorithm>

#include "train/checkpoint/h5.h"
#include "train/cli/commands.h"

namespace difftape::cli {

namespace fs = std::filesystem;

void require_grads_file(const fs::path& out, const std::vector<fs::path>& inputs) {
  require_output_file(out, ".h5", inputs);
  std::error_code ignored;
  if (!fs::exists(out, ignored)) return;
  const h5::File file = h5::File::open(out);
  if (file.exists("grad") && file.exists("logits")) return;
  throw OutputError(fmt::format(
      "{} exists and is no output of grads; nothing else is replaced: choose another name with "
      "--out",
      out.string()));
}

void require_output_file(const fs::path& out, std::string_view extension,
                         const std::vector<fs::path>& inputs) {
  std::error_code ignored;
  if (!fs::exists(out, ignored)) return;
  const auto is_out = [&](const fs::path& input) { return fs::equivalent(input, out, ignored); };
  const bool is_input = std::any_of(inputs.begin(), inputs.end(), is_out);
  if (fs::is_regular_file(out, ignored) && out.extension() == extension && !is_input) return;
  throw OutputError(fmt::format(
      "{} exists and is {}; only {} files are replaced: choose another name with --out",
      out.string(), is_input ? "what this command reads" : "something else", extension));
}

}  // namespace difftape::cli
