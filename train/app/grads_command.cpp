#include <fmt/core.h>

#include <memory>

#include "train/app/commands.h"
#include "train/run/loop/grads.h"
#include "train/run/loop/train_state.h"

namespace difftape::app {

namespace {

struct Arguments {
  std::string model, batch, out;
  std::vector<std::string> overrides;
};

void write_grads_of(const Arguments& arguments) {
  require_grads_file(arguments.out, {arguments.model, arguments.batch});
  const run::NamedModel named = run::open_model(arguments.model, arguments.overrides);
  const run::Batch batch = run::read_token_batch(arguments.batch);
  const run::LossAndLogits result = forward_backward(
      *named.model, batch, named.config.data.eos_token_id, precision_of(named.config));
  write_grads(arguments.out, named, batch, result);
  fmt::print("loss {:.9g} nats per token, {} gradients: {}\n", static_cast<double>(result.loss),
             named.model->parameters().size(), arguments.out);
}

}  // namespace

Command grads_command(Context&) {
  auto a = std::make_shared<Arguments>();
  return {.name = "grads",
          .help = "Write loss, logits and every gradient of a batch, for other frameworks",
          .options =
              {{.name = "CONFIG_OR_CKPT",
                .target = &a->model,
                .help = "Configuration (initial weights), checkpoint or run directory",
                .required = true},
               {.name = "--batch",
                .target = &a->batch,
                .help = "HDF5 file with /tokens, int32 (B, T + 1)",
                .required = true},
               {.name = "--out", .target = &a->out, .help = "HDF5 file to write", .required = true},
               set_option(a->overrides)},
          .run = [a] { write_grads_of(*a); }};
}

}  // namespace difftape::app
