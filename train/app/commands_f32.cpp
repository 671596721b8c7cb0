// difftape: all commands.
#include "train/app/commands.h"

namespace difftape::app {

std::span<const AddCommand> commands() {
  static constexpr AddCommand kCommands[] = {
      init_command,      train_command,  sweep_command,    report_command, runs_command,
      diff_command,      eval_command,   generate_command, export_command, import_command,
      data_command,      plan_command,   config_command,   grads_command,  verify_command,
      gradcheck_command, doctor_command, worker_command};
  return kCommands;
}

}  // namespace difftape::app
