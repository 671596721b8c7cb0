#include <fmt/core.h>

#include <memory>

#include "train/app/commands.h"
#include "train/run/loop/grads.h"
#include "train/run/loop/train_state.h"

namespace difftape::app {

void add_grads(CLI::App& app, Context&) {
  struct Arguments {
    std::string model, batch, out;
    std::vector<std::string> overrides;
  };
  CLI::App* command = app.add_subcommand(
      "grads", "Write loss, logits and every gradient of a batch, for other frameworks");
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("CONFIG_OR_CKPT", arguments->model,
                   "Configuration (initial weights), checkpoint or run directory")
      ->required();
  command->add_option("--batch", arguments->batch, "HDF5 file with /tokens, int32 (B, T + 1)")
      ->required();
  command->add_option("--out", arguments->out, "HDF5 file to write")->required();
  add_set_option(*command, arguments->overrides);
  command->callback([arguments] {
    require_grads_file(arguments->out, {arguments->model, arguments->batch});
    const run::NamedModel named = run::open_model(arguments->model, arguments->overrides);
    const run::Batch batch = run::read_token_batch(arguments->batch);
    const run::LossAndLogits result = forward_backward(
        *named.model, batch, named.config.data.eos_token_id, precision_of(named.config));
    write_grads(arguments->out, named, batch, result);
    fmt::print("loss {:.9g} nats per token, {} gradients: {}\n", static_cast<double>(result.loss),
               named.model->parameters().size(), arguments->out);
  });
}

}  // namespace difftape::app
