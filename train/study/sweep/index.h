#pragma once
// index.csv of a sweep: its runs and their numbers, one row a run, for spreadsheets and scripts.

#include <cstddef>
#include <string>
#include <vector>

#include "train/study/sweep/run_progress.h"
#include "train/study/sweep/sweep_config.h"

namespace difftape::study {

/// Its columns in every sweep: name, arm, seed, lr, state, the steps done and asked for, the step
/// that diverged, the number of parameters; the quantities of the registry that belong to it; and
/// the directory of the run, relative to index.csv.
std::vector<std::string> index_columns();

/// Keeps `<sweep>/index.csv`: index_columns() and a column for every swept key, the rows in the
/// order of the sweep. Numbers read back exactly; an empty field is a number that is not there.
class SweepIndex {
 public:
  /// Throws OutputError if an index.csv is there that no sweep wrote.
  explicit SweepIndex(const SweepConfig& sweep);

  /// Reads a run again and replaces its row. Its measured numbers stay empty if it cannot be read.
  void update(std::size_t run, const RunProgress& progress);
  /// Replaces the file. Throws OutputError.
  void write() const;

 private:
  const SweepConfig* sweep_;
  std::vector<std::string> rows_;
};

}  // namespace difftape::study
