#include "layers/attention/lambda.h"

#include <cmath>

#include "layers/init.h"
#include "layers/linear.h"

namespace difftape {

namespace {

class ExponentialLambda : public LambdaRule {
 public:
  ExponentialLambda(ParameterSet& parameters, const std::string& name, Index head_dim,
                    double lambda_init)
      : lambda_init_(lambda_init) {
    const auto declare = [&](const char* suffix) {
      return &parameters.declare(name + suffix, {head_dim}, Role::other, Init::normal(kLambdaStd));
    };
    q1_ = declare(".lambda_q1");
    k1_ = declare(".lambda_k1");
    q2_ = declare(".lambda_q2");
    k2_ = declare(".lambda_k2");
  }

  Var operator()(const Var& x) const override {
    Tape& tape = x.tape();
    const auto exp_dot = [&](Parameter* q, Parameter* k) {
      return exp(sum(mul(tape.parameter(*q), tape.parameter(*k))));
    };
    return affine(sub(exp_dot(q1_, k1_), exp_dot(q2_, k2_)), 1, lambda_init_);
  }
  double head_factor() const override { return 1 - lambda_init_; }

 private:
  double lambda_init_;
  Parameter *q1_, *k1_, *q2_, *k2_;
};

class ProjectedLambda : public LambdaRule {
 public:
  ProjectedLambda(ParameterSet& parameters, const std::string& name, const LambdaArgs& args,
                  bool squashed)
      : projection_(parameters, name + ".lambda_proj", args.d_model, args.heads,
                    args.projection_std),
        squashed_(squashed) {}

  Var operator()(const Var& x) const override {
    const Var raw = projection_(x);
    return squashed_ ? sigmoid(raw) : raw;
  }

 private:
  Linear projection_;
  bool squashed_;
};

class ConstantLambda : public LambdaRule {
 public:
  Var operator()(const Var& x) const override { return x.tape().constant(Tensor::scalar(1)); }
};

}  // namespace

double lambda_init_of_layer(Index layer) {
  return 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(layer));
}

std::unique_ptr<LambdaRule> make_lambda(const AttentionFields& fields, ParameterSet& parameters,
                                        const std::string& name, const LambdaArgs& args) {
  switch (fields.lambda) {
    case LambdaKind::exponential:
      return std::make_unique<ExponentialLambda>(parameters, name, args.head_dim,
                                                 fields.lambda_init == LambdaInit::schedule
                                                     ? lambda_init_of_layer(args.layer)
                                                     : fields.lambda_init_value);
    case LambdaKind::sigmoid:
    case LambdaKind::raw:
      return std::make_unique<ProjectedLambda>(parameters, name, args,
                                               fields.lambda == LambdaKind::sigmoid);
    case LambdaKind::one:
      break;
  }
  return std::make_unique<ConstantLambda>();
}

}  // namespace difftape
