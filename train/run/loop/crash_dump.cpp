#include "train/run/loop/crash_dump.h"

#include "core/error.h"
#include "train/run/config/reader.h"
#include "train/system/files.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;

std::vector<Batch> batches_behind(const TrainState& state, const Step& step, bool validation) {
  const Config& config = state.config;
  std::vector<Batch> batches;
  const Index count = validation ? batches_to_validate(config, step.step, state.data->val_batches())
                                 : config.train.gradient_accumulation_steps;
  for (Index i = 0; i < count; ++i) {
    batches.push_back(validation ? state.data->val_batch(i)
                                 : state.data->train_batch(step.step - 1, i));
  }
  return batches;
}

void write_tokens(h5::File& file, const std::vector<Batch>& batches) {
  const Batch& first = batches.front();
  Index rows = 0;
  std::vector<std::int32_t> tokens, scored;
  for (const Batch& batch : batches) {
    rows += batch.batch;
    tokens.insert(tokens.end(), batch.tokens.begin(), batch.tokens.end());
    scored.insert(scored.end(), batch.scored.begin(), batch.scored.end());
  }
  file.set_attribute("/diverged", "batch_size", first.batch);
  file.write<std::int32_t>("/diverged/tokens", {rows, first.seq + 1}, tokens);
  if (!scored.empty()) file.write<std::int32_t>("/diverged/scored", {rows, first.seq}, scored);
}

void write_number(h5::File& file, const std::string& name, double value) {
  file.write<double>("/diverged/" + name, {}, std::span(&value, 1));
}

double read_number(const h5::File& file, const std::string& name) {
  return file.read<double>("/diverged/" + name).at(0);
}

std::vector<Batch> read_tokens(const h5::File& file, const fs::path& path) {
  const Shape shape = file.shape("/diverged/tokens");  // (rows, T + 1)
  const auto require = [&](bool holds) {
    throw_if<DataError>(!holds,
                        "{}: its batches are damaged, or from an earlier version of difftape; "
                        "repeat the run",
                        path.string());
  };
  require(shape.rank() == 2 && shape[1] > 1);
  const Index seq = shape[1] - 1;
  Batch all{shape[0], seq, file.read<std::int32_t>("/diverged/tokens")};
  if (file.exists("/diverged/scored")) {
    const auto scored = file.read<std::int32_t>("/diverged/scored");
    all.scored.assign(scored.begin(), scored.end());
    require(std::ssize(all.scored) == all.batch * seq);
  }
  std::vector<Batch> batches;
  const Index size = file.int_attribute("/diverged", "batch_size");
  require(size > 0 && size <= all.batch);
  for (Index row = 0; row < all.batch; row += size)
    batches.push_back(all.rows({row, std::min(row + size, all.batch)}));
  return batches;
}

}  // namespace

fs::path write_crash_dump(const fs::path& run, const TrainState& state, const Step& step) {
  const fs::path directory = run / "diverged";
  system::make_folder(directory);
  const Divergence& where = step.diverged.value();
  const bool validation = where.quantity == kValLoss;
  fs::path path = directory / step_file_name(where.step);
  const auto more = [&](h5::File& file) {
    file.set_attribute("/diverged", "step", where.step);
    file.set_attribute("/diverged", "quantity", where.quantity);
    file.set_attribute("/diverged", "parameter", where.parameter);
    file.set_attribute("/diverged", "op", where.op);
    write_tokens(file, batches_behind(state, step, validation));
    write_number(file, "loss", validation ? step.val_loss : step.loss);
    if (validation) return;
    write_number(file, "grad_norm", step.norms.global);
    std::size_t i = 0;
    for (const Parameter& parameter : state.model.parameters())
      write_number(file, "grad_norms/" + parameter.name, step.norms.per_parameter[i++]);
  };
  write_checkpoint(path, state.model.parameters(), &state.optimizer,
                   state.meta(validation ? step.step : step.step - 1), more);
  return path;
}

CrashDump read_crash_dump(const fs::path& path) {
  const Checkpoint dumped(path);
  const h5::File& file = dumped.file();
  throw_if<DataError>(!file.exists("/diverged/tokens"),
                      "{}: is a checkpoint, but must be a crash dump; give a run directory, or a "
                      "file in the folder "
                      "diverged/ of a diverged run",
                      path.string());
  CrashDump dump;
  dump.config = config_from_yaml(dumped.meta().config_yaml, path.string());
  dump.data = dumped.extra_state([](const auto& state) { return state.at("data"); });
  dump.diverged = {
      file.int_attribute("/diverged", "step"), file.string_attribute("/diverged", "quantity"),
      file.string_attribute("/diverged", "parameter"), file.string_attribute("/diverged", "op")};
  dump.batches = read_tokens(file, path);
  dump.loss = read_number(file, "loss");
  if (dump.of_validation()) return dump;
  dump.grad_norm = read_number(file, "grad_norm");
  for (const std::string& name : file.children("/diverged/grad_norms"))
    dump.grad_norms[name] = read_number(file, "grad_norms/" + name);
  return dump;
}

}  // namespace difftape::run
