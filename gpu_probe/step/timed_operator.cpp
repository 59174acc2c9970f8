// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/timed_operator.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/model/builder.h"
#include "gpu_probe/step/rank_step.h"
#include "gpu_probe/step/run.h"

namespace turnpoint::step {

namespace {

constexpr int kOperators = 32;
constexpr std::int64_t kSamples = 4, kWidth = 16;

Expected<ModelPtr> chain() {
  ModelBuilder builder("chain", "turnpoint-probe", kSamples, 0);
  TensorId x = builder.input("x", {kSamples, kWidth}, {DimName::batch, DimName::channel}, ElementType::f32);
  // A parameter in front, so that there is a backward.
  x = builder.elementwise("scale", "Mul", std::array{x, builder.parameter("w", {kWidth}, {DimName::channel})});
  for (int i = 0; i < kOperators; ++i)
    x = builder.elementwise("relu" + std::to_string(i), "Relu", std::array{x}, {1, true, {}});
  return builder.finish({x});
}

class Chain : public TimedOperators {
 public:
  Chain(ModelPtr model, Plan plan) : model_(std::move(model)), plan_(std::move(plan)) {}

  Expected<void> prepare() {
    const ComputeIn here(in_float());
    StepOptions options;
    options.learning_rate = 1e-5;
    options.quick = true;
    auto program = Program::make(*model_, plan_, options);
    if (!program) return program.error();
    program_ = std::move(*program);
    step_ = std::make_unique<RankStep>(*program_, *communicator_);
    return {};
  }

  Expected<double> once() override {
    const ComputeIn here(in_float());
    if (auto done = step_->run(); !done) return done.error();
    std::vector<double> seconds;
    for (std::size_t i = 0; i < model_->operators.size(); ++i) {
      if (model_->operators[OperatorId(i)].inputs.size() != 1) continue;
      const PhaseSeconds& phases = step_->report().seconds[i];
      for (const StepPhase phase : {StepPhase::forward, StepPhase::backward})
        seconds.push_back(phases[static_cast<std::size_t>(phase)]);
    }
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
  }

 private:
  ModelPtr model_;
  Plan plan_;
  std::shared_ptr<const Program> program_;
  std::unique_ptr<Communicator> communicator_ = lone_communicator(1, 0);
  std::unique_ptr<RankStep> step_;
};

}  // namespace

Expected<std::unique_ptr<TimedOperators>> timed_operators() {
  auto model = chain();
  if (!model) return model.error();
  Plan plan = whole_plan(**model);
  auto made = std::make_unique<Chain>(std::move(*model), std::move(plan));
  if (auto ready = made->prepare(); !ready) return ready.error();
  return std::unique_ptr<TimedOperators>(std::move(made));
}

}  // namespace turnpoint::step
