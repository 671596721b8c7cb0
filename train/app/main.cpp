#include "train/app/commands.h"

int main(int argc, char** argv) {
  using namespace difftape::app;
  constexpr MakeCommand kCommands[] = {
      init_command,  train_command,  sweep_command,     report_command, runs_command,
      diff_command,  eval_command,   generate_command,  export_command, import_command,
      data_command,  plan_command,   analyze_command,   config_command, overfit_command,
      grads_command, replay_command, gradcheck_command, doctor_command, worker_command};
  return run(argc, argv, kCommands, "difftape sweep configs/sweeps/quickstart.yaml");
}
