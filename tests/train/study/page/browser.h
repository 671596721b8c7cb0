#pragma once
// Pages opened in chromium without a window.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/scratch.h"

namespace difftape::test {

/// Path of chromium; empty if there is none.
std::string find_browser();

struct Visit {
  std::string dom;                   ///< the document at the end, as HTML
  std::vector<std::string> console;  ///< what the page logged, errors and warnings too
};

/// Opens a page from a file and lets its timers run. Throws std::runtime_error if chromium fails.
Visit visit(const ScratchDir& dir, const std::string& html,
            const std::vector<std::string>& options = {});

/// The page with a script at its end, which the policy of the page allows. It may call
/// leave(anything) once.
std::string with_script(std::string page, const std::string& script);
/// What the script left.
nlohmann::json results(const Visit& visit);

/// Cells of the tables of a class, as text: [table][row][column], without the rows of <thead>.
using Rows = std::vector<std::vector<std::string>>;
std::vector<Rows> tables(const std::string& dom, const std::string& table_class);
/// &lt; and the like as characters.
std::string unescape(std::string html);

}  // namespace difftape::test
