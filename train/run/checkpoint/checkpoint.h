#pragma once
// Checkpoints: all that a run needs to continue, in one HDF5 file that any HDF5 reader opens.
//
//   /model/<parameter name>            value
//   /optim/<parameter name>/<name>     what the optimiser keeps: m and v of AdamW
//   /optim                             attribute `steps`: of the optimiser
//   /rng                               attributes `generator`, `seed`; numbers have no other state
//   /data                              attribute `extra_state`, JSON
//   /data/tokenizer                    of the tokens, if it is known
//   attributes of /                    format, format_version, step, precision, config_yaml
//
// Its first 512 bytes are one line of text with the digest of all that follows, so that damage is
// found before HDF5 reads a byte; HDF5 readers skip this user block. The file appears in one piece
// under its name. Equal states give equal bytes. Values of an f32 file load into an f64 program and
// the other way round.

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

/// Checks a file against its checksum header, and returns the digest in it. Throws MissingInput if
/// it cannot be read and DataError if it is not a checkpoint, is cut off or is damaged.
std::string verify_checksum_header(const std::filesystem::path& path);

/// What a checkpoint holds beside tensors.
struct CheckpointMeta {
  Index step = 0;                                         ///< training steps done
  std::string config_yaml;                                ///< the fully resolved configuration
  nlohmann::json extra_state = nlohmann::json::object();  ///< the loop's own, e.g. spike windows
  std::uint64_t seed = 0;                                 ///< run.seed
  TokenizerFile tokenizer = {};                           ///< of the tokens, if it is known
  std::string precision = kRealName;                      ///< "f32" or "f64"; set when read
};

/// Writes <directory>/<step_file_name(meta.step)>, makes the directory if it is missing, and lets
/// <directory>/latest, a text file, name it. Without `optimizer` there is no /optim. The file is
/// built in memory first, so this takes its size in memory for a moment. Returns the path. Throws
/// OutputError; checkpoints written before then still stand, and `latest` still names one of them.
std::filesystem::path save_checkpoint(const std::filesystem::path& directory,
                                      const ParameterSet& parameters, const Optimizer* optimizer,
                                      const CheckpointMeta& meta);

/// Writes one under any name in a directory that exists, without changing `latest`; `more` may add
/// to the file.
void write_checkpoint(const std::filesystem::path& path, const ParameterSet& parameters,
                      const Optimizer* optimizer, const CheckpointMeta& meta,
                      const std::function<void(h5::File&)>& more = {});

/// A file that either of them wrote, found sound, open to be read.
class Checkpoint {
 public:
  /// Throws MissingInput if the file cannot be read; DataError if it is not a sound checkpoint of
  /// this format version.
  explicit Checkpoint(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const std::string& digest() const { return digest_; }  ///< as in its first line
  const CheckpointMeta& meta() const { return meta_; }
  const h5::File& file() const { return file_; }  ///< with what `more` added

  /// What `use` makes of meta().extra_state. Throws DataError if that is not what `use` asks for.
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
  /// Fills the values of initialised parameters and, unless null, the state and step count of the
  /// optimiser. All or nothing: names and shapes are compared before anything is changed. Throws
  /// what require_fits throws, and DataError if the file holds no optimiser where one is wanted.
  void load(ParameterSet& parameters, Optimizer* optimizer) const;

 private:
  DataError bad_extra_state(const std::exception& error) const;

  std::filesystem::path path_;
  std::string digest_;
  h5::File file_;
  CheckpointMeta meta_;
};

// A directory of checkpoints: what its files are called, which of them stay, which one is meant.

/// The name of a file with the state after, or of a crash dump at, a step: "step-00000015.h5".
std::string step_file_name(Index step);
/// The step of a file of such a name, whatever its folder; nothing if it has another.
std::optional<Index> step_of_file(const std::filesystem::path& file);

/// Text files beside checkpoints that name one of them.
inline constexpr const char *kLatest = "latest", *kBest = "best";

/// Lets <directory>/best name the checkpoint of a step. Throws OutputError.
void name_best_checkpoint(const std::filesystem::path& directory, Index step);

/// Removes the checkpoints of a directory but the `keep_last` newest, those of steps that
/// `keep_interval` divides, if it is not 0, and those that `latest` and `best` name. What cannot be
/// removed stays. keep_last >= 1.
void prune_checkpoints(const std::filesystem::path& directory, Index keep_last,
                       Index keep_interval);

/// Whether a path is, by its name, that of a checkpoint itself: it ends in .h5.
bool is_checkpoint_file(const std::filesystem::path& path);

/// Whether `where` is, by its name, something of which find_checkpoint finds one: a directory, a
/// .h5 file, or a file `latest` or `best`.
bool names_checkpoint(const std::filesystem::path& where);

/// Steps and files of the checkpoints in a directory, the newest first.
std::vector<std::pair<Index, std::filesystem::path>> checkpoints_in(
    const std::filesystem::path& directory);

/// Whether there is a checkpoint in the directory of a run.
bool has_checkpoint(const std::filesystem::path& run);

/// The checkpoint file that a user means by `where`: the file itself, a `latest` or `best` file, a
/// directory with `latest`, or a run directory with checkpoints/latest; where there is no `latest`,
/// the newest. Throws MissingInput.
std::filesystem::path find_checkpoint(const std::filesystem::path& where);

}  // namespace difftape::run
