#include "layers/memory/step_memory.h"

#include "layers/language_model.h"
#include "layers/memory/ops.h"

namespace difftape {

namespace {

using namespace memory;

/// The layers as layers/ composes them, op by op, in its order.
class Rehearsal {
 public:
  Rehearsal(const LanguageModel& model, const StepShape& shape)
      : model_(model.config()),
        attention_(model.attention()),
        shape_(shape),
        tokens_(shape.batch * shape.seq) {}

  Value loss(memory::Tape& tape) const {
    const Value x = hidden(tape);
    return cross_entropy(x, model_.d_model, model_.vocab_size, shape_.grad_accumulation > 1);
  }

 private:
  Value hidden(memory::Tape& tape) const {
    Value x = embedding(tape, tokens_, model_.d_model);
    for (Index layer = 0; layer < model_.num_layers; ++layer) {
      const auto run = [this](const Value& in) { return block(in); };
      x = shape_.recompute == ActivationCheckpointing::blocks ? recomputed(x, run) : run(x);
    }
    return rms_norm(x, model_.d_model);
  }

  Value block(const Value& x) const {
    const Value h = attention(rms_norm(x, model_.d_model), x);
    return mlp(rms_norm(h, model_.d_model), h);
  }

  Value mlp(const Value& x, const Value& residual) const {
    const Index width = model_.d_model, d_ff = model_.d_ff;
    return swiglu_linear(linear(x, width, d_ff), linear(x, width, d_ff), d_ff, width, residual);
  }

  Value query_or_key(const Value& x, Index heads) const {
    const Index head_dim = head_dim_of(model_);
    Value y = reshape(linear(x, model_.d_model, heads * head_dim));
    if (model_.attention.qk_norm) y = rms_norm(y, head_dim);
    return model_.rope ? rope(std::move(y)) : y;
  }

  /// Empty unless it is one number a token and head; one scalar costs next to nothing.
  Value lambda(const Value& x) const {
    const LambdaKind kind = attention_.fields().lambda;
    if (attention_.fields().maps() == 1 ||
        (kind != LambdaKind::sigmoid && kind != LambdaKind::raw)) {
      return {};
    }
    const Value raw = linear(x, model_.d_model, heads_out());
    return kind == LambdaKind::sigmoid ? sigmoid(raw) : raw;
  }

  Value finished(Value context, const Value& x) const {
    const AttentionFields& fields = attention_.fields();
    if (fields.subln) context = rms_norm(context, attention_.value_dim());
    if (attention_.scales_heads()) context = affine(context);
    if (fields.gate != Gate::none) {
      const Index width = fields.gate == Gate::elementwise ? attention_.value_dim() : 1;
      context = mul(context, sigmoid(reshape(linear(x, model_.d_model, heads_out() * width))));
    }
    return context;
  }

  Value attention(const Value& x, const Value& residual) const {
    const AttentionFields& fields = attention_.fields();
    const HeadMapping& mapping = attention_.mapping();
    const Index values = mapping.value_heads * attention_.value_dim();
    const Value q = query_or_key(x, mapping.query_heads), k = query_or_key(x, mapping.key_heads);
    const Value v = reshape(linear(x, model_.d_model, values));
    const Value weight = lambda(x);
    const bool learned = fields.maps() == 2 && fields.lambda != LambdaKind::one;
    const Value context = memory::attention(
        q, k, v, weight,
        {mapping, shape_.batch, shape_.seq, head_dim_of(model_), attention_.value_dim(),
         model_.attention.sliding_window, learned, fields.normaliser == Normaliser::sink});
    return linear(reshape(finished(context, x)), heads_out() * attention_.value_dim(),
                  model_.d_model, residual);
  }

  Index heads_out() const { return static_cast<Index>(attention_.mapping().outputs.size()); }

  const ModelConfig& model_;
  const Attention& attention_;
  StepShape shape_;
  Index tokens_;
};

}  // namespace

StepMemory step_memory(const ModelConfig& config, const StepShape& shape) {
  const LanguageModel model(config);
  StepMemory memory;
  const auto number = static_cast<Index>(sizeof(real));
  memory.gradients = model.parameters().count() * number;
  memory.moments = 2 * memory.gradients;
  const Index table = config.rope ? config.max_seq_len * head_dim_of(config) : 0;
  memory.weights = memory.gradients + table * number;

  Meter meter;
  const Rehearsal rehearsal(model, shape);  // blocks run again in backward
  memory::Tape tape(meter, true, shape.precision);
  const Value loss = rehearsal.loss(tape);
  memory.kept = meter.now().activations;
  tape.backward(loss, nullptr);
  memory.activations = meter.peak().activations;
  memory.activation_gradients = meter.peak().gradients;
  memory.scratch = meter.peak().scratch;
  return memory;
}

}  // namespace difftape
