#include "layers/attention/lambda.h"

#include <cmath>

#include "layers/init.h"

namespace difftape {

namespace {

class ExponentialLambda : public LambdaRule {
 public:
  ExponentialLambda(ParameterSet& parameters, const std::string& name, Index head_dim,
                    double lambda_init)
      : lambda_init_(lambda_init) {
    const auto declare = [&](const char* suffix) {
      return &parameters.declare(name + suffix, {head_dim}, Role::lambda, Init::normal(kLambdaStd));
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

 private:
  double lambda_init_;
  Parameter *q1_, *k1_, *q2_, *k2_;
};

class SigmoidLambda : public LambdaRule {
 public:
  SigmoidLambda(ParameterSet& parameters, const std::string& name, Index d_model, Index heads)
      : projection_(parameters, name + ".lambda_proj", d_model, heads, kProjectionStd) {}

  Var operator()(const Var& x) const override { return sigmoid(projection_(x)); }

 private:
  Linear projection_;
};

}  // namespace

double lambda_init_of_layer(Index layer) {
  return 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(layer));
}

std::unique_ptr<LambdaRule> exponential_lambda(ParameterSet& parameters, const std::string& name,
                                               Index head_dim, double lambda_init) {
  return std::make_unique<ExponentialLambda>(parameters, name, head_dim, lambda_init);
}

std::unique_ptr<LambdaRule> sigmoid_lambda(ParameterSet& parameters, const std::string& name,
                                           Index d_model, Index heads) {
  return std::make_unique<SigmoidLambda>(parameters, name, d_model, heads);
}

}  // namespace difftape
