#pragma once
// runs.csv of a sweep or of a committed study: one line per run, with everything that a comparison
// and claims need, so that it can replace the run directories.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/row.h"

namespace difftape::study {

inline constexpr const char* kRunsFile = "runs.csv";

/// Returns runs.csv for a folder. Columns are name, arm, seed, lr, the progress, every quantity,
/// losses of domains (val_loss/<domain>), fact_columns(), `dir` and every key of the configuration.
/// A quantity is empty if its metric was not logged, and nan without a number. `dir` is relative to
/// the folder.
std::string runs_csv(std::span<const Row> rows, const std::filesystem::path& folder);

/// Returns whether a file exists whose header is the header of such a file.
bool is_runs_csv(const std::filesystem::path& file);

/// Reads every line. Throws MissingInput if there is no such file, and DataError if it is another
/// file, is damaged, or has a run twice.
std::vector<Row> read_runs_csv(const std::filesystem::path& file);

/// Returns the complete runs of several files and notes incomplete ones. A run in two files with
/// the same arm, learning rate, seed, configuration and values is returned once. Throws DataError
/// if values or data differ, MissingInput if no run is complete, and what read_runs_csv throws.
std::vector<Row> pooled_runs(std::span<const std::filesystem::path> files,
                             std::vector<std::string>& notes);

}  // namespace difftape::study
