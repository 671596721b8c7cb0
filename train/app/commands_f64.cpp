// difftape-f64: what is done with one model, in double precision.
#include "train/app/commands.h"

namespace difftape::app {

std::span<const MakeCommand> commands() {
  static constexpr MakeCommand kCommands[] = {
      train_command,  overfit_command,    eval_command,   generate_command, export_command,
      import_command, grads_command,      replay_command, verify_command,   gradcheck_command,
      doctor_command, completion_command, man_command};
  return kCommands;
}

}  // namespace difftape::app
