#include <fmt/format.h>

#include <cmath>

#include "train/app/replay/spike_replay.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

std::string deviations(double value, const stats::SpikeVerdict& verdict) {
  const double far = (value - verdict.mean) / verdict.std;
  return std::isfinite(far) ? fmt::format("{:+.1f}", far) : "-";
}

std::string spikes_of(const ReplayTrial& e) {
  if (e.loss_verdict.spike && e.grad_verdict.spike) return "loss, grad_norm";
  return e.loss_verdict.spike ? "loss" : e.grad_verdict.spike ? "grad_norm" : "-";
}

system::Table table_of(const SpikeReplay& replay) {
  system::Table table{{{"of step", "state"},
                       {"of step", "batch"},
                       {"loss", "nats"},
                       {"loss", "std"},
                       {"grad_norm", "L2"},
                       {"grad_norm", "std"},
                       {"", "spike", true}},
                      {}};
  for (const ReplayTrial& e : replay.trials) {
    table.rows.push_back({fmt::format("{}", e.state), fmt::format("{}", e.batch),
                          fmt::format("{:.4f}", e.loss), deviations(e.loss, e.loss_verdict),
                          fmt::format("{:.4g}", e.grad_norm),
                          deviations(e.grad_norm, e.grad_verdict), spikes_of(e)});
  }
  return table;
}

std::string conclusion(const SpikeReplay& replay) {
  const ReplayTrial& own = replay.trials.front();
  if (!own.loss_verdict.spike && !own.grad_verdict.spike) {
    return fmt::format("not decided: step {} is no spike by the rule {}", replay.step, replay.rule);
  }
  const char* word = replay.cause == Cause::batch   ? "the batch"
                     : replay.cause == Cause::state ? "the state"
                     : replay.cause == Cause::both  ? "both: it takes this batch on this state"
                                                    : "not decided";
  return fmt::format(
      "{}\n  {} of {} other batches on the state of step {} spike too\n"
      "  on {} of {} earlier states the batch of step {} spikes too",
      word, replay.other_batches_spike, replay.other_batches, replay.step,
      replay.earlier_states_spike, replay.earlier_states, replay.step);
}

}  // namespace

std::string to_text(const SpikeReplay& replay) {
  std::string text =
      fmt::format("{}, step {}: from {}", replay.dir.string(), replay.step, replay.origin);
  text += fmt::format(", {} step{} repeated bit for bit\n", replay.retrained,
                      replay.retrained == 1 ? "" : "s");
  if (replay.mismatch) {
    const Mismatch& m = *replay.mismatch;
    return text + fmt::format(
                      "not identical: {} of step {} is {}, metrics.jsonl has {}; another "
                      "build or processor computes other bits than those of the run\n",
                      m.quantity, m.step, m.now, m.logged);
  }
  return text + to_text(table_of(replay)) + "std: from the window before the step, by the rule " +
         replay.rule + "\n" + "cause: " + conclusion(replay) + "\n";
}

}  // namespace difftape::app
