#include "train/run/checkpoint/checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/digest.h"
#include "core/error.h"
#include "train/run/records/h5.h"
#include "train/system/file_kind.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/number.h"

namespace difftape::run {
namespace {

constexpr std::string_view kMagic = "difftape-checkpoint";

std::string header_text(const std::string& digest, std::size_t bytes) {
  const std::string line = fmt::format("{} xxh3-128 {} {}", kMagic, digest, bytes);
  return fmt::format("{:<{}}\n", line, kChecksumHeaderSize - 1);
}

/// Header of a file, and digest and size of its rest.
struct Found {
  std::string header;
  std::string digest;
  std::size_t bytes = 0;  // after the header
};

Found read_file(const std::filesystem::path& path) {
  throw_if<MissingInput>(system::is_there(path) && !system::is_file(path),
                         "cannot read checkpoint {}: not a regular file", path.string());
  const system::File file(std::fopen(path.c_str(), "rb"));
  const auto cannot_read = [&path] {
    return MissingInput(fmt::format("cannot read checkpoint {}: {}", path.string(),
                                    std::generic_category().message(errno)));
  };
  if (file == nullptr) throw cannot_read();
  Found found;
  found.header.resize(kChecksumHeaderSize);
  found.header.resize(std::fread(found.header.data(), 1, kChecksumHeaderSize, file.get()));
  Digest digest;
  std::vector<std::byte> block(1 << 20);
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), file.get())) {
    digest.add(std::span(block).first(n));
    found.bytes += n;
  }
  if (std::ferror(file.get()) != 0) throw cannot_read();
  found.digest = digest.hex();
  return found;
}

}  // namespace

void write_checksum_header(std::span<std::byte> image) {
  Digest digest;
  digest.add(image.subspan(kChecksumHeaderSize));
  const std::string text = header_text(digest.hex(), image.size() - kChecksumHeaderSize);
  std::ranges::copy(std::as_bytes(std::span(text)), image.begin());
}

std::string verify_checksum_header(const std::filesystem::path& path) {
  const Found found = read_file(path);
  system::refuse_other(path, found.header, "a difftape checkpoint");
  throw_if<DataError>(
      !found.header.starts_with(kMagic),
      "{}: is not a difftape checkpoint, which begins with '{}'; give a .h5 file of "
      "`difftape train`",
      path.string(), kMagic);
  std::istringstream words(found.header);
  std::string magic, algorithm, digest;
  std::size_t bytes = 0;
  words >> magic >> algorithm >> digest >> bytes;
  throw_if<DataError>(
      found.header.size() < kChecksumHeaderSize || found.bytes < bytes,
      "checkpoint {} is truncated: it has {} bytes, but {} were written; use another "
      "checkpoint of the run",
      path.string(), found.header.size() + found.bytes,
      bytes == 0 ? "more" : std::to_string(kChecksumHeaderSize + bytes));
  throw_if<DataError>(
      found.header != header_text(found.digest, found.bytes),
      "checkpoint {} is damaged: its {} bytes with digest {} do not match its first "
      "line; use another checkpoint of the run",
      path.string(), found.bytes, found.digest);
  return found.digest;
}

namespace fs = std::filesystem;

namespace {

constexpr const char* kFormat = "difftape-checkpoint";
constexpr Index kFormatVersion = 1;
constexpr const char *kAnother = "use another checkpoint of the run",
                     *kOfThisModel = "use a checkpoint of this model";

std::string model_path(const Parameter& p) { return "/model/" + p.name; }
std::string state_path(const Parameter& p, const StateTensor& tensor) {
  return fmt::format("/optim/{}/{}", p.name, tensor.name);
}

h5::File open_version(const fs::path& path) {
  h5::File file = h5::File::open(path);
  const Index version = file.int_attribute("/", "format_version");
  throw_if<DataError>(version != kFormatVersion,
                      "checkpoint {} has format version {}, but this difftape reads {}; use the "
                      "version that wrote it",
                      path.string(), version, kFormatVersion);
  return file;
}

CheckpointMeta read_meta(const fs::path& path, const h5::File& file) {
  const Index step = file.int_attribute("/", "step");
  throw_if<DataError>(step < 0, "checkpoint {} has step {}, but must have at least 0; {}",
                      path.string(), step, kAnother);
  const nlohmann::json extra_state =
      system::json_or_discarded(file.string_attribute("/data", "extra_state"));
  throw_if<DataError>(!extra_state.is_object(),
                      "checkpoint {}: extra_state is not a JSON object, but must be one; {}",
                      path.string(), kAnother);
  return {.step = step,
          .config_yaml = file.string_attribute("/", "config_yaml"),
          .extra_state = extra_state,
          .seed = static_cast<std::uint64_t>(file.int_attribute("/rng", "seed")),
          .tokenizer = read_tokenizer(file, "/data"),
          .precision = file.string_attribute("/", "precision")};
}

}  // namespace

void Checkpoint::require_fits(ParameterSet& parameters) const {
  for (const Parameter& p : parameters) {
    throw_if<DataError>(!file_.exists(model_path(p)),
                        "checkpoint {} does not fit the model: it has no {} {}; {}", path_.string(),
                        p.name, p.shape.str(), kOfThisModel);
    const Shape found = file_.shape(model_path(p));
    throw_if<DataError>(found != p.shape,
                        "checkpoint {} does not fit the model: {} is {}, but must be {}; {}",
                        path_.string(), p.name, found.str(), p.shape.str(), kOfThisModel);
  }
  for (const std::string& name : file_.children("/model")) {
    if (parameters.find(name) == nullptr) {
      throw DataError(
          fmt::format("checkpoint {} does not fit the model: the model has no {} {}; {}",
                      path_.string(), name, file_.shape("/model/" + name).str(), kOfThisModel));
    }
  }
}

namespace {

void require_optimizer(const fs::path& path, const h5::File& file, const Optimizer& optimizer) {
  for (const Optimizer::State& state : optimizer.states()) {
    for (const StateTensor& tensor : state.tensors) {
      const std::string dataset = state_path(*state.parameter, tensor);
      throw_if<DataError>(
          !file.exists(dataset) || file.shape(dataset) != state.parameter->shape,
          "checkpoint {} cannot continue training, because it has no {} {}; use it with "
          "train.init_from or difftape eval",
          path.string(), dataset, state.parameter->shape.str());
    }
  }
}

}  // namespace

void write_checkpoint(const fs::path& path, const ParameterSet& parameters,
                      const Optimizer* optimizer, const CheckpointMeta& meta,
                      const std::function<void(h5::File&)>& more) {
  h5::File file = h5::File::create(path, kChecksumHeaderSize);
  file.set_attribute("/", "format", kFormat);
  file.set_attribute("/", "format_version", kFormatVersion);
  file.set_attribute("/", "step", meta.step);
  file.set_attribute("/", "precision", kRealName);
  file.set_attribute("/", "config_yaml", meta.config_yaml);
  file.set_attribute("/rng", "generator", "Philox4x32-10 keyed by (seed, stream name, index)");
  file.set_attribute("/rng", "seed", static_cast<std::int64_t>(meta.seed));
  file.set_attribute("/data", "extra_state", system::json_text(meta.extra_state));
  write_tokenizer(file, "/data", meta.tokenizer);
  for (const Parameter& p : parameters) file.write(model_path(p), p.value);
  if (optimizer != nullptr) {
    file.set_attribute("/optim", "steps", optimizer->steps());
    for (const Optimizer::State& state : optimizer->states())
      for (const StateTensor& tensor : state.tensors)
        file.write(state_path(*state.parameter, tensor), tensor.value);
  }
  if (more) more(file);
  file.save(write_checksum_header);
  system::sync_directory(path.parent_path());
}

fs::path save_checkpoint(const fs::path& directory, const ParameterSet& parameters,
                         const Optimizer* optimizer, const CheckpointMeta& meta) {
  system::make_folder(directory);
  fs::path path = directory / step_file_name(meta.step);
  write_checkpoint(path, parameters, optimizer, meta);
  return path;
}

Checkpoint::Checkpoint(fs::path path)
    : path_(std::move(path)),
      digest_(verify_checksum_header(path_)),
      file_(open_version(path_)),
      meta_(read_meta(path_, file_)) {}

DataError Checkpoint::bad_extra_state(const std::exception& error) const {
  return DataError(fmt::format("checkpoint {}: extra_state was not written by difftape: {}; {}",
                               path_.string(), error.what(), kAnother));
}

void Checkpoint::load(ParameterSet& parameters, Optimizer* optimizer) const {
  require_fits(parameters);
  if (optimizer != nullptr) require_optimizer(path_, file_, *optimizer);

  for (Parameter& p : parameters) file_.read<real>(model_path(p), p.value.values());
  if (optimizer == nullptr) return;
  optimizer->set_steps(file_.int_attribute("/optim", "steps"));
  for (Optimizer::State& state : optimizer->states())
    for (StateTensor& tensor : state.tensors)
      file_.read<real>(state_path(*state.parameter, tensor), tensor.value.values());
}

namespace {

constexpr std::string_view kStepPrefix = "step-", kStepSuffix = ".h5";

}  // namespace

std::string step_file_name(Index step) {
  return fmt::format("{}{:08}{}", kStepPrefix, step, kStepSuffix);
}

std::optional<Index> step_of_file(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(kStepPrefix) || !name.ends_with(kStepSuffix)) return std::nullopt;
  std::string_view number = name;
  number.remove_prefix(kStepPrefix.size());
  number.remove_suffix(kStepSuffix.size());
  const std::optional<Index> step = system::read_number<Index>(number);
  return step >= Index{0} ? step : std::nullopt;
}

std::vector<std::pair<Index, fs::path>> checkpoints_in(const fs::path& directory) {
  std::vector<std::pair<Index, fs::path>> found;
  if (!system::is_folder(directory)) return found;
  for (const fs::path& path : system::all_paths_in(directory))
    if (const auto step = step_of_file(path)) found.emplace_back(*step, path);
  std::ranges::sort(found, std::greater());
  return found;
}

void prune_checkpoints(const fs::path& directory, Index interval, Index keep_last) {
  Index kept = 0;
  for (const auto& [step, path] : checkpoints_in(directory)) {
    const bool wanted = kept == 0 || (interval > 0 && step % interval == 0);
    if (wanted && (keep_last == 0 || kept < keep_last)) {
      kept += 1;
    } else {
      std::error_code ignored;
      fs::remove(path, ignored);
    }
  }
}

bool is_checkpoint_file(const fs::path& path) { return path.extension() == kStepSuffix; }

bool names_checkpoint(const fs::path& where) {
  return system::is_folder(where) || is_checkpoint_file(where);
}

Index newest_step(const fs::path& run) {
  const auto found = checkpoints_in(run / "checkpoints");
  return found.empty() ? 0 : found.front().first;
}

fs::path find_checkpoint(const fs::path& where) {
  if (system::is_file(where)) return where;
  for (const fs::path& directory : {where, where / "checkpoints"})
    if (const auto found = checkpoints_in(directory); !found.empty()) return found.front().second;
  throw MissingInput(
      fmt::format("{}: no checkpoint found; give a .h5 file, or a run directory with checkpoints/",
                  where.string()));
}

}  // namespace difftape::run
