// Compares decoding of several attention kinds, interleaved within one run: tokens per second and
// bytes read from the KV cache per token, by context length. Also compares V1's attention in one
// call, which reads the values once for both maps, with one call per map.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "bench/attention_call.h"
#include "bench/measure.h"
#include "core/attention/decode.h"
#include "layers/language_model.h"
#include "train/app/plan.h"
#include "train/system/text_table.h"

namespace difftape::bench {
namespace {

struct Arguments {
  ModelOptions models{.kinds = {"softmax", "diff_v1", "diff_v2"}, .rounds = 7};
  std::vector<Index> contexts{256, 1024, 4096}, batches{1, 4, 8};
  int tokens = 8;

  /// Most tokens of a sequence: the longest context and the tokens generated after it.
  Index capacity() const {
    return *std::ranges::max_element(contexts) + Index{models.rounds + 1} * tokens;
  }
};

/// A model in the middle of generation.
struct Writer {
  std::string name;
  std::unique_ptr<LanguageModel> model;
  ModelKvCache cache;
  std::vector<double> tokens_per_sec = {};

  /// Appends `count` tokens to every sequence, in one pass.
  void read(Index count) {
    const std::vector<std::int32_t> ids(static_cast<size_t>(cache.batch() * count), 1);
    Tape tape(Tape::Mode::inference);
    model->next_logits(tape, {ids, cache.batch(), count}, cache);
  }
  /// Returns the tokens per second of all sequences together.
  double write(int count) {
    const double seconds = seconds_of([&] {
      for (int i = 0; i < count; ++i) read(1);
    });
    return static_cast<double>(cache.batch() * count) / seconds;
  }
};

/// Softmax with fewer heads of keys and values, beside the kinds of --kinds.
struct Grouped {
  const char* name;
  Index query_heads_each;  ///< 0: all
};
constexpr Grouped kGrouped[] = {{"softmax, 2 queries a key (GQA)", 2},
                                {"softmax, one key (MQA)", 0}};

std::vector<Writer> make_writers(const Arguments& arguments, Index batch) {
  std::vector<Writer> all;
  ModelConfig base = arguments.models.load().model;
  base.max_seq_len = arguments.capacity();
  const auto add = [&](std::string name, const ModelConfig& config) {
    auto model = std::make_unique<LanguageModel>(config);
    model->parameters().initialize(1);
    ModelKvCache cache = model->make_cache(batch, arguments.capacity());
    all.push_back({std::move(name), std::move(model), std::move(cache)});
  };
  for (const std::string& kind : arguments.models.kinds) {
    const ModelConfig config = app::with_kind(base, kind);
    require_supported(kind, config);
    add(kind, config);
  }
  for (const Grouped& grouped : kGrouped) {
    ModelConfig config = app::with_kind(base, "softmax");
    const Index each = grouped.query_heads_each > 0 ? grouped.query_heads_each : config.num_heads;
    if (config.num_heads % each != 0) continue;
    config.num_kv_heads = config.num_heads / each;
    add(grouped.name, config);
  }
  return all;
}

void measure_at(std::vector<Writer>& writers, Index context, const Arguments& arguments) {
  for (Writer& writer : writers) {
    constexpr Index kChunk = 256;
    while (writer.cache.length() < context)
      writer.read(std::min(kChunk, context - writer.cache.length()));
    writer.write(arguments.tokens);
    writer.tokens_per_sec.clear();
  }
  for (int round = 0; round < arguments.models.rounds; ++round) {
    for (Writer& writer : writers) writer.tokens_per_sec.push_back(writer.write(arguments.tokens));
  }
}

void print_decoding(const Arguments& arguments) {
  system::Table table{{{"", "batch"},
                       {"", "context"},
                       {"", "attention", true},
                       {"tokens/s", "median"},
                       {"tokens/s", "10 %"},
                       {"tokens/s", "90 %"},
                       {"- speed, first = 1 -", "median"},
                       {"- speed, first = 1 -", "10 %"},
                       {"- speed, first = 1 -", "90 %"},
                       {"cache", "MB per token"}},
                      {}};
  for (const Index batch : arguments.batches) {
    std::vector<Writer> writers = make_writers(arguments, batch);
    for (const Index context : arguments.contexts) {
      measure_at(writers, context, arguments);
      for (const Writer& each : writers) {
        const auto rate = [&](double q) {
          return system::grouped(static_cast<Index>(stats::quantile(each.tokens_per_sec, q)));
        };
        const auto speeds = ratios(each.tokens_per_sec, writers.front().tokens_per_sec);
        const auto speed = [&](double q) {
          return fmt::format("{:.3f}", stats::quantile(speeds, q));
        };
        const double bytes =
            static_cast<double>(each.cache.bytes_read()) / static_cast<double>(batch);
        table.rows.push_back({std::to_string(batch), std::to_string(context), each.name, rate(0.5),
                              rate(0.1), rate(0.9), speed(0.5), speed(0.1), speed(0.9),
                              fmt::format("{:.2f}", bytes / 1e6)});
      }
    }
  }
  fmt::print("{}\n", to_text(table));
}

/// One map of differential attention, as softmax attention.
AttentionInputs one_map(AttentionInputs in, size_t map) {
  in.mapping.maps = 1;
  in.lambda = {};
  for (OutputHead& head : in.mapping.outputs)
    head = {{head.query[map]}, {head.key[map]}, {head.value[map]}};
  return in;
}

/// Compares V1's attention of one token to `context` in one call with one call per map and a
/// subtraction.
void print_value_reads(const Arguments& arguments) {
  constexpr Index kHeads = 6, kHeadDim = 64;
  system::Table table{{{"", "context"},
                       {"V1, ms", "one call"},
                       {"V1, ms", "a call a map"},
                       {"a call a map / one", "median (10-90 %)"}},
                      {}};
  for (const Index context : arguments.contexts) {
    AttentionCall call = attention_call("diff_v1", kHeads, kHeadDim, 1, context);
    KvCache cache(call.in.mapping, 1, context, kHeadDim, call.in.v.shape()[3]);
    cache.append(call.in.k, call.in.v);
    const AttentionCall last = attention_call("diff_v1", kHeads, kHeadDim, 1, 1);
    const AttentionInputs maps[] = {one_map(last.in, 0), one_map(last.in, 1)};
    constexpr int kCalls = 20;
    const auto one = [&] {
      for (int repeat = 0; repeat < kCalls; ++repeat) attention_cached(last.in, cache);
    };
    const auto two = [&] {
      for (int repeat = 0; repeat < kCalls; ++repeat) {
        Tensor a = attention_cached(maps[0], cache);
        const Tensor b = attention_cached(maps[1], cache);
        for (Index i = 0; i < a.size(); ++i) a.data()[i] -= real(0.5) * b.data()[i];
      }
    };
    const auto seconds = interleaved_seconds({one, two}, 3 * arguments.models.rounds);
    const auto ms = [&](size_t i) {
      return fmt::format("{:.3f}", 1e3 / kCalls * stats::quantile(seconds[i], 0.5));
    };
    table.rows.push_back(
        {std::to_string(context), ms(0), ms(1), ratio_text(seconds[1], seconds[0])});
  }
  fmt::print("attention of one token, {} heads of {}: values read once, and once a map\n{}", kHeads,
             kHeadDim, to_text(table));
}

}  // namespace
}  // namespace difftape::bench

int main(int argc, char** argv) {
  CLI::App app("decoding of several attention kinds, interleaved");
  difftape::bench::Arguments arguments;
  arguments.models.add_to(app);
  app.add_option("--context", arguments.contexts, "tokens before the one that is written")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", arguments.batches, "sequences")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--tokens", arguments.tokens, "tokens that one kind writes in a round")
      ->check(CLI::PositiveNumber);
  return difftape::bench::run_program(app, argc, argv, [&] {
    arguments.models.print_header();
    difftape::bench::print_decoding(arguments);
    difftape::bench::print_value_reads(arguments);
  });
}
