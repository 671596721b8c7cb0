#include "train/app/replay/crash_replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/app/replay/recorded_run.h"
#include "train/run/loop/step.h"
#include "train/run/records/metrics_difference.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

namespace fs = std::filesystem;

/// The batches of a crash dump in place of the data they came from.
class CrashDumpData : public run::Dataset {
 public:
  explicit CrashDumpData(const run::CrashDump& dump)
      : batches_(dump.batches), vocab_size_(dump.config.model.vocab_size), info_(dump.data) {}

  run::Batch train_batch(Index, Index micro) const override {
    return batches_.at(static_cast<std::size_t>(micro));
  }
  run::Batch val_batch(Index i) const override { return batches_.at(static_cast<std::size_t>(i)); }
  Index val_batches() const override { return std::ssize(batches_); }
  Index vocab_size() const override { return vocab_size_; }
  nlohmann::ordered_json info() const override { return info_; }

 private:
  std::vector<run::Batch> batches_;
  Index vocab_size_;
  nlohmann::json info_;
};

void repeat_step(run::TrainState& state, const run::CrashDump& dump, CrashReplay& replay) {
  const run::MicroBatches batches = batches_of(state, dump.diverged.step);
  replay.numbers.push_back({"loss", dump.loss, accumulate_gradients(state, batches).loss});
  const GradNorms norms = grad_norms(state.model.parameters());
  replay.numbers.push_back({"grad_norm", dump.grad_norm, norms.global});
  std::size_t i = 0;
  for (const Parameter& parameter : state.model.parameters()) {
    replay.numbers.push_back({"grad_norm/" + parameter.name, dump.grad_norms.at(parameter.name),
                              norms.per_parameter[i++]});
  }
  replay.now.op = first_non_finite_op(state, batches);
}

void repeat_validation(run::TrainState& state, const run::CrashDump& dump, CrashReplay& replay) {
  replay.numbers.push_back({"loss", dump.loss, state.validate().loss});
  replay.now.op = first_non_finite_op_in_validation(state);
}

std::string compared(const char* what, const std::string& recorded, const std::string& now) {
  const auto shown = [](const std::string& name) { return name.empty() ? "none" : name; };
  if (now == recorded) return fmt::format("{}: {}, as recorded\n", what, shown(now));
  return fmt::format("{}: {}, but {} was recorded\n", what, shown(now), shown(recorded));
}

}  // namespace

bool CrashReplay::identical() const {
  return recorded.op == now.op && recorded.parameter == now.parameter &&
         std::ranges::all_of(numbers,
                             [](const Repeated& n) { return run::same_bits(n.recorded, n.now); });
}

CrashReplay replay_crash(const fs::path& path) {
  const run::CrashDump dump = run::read_crash_dump(path);
  run::TrainState state(dump.config, std::make_unique<CrashDumpData>(dump));
  state.restore(path);
  CrashReplay replay{path, dump.config.run.name, dump.diverged, dump.diverged, {}};
  dump.of_validation() ? repeat_validation(state, dump, replay) : repeat_step(state, dump, replay);
  const Parameter* first = first_non_finite(state.model.parameters());
  replay.now.parameter = first ? first->name : "";
  return replay;
}

std::string to_text(const CrashReplay& replay) {
  system::Table table{{{"", "", true}, {"", "recorded"}, {"", "now"}, {"", "bits", true}}, {}};
  for (const Repeated& n : replay.numbers) {
    table.rows.push_back({n.name, fmt::format("{}", system::shown(n.recorded)),
                          fmt::format("{}", system::shown(n.now)),
                          run::same_bits(n.recorded, n.now) ? "equal" : "DIFFERENT"});
  }
  const run::Divergence& recorded = replay.recorded;
  return fmt::format(
      "{}: step {} of {}, {} was not finite\n{}{}{}{}\n", replay.path.string(), recorded.step,
      replay.run, recorded.quantity, to_text(table),
      compared("first op that is not finite", recorded.op, replay.now.op),
      compared("first parameter that is not finite", recorded.parameter, replay.now.parameter),
      replay.identical()
          ? "identical: the step is repeated bit for bit"
          : "not identical: another build or processor computes other bits than those of the run");
}

}  // namespace difftape::app
