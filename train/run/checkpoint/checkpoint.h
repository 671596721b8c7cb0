#pragma once
// Checkpoints: the complete state of a run in one HDF5 file.
//
//   /model/<parameter name>            value
//   /optim/<parameter name>/<name>     optimizer state: m and v of AdamW
//   /optim                             attribute `steps` of the optimizer
//   /rng                               attributes `generator`, `seed`; there is no other state
//   /data                              attribute `extra_state`, JSON
//   /data/tokenizer                    tokenizer of the data, if it is known
//   attributes of /                    format, format_version, step, precision, config_yaml
//
// The first 512 bytes are one line of text with the digest of the rest, so that damage is found
// before HDF5 reads the file; HDF5 readers skip this user block. Files are written atomically.
// Equal states give equal bytes. Programs in f32 and f64 read each other's files.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/parameter.h"
#include "core/error.h"
#include "optim/optimizer.h"
#include "train/run/records/h5.h"

namespace difftape::run {

inline constexpr std::size_t kChecksumHeaderSize = 512;

/// Writes the line "difftape-checkpoint xxh3-128 <32 hex digits> <bytes that follow>" into the
/// first kChecksumHeaderSize bytes of a file image, padded with spaces.
void write_checksum_header(std::span<std::byte> image);

/// Checks a file against its checksum header and returns its digest. Throws MissingInput if the
/// file cannot be read, and DataError if it is not a checkpoint, truncated or damaged.
std::string verify_checksum_header(const std::filesystem::path& path);

/// Metadata of a checkpoint.
struct CheckpointMeta {
  Index step = 0;           ///< completed training steps
  std::string config_yaml;  ///< fully resolved configuration
  nlohmann::json extra_state =
      nlohmann::json::object();       ///< facts of the data, the best validation
  std::uint64_t seed = 0;             ///< run.seed
  TokenizerFile tokenizer = {};       ///< tokenizer of the data, if known
  std::string precision = kRealName;  ///< "f32" or "f64"; set when read
};

/// Writes <directory>/<step_file_name(meta.step)> and returns the path. Creates the directory if it
/// is missing. Without `optimizer` there is no /optim. The file is built in memory first. Throws
/// OutputError; earlier checkpoints are then unchanged.
std::filesystem::path save_checkpoint(const std::filesystem::path& directory,
                                      const ParameterSet& parameters, const Optimizer* optimizer,
                                      const CheckpointMeta& meta);

/// Writes a checkpoint under any name in an existing directory. `more` may add to the file. Throws
/// OutputError.
void write_checkpoint(const std::filesystem::path& path, const ParameterSet& parameters,
                      const Optimizer* optimizer, const CheckpointMeta& meta,
                      const std::function<void(h5::File&)>& more = {});

/// A checkpoint file with a verified digest, open for reading.
class Checkpoint {
 public:
  /// Throws MissingInput if the file cannot be read, and DataError if it is not an undamaged
  /// checkpoint of this format version.
  explicit Checkpoint(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const std::string& digest() const { return digest_; }  ///< digest in the first line
  const CheckpointMeta& meta() const { return meta_; }
  const h5::File& file() const { return file_; }  ///< the whole file, for additions of `more`

  /// Returns use(meta().extra_state). Throws DataError if `use` does not find the expected JSON.
  template <class F>
  auto extra_state(F&& use) const {
    try {
      return use(meta_.extra_state);
    } catch (const nlohmann::json::exception& error) {
      throw bad_extra_state(error);
    }
  }

  /// Throws DataError, naming the parameter and both shapes, if the file does not fit the model.
  void require_fits(ParameterSet& parameters) const;
  /// Loads the values of initialized parameters and, unless null, the optimizer state. Names and
  /// shapes are compared before anything changes. Throws DataError like require_fits, and if the
  /// file has no state for `optimizer`.
  void load(ParameterSet& parameters, Optimizer* optimizer) const;

 private:
  DataError bad_extra_state(const std::exception& error) const;

  std::filesystem::path path_;
  std::string digest_;
  h5::File file_;
  CheckpointMeta meta_;
};

// The functions below name, prune and find the files in a directory of checkpoints.

/// Returns the file name of a checkpoint: "step-00000015.h5".
std::string step_file_name(Index step);
/// Returns the step in the name of a file; nothing if the name has another form.
std::optional<Index> step_of_file(const std::filesystem::path& file);

/// Removes checkpoints from a directory, except the newest one and those at multiples of `interval`
/// steps, if it is not 0. Unless `keep_last` is 0, at most that many newest ones stay. Ignores
/// files that cannot be removed.
void prune_checkpoints(const std::filesystem::path& directory, Index interval, Index keep_last);

/// Returns true if a path ends in .h5 and so names a checkpoint file.
bool is_checkpoint_file(const std::filesystem::path& path);

/// Returns true if `where` is a valid argument of find_checkpoint: a directory or a .h5 file.
bool names_checkpoint(const std::filesystem::path& where);

/// Returns steps and files of the checkpoints in a directory, newest first.
std::vector<std::pair<Index, std::filesystem::path>> checkpoints_in(
    const std::filesystem::path& directory);

/// Returns the step of the newest checkpoint of a run directory; 0 if it has none.
Index newest_step(const std::filesystem::path& run);

/// Returns the checkpoint file that `where` refers to: the file itself, or the newest in a
/// directory or in checkpoints/ of a run directory. Throws MissingInput.
std::filesystem::path find_checkpoint(const std::filesystem::path& where);

}  // namespace difftape::run
