#pragma once
// index.csv of a sweep (compare/run_index.h), and the runs that a sweep takes from an earlier one.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "train/study/sweep/run_progress.h"
#include "train/study/sweep/sweep_config.h"

namespace difftape::study {

/// Marks the runs of a sweep that SweepConfig::results has complete: those of the same arm,
/// learning rate, seed and configuration. Returns why a run of another configuration stands there
/// in the place of one of them; empty if none does.
std::string take_results(SweepConfig& sweep);

/// Keeps `<sweep>/index.csv` with the files beside it: index_columns(), losses of domains, and the
/// keys that are swept or that differ between runs, the rows in the order of the sweep. Numbers
/// read back exactly; an empty field is a number that is not there.
class SweepIndex {
 public:
  /// Throws OutputError if an index.csv is there that no sweep wrote.
  explicit SweepIndex(const SweepConfig& sweep);

  /// Reads a run again and replaces its row. Its measured numbers stay empty if it cannot be read.
  void update(std::size_t run, const RunProgress& progress);
  /// Replaces the files. Throws OutputError.
  void write() const;

 private:
  void find_keys();

  const SweepConfig* sweep_;
  std::vector<std::string> keys_;  ///< columns of the configuration
  run::FlatConfig shared_;         ///< the other keys, which all runs have in common
  std::vector<IndexRow> rows_;
  std::map<std::string, std::vector<double>> groups_;  ///< losses by name of the run
};

}  // namespace difftape::study
