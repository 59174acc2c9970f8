// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/timed_operator.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/model/builder.h"
#include "gpu_probe/job/output.h"
#include "gpu_probe/step/rank_step.h"
#include "gpu_probe/step/run.h"

namespace turnpoint::step {

namespace {

constexpr int kFew = 8, kMany = 40;  // operators of the two chains
constexpr std::int64_t kSamples = 4, kWidth = 16;

Expected<ModelPtr> chain(int operators) {
  ModelBuilder builder("chain", "turnpoint-probe", kSamples, 0);
  TensorId x = builder.input("x", {kSamples, kWidth}, {DimName::batch, DimName::channel}, ElementType::f32);
  // A parameter in front, so that there is a backward.
  x = builder.elementwise("scale", "Mul", std::array{x, builder.parameter("w", {kWidth}, {DimName::channel})});
  for (int i = 0; i < operators; ++i)
    x = builder.elementwise("relu" + std::to_string(i), "Relu", std::array{x}, {1, true, {}});
  return builder.finish({x});
}

class Chain {
 public:
  static Expected<std::unique_ptr<Chain>> make(int operators) {
    auto model = chain(operators);
    if (!model) return model.error();
    std::unique_ptr<Chain> made(new Chain(std::move(*model)));
    StepOptions options;
    options.learning_rate = 1e-5;
    options.quick = true;
    const ComputeIn here(in_float());
    auto program = Program::make(*made->model_, made->plan_, options);
    if (!program) return program.error();
    made->program_ = std::move(*program);
    made->step_ = std::make_unique<RankStep>(*made->program_, *made->communicator_);
    return made;
  }

  Expected<double> step() {
    const ComputeIn here(in_float());
    const double start = probe::host_clock();
    if (auto done = step_->run(); !done) return done.error();
    return probe::host_clock() - start;
  }

 private:
  explicit Chain(ModelPtr model) : model_(std::move(model)), plan_(whole_plan(*model_)) {}

  ModelPtr model_;
  Plan plan_;
  std::shared_ptr<const Program> program_;
  std::unique_ptr<Communicator> communicator_ = lone_communicator(1, 0);
  std::unique_ptr<RankStep> step_;
};

class Chains : public TimedOperators {
 public:
  Chains(std::unique_ptr<Chain> few, std::unique_ptr<Chain> many) : few_(std::move(few)), many_(std::move(many)) {}

  Expected<double> once() override {
    const auto few = few_->step(), many = few ? many_->step() : few;
    if (!many) return many.error();
    return std::max(1e-9, (*many - *few) / (2 * (kMany - kFew)));
  }

 private:
  std::unique_ptr<Chain> few_, many_;
};

}  // namespace

Expected<std::unique_ptr<TimedOperators>> timed_operators() {
  auto few = Chain::make(kFew), many = Chain::make(kMany);
  if (!few) return few.error();
  if (!many) return many.error();
  return std::unique_ptr<TimedOperators>(new Chains(std::move(*few), std::move(*many)));
}

}  // namespace turnpoint::step
