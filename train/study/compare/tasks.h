#pragma once
// What runs were trained to do: losses of different data or lengths do not compare.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/run_record.h"

namespace difftape::study {

/// Of keys, in this order, those that tell `items` apart where the ones before them do not;
/// `value_of` an item and a key.
std::vector<std::string> distinguishing_keys(
    const std::vector<std::string>& keys, std::size_t items,
    const std::function<std::string(std::size_t item, const std::string& key)>& value_of);

struct Tasks {
  std::vector<std::size_t> of_run;  ///< as long as the runs: a position in `words`
  /// Each task in the fewest keys that tell it from the others: "3200 steps"; "" if there is one.
  std::vector<std::string> words;
};

/// The tasks of runs in the order of their first ones. A key that one of two runs does not know, as
/// those of older versions, makes no difference; where the files were, none either: their digest
/// says more.
Tasks find_tasks(std::span<const RunRecord> runs);

/// Why numbers of two runs do not compare: they are of two tasks. Empty if they are of one.
std::string task_difference(const RunRecord& a, const RunRecord& b);

}  // namespace difftape::study
