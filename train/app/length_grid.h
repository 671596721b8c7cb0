#pragma once
// Accuracy on a generated task at other sequence lengths than in training: the needle grid of
// length by depth, and the loss of accuracy with the amount of filler ("context rot").

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/real.h"

namespace difftape::app {

/// A cell of the accuracy grid of one run (docs/metrics.md, task/accuracy).
struct GridCell {
  std::string run;          ///< name of its directory or file
  std::string arm;          ///< run.arm; run.name outside a sweep
  Index seed = 0;           ///< run.seed
  Index length = 0;         ///< tokens per sequence
  std::string row = {};     ///< level of the task, "n4"
  std::string column = {};  ///< "depth50"
  double accuracy = 0;      ///< fraction of correct answers
};
using LengthGrid = std::vector<GridCell>;

struct LengthGridRequest {
  std::vector<std::string> models;     ///< runs, checkpoints or configurations of a task
  std::vector<std::string> overrides;  ///< as for run::open_model
  std::vector<Index> lengths;          ///< tokens per sequence, each at least 1
  /// Scaling of rotary frequencies above data.seq_len of the run, "none" or a value of
  /// model.rope_scaling.rope_type; the factor is length / data.seq_len.
  std::string rope_scaling = "none";
  std::optional<Index> batches;  ///< validation batches per length; default: one validation
};

/// Measures each model at each length. Throws UsageError for data that is not a task, two runs of
/// one arm and seed, or batches below 1, and what run::open_model throws.
LengthGrid measure_lengths(const LengthGridRequest& request);

/// Returns the mean accuracy over runs and columns by arm, row and length; and, if arms have
/// several seeds, the paired difference to the first arm with its 95 % interval.
std::string length_table(const LengthGrid& grid);

/// Returns heat maps of the mean over runs, as a standalone SVG file: one panel per row and arm,
/// lengths downwards, columns to the right.
std::string length_grid_svg(const LengthGrid& grid);

inline constexpr const char* kLengthGridHeader = "run,arm,seed,length,row,column,accuracy";
/// Returns one line per cell under kLengthGridHeader.
std::string length_grid_csv(const LengthGrid& grid);

}  // namespace difftape::app
