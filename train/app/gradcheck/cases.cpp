#include "train/app/gradcheck/cases.h"

#include "autograd/gradcheck/op_cases.h"
#include "layers/attention/errors.h"
#include "train/app/gradcheck/layer.h"

namespace difftape::app {

namespace {

/// A value of one axis of the product, and its word in the name of a cell.
struct Heads {
  const char* name;
  Index heads, kv_heads;
};
constexpr Heads kHeads[] = {{"mha", 2, 2}, {"gqa", 4, 2}, {"mqa", 3, 1}};
constexpr const char* kVisible[] = {"full", "window", "packed"};
constexpr Index kLengths[] = {1, 2, 3, 17, 64};

/// RoPE turns pairs of features; without it heads are odd.
std::vector<Index> head_sizes(bool rope) {
  return rope ? std::vector<Index>{2, 4} : std::vector<Index>{3, 5};
}

ModelConfig small_config(const AttentionConfig& attention, const Heads& heads) {
  ModelConfig config;
  config.num_layers = 2;
  config.num_heads = heads.heads;
  config.num_kv_heads = heads.kv_heads;
  config.rope_theta = 100;
  config.attention = attention;
  return config;
}

void add_ops(std::vector<GradcheckCase>& cases) {
  for (const OpCase& c : op_cases()) {
    cases.push_back({c.op, c.name(), [c] { return gradcheck(c.make_inputs(), c.f); }});
  }
}

/// The cells of one variant and one sharing of heads that agree in all but T and the head size. The
/// longest has the smaller size only: it costs most, and what it adds is whole blocks of rows.
void add_cells(std::vector<GradcheckCase>& cases, const std::string& group, ModelConfig config,
               const std::string& name, const std::string& visible) {
  for (Index head_dim : head_sizes(config.rope)) {
    for (Index seq : kLengths) {
      if (seq == kLengths[4] && head_dim > 3) continue;
      const Index batch = seq <= 3 ? 2 : 1;
      config.d_model = seq <= 17 ? 3 : 2;
      config.head_dim = head_dim;
      config.attention.sliding_window = visible != "window" ? 0 : seq <= 3 ? 2 : 5;
      const bool packed = visible == "packed";
      cases.push_back({group, fmt::format("{}/d{}/T{}", name, head_dim, seq), [=] {
                         return check_layer(config, batch, seq,
                                            packed ? packed_documents(batch, seq) : nullptr);
                       }});
    }
  }
}

void add_layers(std::vector<GradcheckCase>& cases, const AttentionVariant& variant) {
  const std::string group = "layer/" + variant.name;
  for (const Heads& heads : kHeads) {
    ModelConfig config = small_config(variant.attention, heads);
    if (!attention_errors(config).empty()) continue;
    config.norm_eps = 0.1;  // keeps the norm of a head of 2 numbers away from its pole
    for (const std::string visible : kVisible) {
      for (const bool rope : {true, false}) {
        config.rope = rope;
        for (const bool qk_norm : {false, true}) {
          config.attention.qk_norm = qk_norm;
          add_cells(cases, group, config,
                    fmt::format("{}/{}/{}/{}/{}", group, heads.name, visible,
                                rope ? "rope" : "norope", qk_norm ? "qk_norm" : "plain"),
                    visible);
        }
      }
    }
  }
}

void add_models(std::vector<GradcheckCase>& cases, const AttentionVariant& variant) {
  const std::string group = "model/" + variant.name;
  for (const Heads& heads : kHeads) {
    ModelConfig config = small_config(variant.attention, heads);
    if (!attention_errors(config).empty()) continue;
    config.d_model = 4;
    config.head_dim = 2;
    config.d_ff = 3;
    config.max_seq_len = 6;
    config.vocab_size = 7;
    config.norm_eps = 0.1;  // as for the layers
    const std::string name = fmt::format("{}/{}", group, heads.name);
    cases.push_back({group, name, [config] { return check_model(config); }});
    config.tie_embeddings = config.attention.qk_norm = true;
    cases.push_back({group, name + "/tied/packed/qk_norm",
                     [config] { return check_model(config, packed_documents(2, 4)); }});
  }
}

}  // namespace

std::vector<GradcheckCase> gradcheck_cases() {
  std::vector<GradcheckCase> cases;
  add_ops(cases);
  for (const AttentionVariant& variant : attention_variants()) {
    add_layers(cases, variant);
    add_models(cases, variant);
  }
  return cases;
}

}  // namespace difftape::app
