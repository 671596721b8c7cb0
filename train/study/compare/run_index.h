#pragma once
// index.csv of a sweep: one row per run with all data that claims need, so that a committed index
// can replace the run directories. config.csv next to it has the keys that all runs share.

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

/// The fields of a run by column. Columns with a dot are keys of the configuration, as YAML.
using IndexRow = std::map<std::string, std::string, std::less<>>;

const std::string& field_of(const IndexRow& row, std::string_view column);

/// Returns a string in a section of env.json; empty if it is missing.
std::string env_text(const RunRecord& run, const char* section, const char* key);

struct RunIndex {
  std::filesystem::path file;
  std::vector<IndexRow> rows;  ///< in the order of the file, each with the shared keys
};

/// Returns the columns that every index has, without configuration keys and losses of domains.
/// `config` is run::result_digest, `dir` the run directory relative to the index, `from` the folder
/// of the index that the row was taken from (sweep.results).
std::vector<std::string> index_columns();

/// Returns the measured part of a row: progress, every quantity (empty if its metric was not
/// logged, "nan" without a number), losses of domains (val_loss/<domain>), and provenance.
IndexRow index_row(const RunRecord& run);

/// Returns whether the header of a file is the header of an index that can replace its runs.
bool is_index(const std::filesystem::path& file);

/// Reads an index with the files next to it. Throws MissingInput if it or config.csv does not
/// exist, and DataError if it is not such an index, is damaged, or has a run twice.
RunIndex read_index(const std::filesystem::path& file);

bool is_complete(const IndexRow& row);

/// Returns the digest of the data of a row and, after a slash, of separate validation data; empty
/// if unknown, as for a generated task.
std::string data_digest(const IndexRow& row);

/// Returns the run of a row: its quantities, without curves. Throws
/// DataError if a required field is not a number.
RunRecord record_of(const RunIndex& index, const IndexRow& row);

/// Returns the complete runs of several indexes and notes incomplete ones. A run in two indexes
/// with the same arm, learning rate, seed, configuration and values is returned once. Throws
/// DataError if values or data differ, MissingInput if no run is complete, and what read_index
/// throws.
std::vector<RunRecord> pooled_runs(std::span<const std::filesystem::path> files,
                                   std::vector<std::string>& notes);

}  // namespace difftape::study
