// difftape-f64: the commands for a single model, in double precision.
#include "train/app/commands.h"

namespace difftape::app {

std::span<const AddCommand> commands() {
  static constexpr AddCommand kCommands[] = {train_command,  eval_command,      generate_command,
                                             export_command, import_command,    grads_command,
                                             verify_command, gradcheck_command, doctor_command};
  return kCommands;
}

}  // namespace difftape::app
