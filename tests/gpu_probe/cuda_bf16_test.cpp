// SPDX-License-Identifier: Apache-2.0
// Steps in bf16 on a (emulated) CUDA device: every kernel against the same one in fp32 on the same numbers, whose
// result is rounded once; the update's masters; sums of many blocks; whole steps and plans against the unpartitioned
// step in double, off by what rounding explains, no less.
#include <fmt/format.h>
#include <QtTest>
#include <cmath>
#include <random>
#include <set>

#include "core/model/split_loss.h"
#include "core/search/registry.h"
#include "gpu_probe/emulated_gpu/bf16.h"
#include "gpu_probe/emulated_gpu/load.h"
#include "gpu_probe/step/cuda/run.h"
#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/kernels/kernels.h"
#include "gpu_probe/step/program.h"
#include "gpu_probe/step/run.h"
#include "gpu_probe/step/values/block.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"
#include "search/scenarios.h"

using namespace turnpoint;
namespace cuda = step::in_cuda;

namespace {

using Floats = std::vector<float>;

float rounded(float x) {
  emulated_gpu::Bf16 half{};
  half = x;
  return half;
}

void compute_in(ProbePrecision precision) {
  const auto fine = step::compute_on_gpu_in(precision);
  QVERIFY2(fine.has_value(), fine ? "" : fine.error().message().c_str());
}

void put(const Floats& numbers, step::Place to) { step::put(std::vector<double>(numbers.begin(), numbers.end()), to); }

step::Array on_device(const Floats& numbers) {
  step::Array array = step::Array::scratch(numbers.size());
  put(numbers, array.data());
  return array;
}
Floats from_device(const step::Array& array) {
  const auto numbers = step::numbers_of(array);
  return {numbers.begin(), numbers.end()};
}

/// One operator of a model, whole, on given numbers.
class OneOperator {
 public:
  OneOperator(const Model& model, OperatorId id) : model_(model), kernel_(*step::on_cuda().kernel_of(model, id)) {
    at_.model = &model;
    at_.id = id;
    for (const auto& dim : at_.op().dims) at_.loops.push_back({0, dim.size, dim.size, 1});
  }
  const Operator& op() const { return at_.op(); }
  const Tensor& tensor(const Access& access) const { return model_.tensors[access.tensor]; }

  Expected<std::vector<Floats>> forward(const std::vector<Floats>& in) {
    const auto inputs = blocks(op().inputs, in);
    const auto outputs = blocks(op().outputs, std::vector<Floats>(op().outputs.size()));
    if (auto done = kernel_.forward(at_, seen(inputs), wanted(outputs)); !done) return done.error();
    return numbers(outputs);
  }
  /// Gradients of the inputs that have one.
  Expected<std::vector<Floats>> backward(const std::vector<Floats>& in, const std::vector<Floats>& out,
                                         const std::vector<Floats>& gradient) {
    const auto inputs = blocks(op().inputs, in), outputs = blocks(op().outputs, out);
    auto gradients = blocks(op().outputs, gradient);
    for (std::size_t o = 0; o < gradients.size(); ++o)
      if (gradient[o].empty()) gradients[o] = nullptr;
    auto results = blocks(op().inputs, std::vector<Floats>(in.size()));
    for (std::size_t k = 0; k < results.size(); ++k)
      if (!tensor(op().inputs[k]).requires_gradient) results[k] = nullptr;
    if (auto done = kernel_.backward(at_, seen(inputs), seen(outputs), seen(gradients), wanted(results)); !done)
      return done.error();
    return numbers(results);
  }

 private:
  std::vector<step::Value> blocks(const std::vector<Access>& accesses, const std::vector<Floats>& values) {
    std::vector<step::Value> made;
    for (std::size_t k = 0; k < accesses.size(); ++k) {
      const step::Shape& shape = tensor(accesses[k]).shape;
      made.push_back(step::make_block(ledger_, {step::Shape(shape.size(), 0), shape}, 4));
      if (!values[k].empty()) put(values[k], made.back()->data.data());
    }
    return made;
  }
  static std::vector<const step::Block*> seen(const std::vector<step::Value>& values) {
    std::vector<const step::Block*> all;
    for (const auto& value : values) all.push_back(value.get());
    return all;
  }
  static std::vector<step::Block*> wanted(const std::vector<step::Value>& values) {
    std::vector<step::Block*> all;
    for (const auto& value : values) all.push_back(value.get());
    return all;
  }
  static Expected<std::vector<Floats>> numbers(const std::vector<step::Value>& values) {
    if (auto done = step::settle(); !done) return done.error();
    std::vector<Floats> all;
    for (const auto& value : values) all.push_back(value ? from_device(value->data) : Floats());
    return all;
  }

  const Model& model_;
  step::Kernel kernel_;
  step::LocalOperator at_;
  step::Ledger ledger_;
};

/// Numbers that bf16 has.
Floats draw(const Tensor& tensor, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats numbers(std::size_t(tensor.elements()));
  for (float& x : numbers) x = is_floating(tensor.type) ? rounded(uniform(random)) : float(random() % 97);
  return numbers;
}

/// Results that are rounded once are within half a unit of the exact ones. Some are rounded on the way as well: a
/// product before its bias is added, parts of a slice before they are, a recurrent operator's state at every time step.
double slack(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::recurrent: return 0.03;
    case OperatorKind::attention: return 0x1p-6;  // scores and probabilities are rounded on the way
    case OperatorKind::matmul:
    case OperatorKind::convolution:
    case OperatorKind::slice: return 0x1p-8;
    default: return 1e-5;
  }
}
std::string difference(const std::vector<Floats>& exact, const std::vector<Floats>& halves, double slack) {
  for (std::size_t t = 0; t < exact.size(); ++t) {
    if (exact[t].size() != halves[t].size()) return "another size";
    float scale = 0;
    for (const float x : exact[t]) scale = std::max(scale, std::abs(x));
    for (std::size_t i = 0; i < exact[t].size(); ++i) {
      const float y = halves[t][i];
      if (y != rounded(y)) return "no number of bf16";
      if (!(std::abs(y - exact[t][i]) <= 0x1p-8 * std::abs(exact[t][i]) + slack * scale))
        return fmt::format("tensor {}, element {} of {}: {} instead of {}, the largest is {}", t, i, exact[t].size(), y,
                           exact[t][i], scale);
    }
  }
  return {};
}

/// Of a whole step in bf16: what is wrong with it.
std::string fault(const Model& model, const Plan& plan, const step::StepOptions& options) {
  compute_in(ProbePrecision::bf16);
  const auto run = step::run_step(step::on_cuda(), model, plan, options);
  if (!run) return run.error().message();
  const auto whole = step::run_whole(step::in_double(), model, plan, options);
  if (!whole) return "unpartitioned: " + whole.error().message();
  const auto compared = step::compare(model, plan, *run, *whole);
  if (!compared) return compared.error().message();
  const StepRounding rounding = step::rounding_of(model, options, *run, *whole, *compared);
  if (qEnvironmentVariableIsSet("TURNPOINT_SHOW"))
    qInfo("%d operators: loss %.2e of %.2e, activations %.2e, gradients %.2e of %.2e, at %s",
          int(model.operators.size()), rounding.loss_error, rounding.loss_tolerance, compared->typical[0],
          rounding.gradient_error, rounding.gradient_tolerance, rounding.where.c_str());
  if (!rounding.holds())
    return fmt::format("loss off by {}, gradients by {}, at {}", rounding.loss_error, rounding.gradient_error,
                       rounding.where);
  if (!(compared->typical[0] <= rounding.loss_tolerance))
    return fmt::format("activations off by {}", compared->typical[0]);
  // fp32 is ten thousand times nearer.
  if (compared->typical[0] < 1e-4 || rounding.gradient_error < 1e-4) return "nothing was rounded";
  std::string where;
  if (step::traffic_error(*run, &where) > 1e-12) return "bytes: " + where;
  return {};
}

}  // namespace

class CudaBf16Test : public QObject {
  Q_OBJECT
  const step::ComputeIn here_{step::on_cuda()};

  static void each_model() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }
  std::set<OperatorKind> kinds_;

 private slots:
  void initTestCase() {
    if (const auto why = test::load_emulated_gpu(); !why.empty()) QSKIP(why.c_str());
    const auto opened = step::open_gpu(0);
    QVERIFY2(opened.has_value(), opened ? "" : opened.error().message().c_str());
  }
  void cleanup() { compute_in(ProbePrecision::fp32); }

  /// What the host, the library and the kernels make of a float is the nearest number, of two the even one.
  void numbers_become_the_nearest() {
    compute_in(ProbePrecision::bf16);
    Floats numbers{0.0f,   -0.0f,  1.0f,   1.00390625f, 1.01171875f, 1.0039063f, 3.4e38f,  -3.3895e38f,
                   1e-39f, 1e-45f, 255.5f, 256.5f,      258.0f,      259.0f,     INFINITY, -INFINITY};
    std::mt19937 random(3);
    for (int i = 0; i < 2000; ++i)
      numbers.push_back(std::ldexp(float(random() % 200001) - 100000.0f, int(random() % 60) - 40));
    const step::Array halves = on_device(numbers);
    step::Array whole = step::Array::whole_scratch(numbers.size()), again = step::Array::scratch(numbers.size());
    QCOMPARE(halves.data().element_bytes, 2);
    QCOMPARE(whole.data().element_bytes, 4);
    put(numbers, whole.data());
    step::copy(whole.data(), again.data(), numbers.size());
    step::copy(again.data(), whole.data(), numbers.size());
    const Floats by_host = from_device(halves), by_kernel = from_device(again), back = from_device(whole);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const float nearest = rounded(numbers[i]);
      QVERIFY2(by_host[i] == nearest && by_kernel[i] == nearest && back[i] == nearest,
               fmt::format("{}: {} {} {}, not {}", numbers[i], by_host[i], by_kernel[i], back[i], nearest).c_str());
    }
    const Floats none{NAN, -NAN};
    for (const float x : from_device(on_device(none))) QVERIFY(std::isnan(x));
    step::fill(again.data(), 1.5f, 7);
    const Floats filled = from_device(again);
    QVERIFY(filled[0] == 1.5f && filled[6] == 1.5f && filled[7] == rounded(numbers[7]));
    QVERIFY(step::settle().has_value());
  }

  void kernels_data() { each_model(); }
  void kernels() {
    QFETCH(int, model);
    const auto network = split_loss(test::step_models()[std::size_t(model)].make());
    std::mt19937 random(5);
    for (std::size_t i = 0; i < network->operators.size(); ++i) {
      if (network->operators[OperatorId(i)].kind == OperatorKind::input) continue;
      OneOperator one(*network, OperatorId(i));
      kinds_.insert(one.op().kind);
      std::vector<Floats> in, gradient;
      for (const auto& access : one.op().inputs) in.push_back(draw(one.tensor(access), random));
      for (const auto& access : one.op().outputs)
        gradient.push_back(one.tensor(access).requires_gradient ? draw(one.tensor(access), random) : Floats());
      // What backward reads of the outputs is the same in both.
      compute_in(ProbePrecision::fp32);
      auto exact = one.forward(in);
      QVERIFY2(exact.has_value(), exact ? "" : exact.error().message().c_str());
      std::vector<Floats> out = *exact;
      for (auto& tensor : out)
        for (float& x : tensor) x = rounded(x);
      const bool returns = std::any_of(gradient.begin(), gradient.end(), [](const Floats& g) { return !g.empty(); });
      auto exact_back = returns ? one.backward(in, out, gradient) : Expected(std::vector<Floats>());
      QVERIFY2(exact_back.has_value(), exact_back ? "" : exact_back.error().message().c_str());
      compute_in(ProbePrecision::bf16);
      const auto halves = one.forward(in);
      QVERIFY2(halves.has_value(), halves ? "" : halves.error().message().c_str());
      const auto halves_back = returns ? one.backward(in, out, gradient) : Expected(std::vector<Floats>());
      QVERIFY2(halves_back.has_value(), halves_back ? "" : halves_back.error().message().c_str());
      const double allowed = slack(one.op().kind);
      const std::string forward = difference(*exact, *halves, allowed),
                        backward = difference(*exact_back, *halves_back, allowed);
      QVERIFY2(forward.empty(), (one.op().name + ", forward: " + forward).c_str());
      QVERIFY2(backward.empty(), (one.op().name + ", backward: " + backward).c_str());
    }
  }
  void kernels_of_every_family() {
    for (const auto kind : {OperatorKind::matmul, OperatorKind::convolution, OperatorKind::recurrent,
                            OperatorKind::embedding, OperatorKind::elementwise, OperatorKind::softmax,
                            OperatorKind::normalisation, OperatorKind::batch_normalisation, OperatorKind::pooling,
                            OperatorKind::reduction, OperatorKind::view, OperatorKind::concat, OperatorKind::slice,
                            OperatorKind::gather, OperatorKind::loss_statistics, OperatorKind::cross_entropy,
                            OperatorKind::opaque})
      QVERIFY2(kinds_.count(kind) == 1, QByteArray::number(int(kind)));
  }

  /// Convolutions by kernels of our own, sums of many blocks: bf16 would stop at 256.
  void sums_are_whole() {
    compute_in(ProbePrecision::bf16);
    const std::size_t count = 60000;
    const step::Array ones = on_device(Floats(count, 1.0f));
    step::Array sum = step::Array::scratch(1);
    const step::Strides zero{0};
    cuda::sum_over({std::int64_t(count)}, {zero, step::Strides{1}, zero, zero, zero}, cuda::SumOf::a,
                   {ones.data(), {}, {}, {}, {}}, sum.data(), 1);
    QCOMPARE(from_device(sum)[0], rounded(float(count)));
    QVERIFY(step::settle().has_value());
  }

  /// A hundred steps, each of them a tenth of what changes a weight that is kept in 2 bytes.
  void masters_keep_what_weights_lose() {
    compute_in(ProbePrecision::bf16);
    const std::size_t count = 37;
    for (const auto rule : {step::UpdateRule::sgd, step::UpdateRule::momentum, step::UpdateRule::adam}) {
      const step::Array gradient = on_device(Floats(count, 0.5f));
      step::Array weights = on_device(Floats(count, 1.0f)), master = step::Array::whole_scratch(count),
                  m = step::Array::whole_scratch(count), v = step::Array::whole_scratch(count);
      step::fill(master.data(), 1, count);
      m.clear();
      v.clear();
      double w = 1, mean = 0, square = 0;
      for (int i = 0; i < 100; ++i) {
        step::apply(rule, 4e-4f, gradient.data(), weights.data(), master.data(), m.data(), v.data(), count);
        mean = rule == step::UpdateRule::momentum ? 0.9 * mean + 0.5 : 0.9 * mean + 0.1 * 0.5;
        square = 0.999 * square + 0.001 * 0.25;
        w -= 4e-4 * (rule == step::UpdateRule::sgd        ? 0.5
                     : rule == step::UpdateRule::momentum ? mean
                                                          : mean / (std::sqrt(square) + 1e-8));
      }
      const Floats whole = from_device(master), halves = from_device(weights);
      for (std::size_t i = 0; i < count; ++i) {
        QVERIFY2(std::abs(whole[i] - w) < 1e-5, fmt::format("{} instead of {}", whole[i], w).c_str());
        QCOMPARE(halves[i], rounded(whole[i]));
      }
      QVERIFY(w < 0.99);
    }
    QVERIFY(step::settle().has_value());
  }

  /// Numbers of the other precision never reach a kernel.
  void precisions_are_not_mixed_up() {
    compute_in(ProbePrecision::bf16);
    const step::Array whole = step::Array::whole_scratch(8);
    const cuda::real* taken = cuda::address(whole.data());
    QVERIFY(taken);
    const auto failed = step::settle();
    QVERIFY(!failed.has_value() && failed.error().what.find("another precision") != std::string::npos);
    cuda::Device::get().trouble.reset();
  }

  void whole_steps_data() { each_model(); }
  void whole_steps() {
    QFETCH(int, model);
    const auto network = split_loss(test::step_models()[std::size_t(model)].make());
    for (const auto rule : {step::UpdateRule::sgd, step::UpdateRule::adam}) {
      step::StepOptions options;
      options.record = true;
      options.rule = rule;
      const std::string wrong = fault(*network, step::whole_plan(*network), options);
      QVERIFY2(wrong.empty(), wrong.c_str());
    }
  }

  void plans_data() { each_model(); }
  void plans() {
    QFETCH(int, model);
    const auto network = test::step_models()[std::size_t(model)].make();
    int plans = 0;
    for (const char* hardware : {"a100-80gb-1x2", "a100-80gb-2x2"}) {
      const auto cluster = cluster_preset(hardware);
      QVERIFY(cluster.has_value());
      Settings settings;
      settings.batch = network->batch;
      settings.precision = Precision::bf16;
      settings.loss = LossPrecision::as_activations;  // as the probe's kernels have it
      const auto scenario = make_scenario(network, *cluster, hardware, settings);
      QVERIFY(scenario.has_value());
      for (const char* method : {"ft:micro-batches=1", "fsdp"}) {
        const auto result = test::run(method, *scenario);
        if (!result || (*result)->points.empty() || !(*result)->plans) continue;
        const std::size_t count = (*result)->points.size();
        for (std::size_t p = 0; p < count; p += std::max<std::size_t>(1, count / 2)) {
          const Plan plan = (*result)->plans->sharding(p);
          if (plan.pipeline) continue;
          const std::string wrong = fault(*(*scenario)->model, plan, test::step_options(settings));
          QVERIFY2(wrong.empty(),
                   (std::string(method) + " on " + hardware + ", point " + std::to_string(p) + ": " + wrong).c_str());
          ++plans;
        }
      }
    }
    QVERIFY(plans > 1);
  }
};

QTEST_APPLESS_MAIN(CudaBf16Test)
#include "cuda_bf16_test.moc"
