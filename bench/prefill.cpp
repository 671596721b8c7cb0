// Compares the time to read a prompt and return the logits after it: an ordinary decoder against
// YOCO's decoder-decoder with as many layers, interleaved within one run.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "bench/measure.h"
#include "layers/cost.h"
#include "train/app/plan.h"
#include "train/system/text_table.h"

namespace difftape::bench {
namespace {

struct Arguments {
  ModelOptions models{.kinds = {"softmax", "diff_v2"}, .rounds = 5};
  std::vector<Index> lengths{2048, 8192};
  Index window = 512;
};

struct Reader {
  std::string name;
  ModelCost cost;
  std::unique_ptr<LanguageModel> model;

  void read(const std::vector<std::int32_t>& prompt) const {
    const Index length = std::ssize(prompt);
    ModelKvCache cache = model->make_cache(1, length);
    Tape tape(Tape::Mode::inference);
    model->next_logits(tape, {prompt, 1, length}, cache);
  }
};

/// Returns, for each kind, the ordinary decoder and then the decoder-decoder.
std::vector<Reader> make_readers(const Arguments& arguments, Index length) {
  std::vector<Reader> all;
  ModelConfig base = arguments.models.load().model;
  base.max_seq_len = length;
  for (const std::string& kind : arguments.models.kinds) {
    for (const Index self_layers : {Index{0}, base.num_layers / 2}) {
      ModelConfig config = app::with_kind(base, kind);
      config.yoco_self_layers = self_layers;
      if (self_layers > 0) config.attention.sliding_window = arguments.window;
      require_supported(kind, config);
      auto model = std::make_unique<LanguageModel>(config);
      model->parameters().initialize(1);
      all.push_back(
          {self_layers > 0 ? kind + ", YOCO" : kind, model_cost(config, length), std::move(model)});
    }
  }
  return all;
}

void print_prefill(const Arguments& arguments) {
  system::Table table{{{"", "tokens"},
                       {"", "model", true},
                       {"", "parameters"},
                       {"prefill", "GFLOP"},
                       {"prefill", "s, median"},
                       {"- time / decoder of its kind -", "median (10-90 %)"},
                       {"cache", "MB"}},
                      {}};
  for (const Index length : arguments.lengths) {
    const std::vector<Reader> readers = make_readers(arguments, length);
    const std::vector<std::int32_t> prompt(static_cast<size_t>(length), 1);
    std::vector<std::function<void()>> works;
    for (const Reader& reader : readers) works.push_back([&] { reader.read(prompt); });
    const auto seconds = interleaved_seconds(works, arguments.models.rounds);
    for (size_t i = 0; i < readers.size(); ++i) {
      const Reader& each = readers[i];
      const double bytes =
          static_cast<double>(each.cost.kv_cache_per_token * length) * sizeof(real);
      table.rows.push_back(
          {std::to_string(length), each.name, system::grouped(each.cost.total_parameters),
           fmt::format("{:.1f}", each.cost.prefill_flops / 1e9),
           fmt::format("{:.3f}", stats::quantile(seconds[i], 0.5)),
           ratio_text(seconds[i], seconds[i / 2 * 2]), fmt::format("{:.1f}", bytes / 1e6)});
    }
  }
  fmt::print("{}", to_text(table));
}

}  // namespace
}  // namespace difftape::bench

int main(int argc, char** argv) {
  CLI::App app("reading a prompt with and without YOCO, interleaved");
  difftape::bench::Arguments arguments;
  arguments.models.add_to(app);
  app.add_option("--seq", arguments.lengths, "tokens of the prompt")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--window", arguments.window, "of the self-decoder, half of the layers")
      ->check(CLI::PositiveNumber);
  return difftape::bench::run_program(app, argc, argv, [&] {
    arguments.models.print_header();
    difftape::bench::print_prefill(arguments);
  });
}
