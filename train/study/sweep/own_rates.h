#pragma once
// sweep.lr: {own: FILE, times: [1, 4]}: each arm is trained at its own learning rate.

#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include "train/run/config/reader.h"
#include "train/study/compare/lr_optima.h"

namespace difftape::study {

/// The learning rates of a file that a sweep names, and where it does.
struct NamedRates {
  OwnRates own;
  run::SourceLocation named_at;
};

/// Returns a path that a sweep names, relative to the file that does or, on the command line, to
/// the working directory.
std::filesystem::path named_path(const std::string& path, const run::SourceLocation& named_at);

/// Reads such a file. Adds to `errors` if read_own_rates throws.
std::optional<NamedRates> read_named_rates(const std::string& path,
                                           const run::SourceLocation& named_at,
                                           run::ConfigErrors& errors);

/// Returns `factor` times the learning rate of an arm, which has one of two names, in a model of
/// the size that `values` say, to three significant digits. Adds to `errors` if there is none.
std::optional<std::string> own_rate(const NamedRates& rates,
                                    const std::array<std::string, 2>& names,
                                    const run::Assignments& values, const std::string& factor,
                                    run::ConfigErrors& errors);

}  // namespace difftape::study
