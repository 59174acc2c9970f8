// SPDX-License-Identifier: Apache-2.0
// The step in float, by its fast kernels, is the step in double up to the rounding of float: every activation, gradient
// and updated parameter of every kind of operator, whole and partitioned; and the fast kernels are what is used.
#include <QtTest>
#include <random>

#include "core/model/split_loss.h"
#include "core/search/registry.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;

namespace {

// Of the largest element of a tensor: some hundred terms, a few dozen operators deep, each 6e-8 off, and differences of
// near numbers behind normalisations.
constexpr double kRoundingOfFloat = 2e-4;

// One element in a thousand may be further off: at a tie, a maximum, a threshold or a routing goes another way.
struct Difference {
  double most = 0, typical = 0;
  std::string where;
};

Difference difference(const Model& model, const step::StepRun& a, const step::StepRun& b) {
  Difference result;
  const auto& x = a.ranks.front().recorded;
  const auto& y = b.ranks.front().recorded;
  if (x.size() != y.size()) return {1e9, 1e9, "another number of tensors"};
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i].op != y[i].op || x[i].kind != y[i].kind || x[i].data.size() != y[i].data.size())
      return {1e9, 1e9, "tensors differ in kind"};
    double scale = 1e-6, sum = 0;
    for (const double v : y[i].data) scale = std::max(scale, std::abs(v));
    for (std::size_t j = 0; j < x[i].data.size(); ++j) {
      const double off = std::abs(x[i].data[j] - y[i].data[j]) / scale;
      sum += off;
      if (!(off <= result.most)) {
        result.most = std::isfinite(off) ? off : 1e9;
        result.where = model.operators[x[i].op].name + ": " + to_string(x[i].kind);
      }
    }
    result.typical = std::max(result.typical, sum / double(x[i].data.size()));
  }
  return result;
}

}  // namespace

class StepFloatTest : public QObject {
  Q_OBJECT

 private slots:
  void whole_steps_data() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }
  void whole_steps() {
    QFETCH(int, model);
    const auto network = split_loss(test::step_models()[std::size_t(model)].make());
    for (const auto rule : {step::UpdateRule::sgd, step::UpdateRule::momentum, step::UpdateRule::adam}) {
      step::StepOptions options;
      options.record = true;
      options.rule = rule;
      const Plan plan = step::whole_plan(*network);
      const auto exact = step::run_step(step::in_double(), *network, plan, options);
      QVERIFY2(exact.has_value(), exact ? "" : exact.error().message().c_str());
      const auto fast = step::run_step(step::in_float(), *network, plan, options);
      QVERIFY2(fast.has_value(), fast ? "" : fast.error().message().c_str());
      options.plain = true;
      const auto plain = step::run_step(step::in_float(), *network, plan, options);
      QVERIFY(plain.has_value());
      const Difference rounding = difference(*network, *plain, *exact), off = difference(*network, *fast, *exact);
      QVERIFY2(off.most < std::max(kRoundingOfFloat, 4 * rounding.most),
               qPrintable(QString("%1 at %2; the plain loops are %3 off")
                              .arg(off.most)
                              .arg(QString::fromStdString(off.where))
                              .arg(rounding.most)));
      QVERIFY2(off.typical < 1e-4, qPrintable(QString::number(off.typical)));
      QVERIFY(std::abs(fast->loss - exact->loss) < 1e-4 * std::max(1.0, std::abs(exact->loss)));
    }
  }

  // Partitioned in float against whole in double.
  void partitioned_steps_data() { whole_steps_data(); }
  void partitioned_steps() {
    QFETCH(int, model);
    for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-2x2"}) {
      const auto network = test::step_models()[std::size_t(model)].make();
      const auto cluster = cluster_preset(hardware);
      Settings settings;
      settings.batch = network->batch;
      const auto scenario = make_scenario(network, *cluster, hardware, settings);
      QVERIFY(scenario.has_value());
      const auto result =
          (*make_searcher(**find_method("ft"), "micro-batches=1"))->run(*scenario, SearchPass::exact, {});
      QVERIFY(result.has_value());
      const auto options = test::step_options(settings);
      const std::size_t count = (*result)->points.size();
      for (std::size_t p = 0; p < count; p += std::max<std::size_t>(1, count / 4)) {
        const Plan plan = (*result)->plans->sharding(p);
        const auto fast = step::run_step(step::in_float(), *(*scenario)->model, plan, options);
        QVERIFY2(fast.has_value(), fast ? "" : fast.error().message().c_str());
        const auto whole = step::run_whole(step::in_double(), *(*scenario)->model, plan, options);
        QVERIFY(whole.has_value());
        const auto compared = step::compare(*(*scenario)->model, plan, *fast, *whole);
        QVERIFY2(compared.has_value(), compared ? "" : compared.error().message().c_str());
        // Adam divides by the root of what may be near 0: updated parameters are compared by their gradients.
        double most = compared->loss;
        for (const auto kind :
             {step::Compared::activation, step::Compared::activation_gradient, step::Compared::parameter_gradient})
          most = std::max(most, compared->worst[std::size_t(kind)]);
        QVERIFY2(most < 5e-4, (std::string(hardware) + ": " + compared->where + " " + std::to_string(most)).c_str());
        QVERIFY(step::traffic_error(*fast) < 1e-12);
      }
    }
  }
};

QTEST_APPLESS_MAIN(StepFloatTest)
#include "step_float_test.moc"
