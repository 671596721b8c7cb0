#pragma once
// index.csv of a sweep: one row per run with everything that judging claims needs, so that a
// committed index stands for runs whose directories are gone. Beside it config.csv holds the keys
// that all runs share, val_groups.csv the loss of each run in each group of held-out documents.

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/study/compare/run_record.h"

namespace difftape::study {

inline constexpr const char* kIndexFile = "index.csv";
inline constexpr const char* kSharedFile = "config.csv";
inline constexpr const char* kGroupsFile = "val_groups.csv";

/// The fields of a run by column. Columns with a dot are keys of the configuration, as YAML.
using IndexRow = std::map<std::string, std::string, std::less<>>;

const std::string& field_of(const IndexRow& row, std::string_view column);

/// A text in a section of env.json; empty if it is not there.
std::string env_text(const RunRecord& run, const char* section, const char* key);

struct RunIndex {
  std::filesystem::path file;
  std::vector<IndexRow> rows;  ///< in the order of the file, each with the shared keys
  std::map<std::string, std::vector<double>> groups;  ///< of val_groups.csv, by name of the run
};

/// Returns the columns of every index without keys of the configuration and losses of domains.
/// `config` is run::result_digest, `dir` the run directory relative to the index, `from` the folder
/// of the index that the row was taken from (sweep.results).
std::vector<std::string> index_columns();

/// Returns what a run contributes to its row: how far it got, every quantity (empty where its
/// metric was not logged, "nan" without a number), losses of domains (val_loss/<domain>), and
/// provenance.
IndexRow index_row(const RunRecord& run);

/// Whether a file begins as an index does that stands for its runs.
bool is_index(const std::filesystem::path& file);

/// Reads an index with the files beside it. Throws MissingInput if it or config.csv is not there,
/// and DataError if it is not an index that stands for its runs, is damaged, or names a run twice.
RunIndex read_index(const std::filesystem::path& file);

bool is_complete(const IndexRow& row);

/// Returns the digest of the data of a row and, after a slash, of other validation data; empty if
/// they are not known, as of a generated task.
std::string data_digest(const IndexRow& row);

/// Returns the run of a row: its quantities and its losses in groups, without curves. Throws
/// DataError if a field has no number where it must.
RunRecord record_of(const RunIndex& index, const IndexRow& row);

/// Returns the complete runs of several indexes. A run that two of them have with the same arm,
/// learning rate, seed, configuration and numbers counts once. Notes what is not complete. Throws
/// DataError if numbers or data differ, what read_index throws, and MissingInput if none is
/// complete.
std::vector<RunRecord> pooled_runs(std::span<const std::filesystem::path> files,
                                   std::vector<std::string>& notes);

}  // namespace difftape::study
