// SPDX-License-Identifier: Apache-2.0
// The largest batch that fits, against all batches one by one; what no batch can be chosen of; limits at which nothing
// fits; stopping.
#include <QtTest>
#include <algorithm>
#include <functional>
#include <optional>

#include "core/search/fitting_batch.h"
#include "core/search/largest_batch.h"
#include "core/search/registry.h"
#include "core/search/scenario_of.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

/// A model that is built for the batch that is asked for; `only`: it has no other.
class Built : public ModelSource {
 public:
  using Make = std::function<ModelPtr(std::int64_t)>;
  explicit Built(Make make, std::int64_t only = 0) : make_(std::move(make)), only_(only) {}
  std::string name() const override { return "built"; }
  std::string source() const override { return "built"; }
  Expected<ModelPtr> bind(const ModelBinding& binding) const override {
    if (only_ > 0 && binding.batch != only_) return bad_input("cannot be bound", "built");
    return make_(binding.batch);
  }

 private:
  Make make_;
  std::int64_t only_;
};

ModelSourcePtr mlp() {
  return std::make_shared<Built>([](std::int64_t batch) { return test::mlp(batch); });
}

ScenarioPtr scenario(const ModelSource& source, std::int64_t batch, const std::string& hardware, std::int64_t limit) {
  Settings settings;
  settings.batch = batch;
  settings.memory_limit = limit;
  auto made = scenario_of(source, hardware, settings);
  if (!made) qFatal("%s", made.error().message().c_str());
  return *made;
}

Contender of(const char* text) {
  const auto choice = choose_method(text);
  if (!choice) qFatal("no method %s", text);
  auto made = batch_contender(*choice->method, choice->parameters);
  if (!made) qFatal("%s", made.error().message().c_str());
  return *made;
}

/// Whether a search has a plan that fits by its simulated peak.
bool fits(const Contender& method, const ScenarioPtr& scenario, SearchPass pass) {
  if (!method.refuses(*scenario).empty()) return false;
  auto found = method.make()->run(scenario, pass, {});
  if (!found) qFatal("%s", found.error().message().c_str());
  found = judged_by_peaks(*found, {});
  if (!found) qFatal("%s", found.error().message().c_str());
  return (*found)->fastest_that_fits().has_value();
}

/// The largest of all batches from `least` to `most` that fits, looked at one by one as the objective looks at them; 0:
/// none.
std::int64_t largest_of_all(const Contender& method, const ModelSource& source, const ScenarioPtr& on,
                            std::int64_t least, std::int64_t most) {
  std::int64_t largest = 0;
  for (std::int64_t batch = least; batch <= most; ++batch)
    if (fits(method, *with_batch(source, on, batch), SearchPass::coarse)) largest = batch;
  return largest;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

}  // namespace

class LargestBatchTest : public QObject {
  Q_OBJECT

 private slots:
  void against_every_batch_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("method");
    QTest::addColumn<qint64>("begin");
    QTest::addColumn<qint64>("limit");
    for (const char* method : {"ft", "data-parallel", "fsdp", "optcnn", "pardnn", "heft", "single-device"}) {
      QTest::addRow("mlp %s", method) << "mlp" << method << qint64(20) << qint64(60 << 10);
      if (method != std::string("ft"))
        QTest::addRow("lenet %s", method) << "lenet" << method << qint64(256) << qint64(3 << 20);
    }
    for (const qint64 begin : {1, 512})
      QTest::addRow("mlp from %lld", begin) << "mlp"
                                            << "fsdp" << begin << qint64(60 << 10);
  }
  void against_every_batch() {
    QFETCH(const QString, model);
    QFETCH(const QString, method);
    QFETCH(const qint64, begin);
    QFETCH(const qint64, limit);
    const ModelSourcePtr source = model == "mlp" ? mlp() : *open_model("builtin:lenet");
    const ScenarioPtr whole = scenario(*source, begin, "v100-16gb-1x4", limit);
    const Contender contender = of(qPrintable(method));
    const std::vector<int> counts{1, 2};
    const auto found = largest_batches(contender, *source, whole, counts, {});
    QVERIFY2(found.has_value(), found ? "" : found.error().message().c_str());
    QCOMPARE(found->size(), counts.size());
    // Few plans of a frontier have a simulated peak, and which ones differs from batch to batch.
    const std::int64_t resolution = method == "ft" ? kBatchResolution / 2 : kBatchResolution;
    double base = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const Result& result = *(*found)[i];
      QCOMPARE(result.scenario->cluster->devices(), counts[i]);
      QCOMPARE(result.objective, std::string("largest-batch"));
      QCOMPARE(result.points.size(), std::size_t(1));
      QVERIFY(result.points.front().fits);
      const std::int64_t batch = result.scenario->settings.batch;
      QCOMPARE(result.scenario->model->batch, batch);
      const auto all = largest_of_all(contender, *source, *on_devices(whole, counts[i]), batch, 2 * batch + 4);
      QVERIFY(fits(contender, result.scenario, SearchPass::exact));
      QVERIFY2(all > 0 && all - batch <= std::max<std::int64_t>(1, batch / resolution) - 1,
               qPrintable(QString("%1 on %2, not %3").arg(all).arg(counts[i]).arg(batch)));
      const double rate = double(batch) / result.points.front().time_s;
      if (i == 0) base = rate;
      QVERIFY(close(*result.samples_per_second, rate));
      QVERIFY(close(*result.speed_up, rate / base));
    }
  }

  /// 7, 14, 28 and 56 samples on eight devices are seven on each; between 56 and 112 those that eight divides are less.
  void batches_that_the_devices_divide_come_first() {
    const auto source = mlp();
    const Contender method = of("data-parallel");
    const ScenarioPtr whole = scenario(*source, 7, "v100-16gb-1x8", 60 << 10);
    const auto found = largest_batches(method, *source, whole, {8}, {});
    QVERIFY(found.has_value());
    const std::int64_t batch = (*found)[0]->scenario->settings.batch;
    QCOMPARE(batch % 8, 0);
    QCOMPARE(largest_of_all(method, *source, whole, batch, 2 * batch + 8) / 8 * 8, batch);
  }

  void where_nothing_fits_the_least_is_shown() {
    const auto source = mlp();
    for (const char* method : {"ft", "data-parallel", "pardnn"}) {
      const auto found =
          largest_batches(of(method), *source, scenario(*source, 64, "v100-16gb-1x4", 1000), {1, 2, 4}, {});
      QVERIFY2(found.has_value(), method);
      QCOMPARE(found->size(), std::size_t(3));
      for (const auto& result : *found) {
        QCOMPARE(result->points.size(), std::size_t(1));
        QVERIFY(!result->points.front().fits);
        QVERIFY(result->points.front().memory_bytes > 1000);
        QVERIFY(!result->samples_per_second && !result->speed_up);
        QVERIFY(!result->notes.empty());
      }
      QCOMPARE((*found)[0]->scenario->settings.batch, std::int64_t(1));
    }
  }

  void a_batch_that_cannot_change_is_refused() {
    const Built fixed([](std::int64_t batch) { return test::mlp(batch); }, 64);
    const ScenarioPtr whole = scenario(fixed, 64, "v100-16gb-1x2", std::int64_t(1) << 30);
    QVERIFY(!check_batch_can_change(fixed, *whole).has_value());
    const auto found = largest_batches(of("ft"), fixed, whole, {1, 2}, {});
    QVERIFY(!found && found.error().code == ErrorCode::usage);
    QVERIFY(found.error().what.find("built") != std::string::npos);
    // What says yes to every batch and means one.
    const Built stubborn([](std::int64_t) { return test::mlp(64); });
    QVERIFY(!check_batch_can_change(stubborn, *whole).has_value());
    QVERIFY(check_batch_can_change(*mlp(), *whole).has_value());
  }

  void every_number_of_micro_batches_is_refused_and_one_is_the_default() {
    QCOMPARE(of("ft").name, std::string("ft:micro-batches=1"));
    QCOMPARE(of("ft:micro-batches=4").name, std::string("ft:micro-batches=4"));
    QCOMPARE(of("data-parallel").name, std::string("data-parallel"));
    QCOMPARE(of("pardnn").name, std::string("pardnn"));
    const auto all = batch_contender(**find_method("ft"), "micro-batches=all");
    QVERIFY(!all && all.error().code == ErrorCode::usage);
    // In parts more samples fit.
    const auto source = mlp();
    const ScenarioPtr whole = scenario(*source, 64, "v100-16gb-1x1", 96 << 10);
    const auto batch = [&](const char* method) {
      return (*largest_batches(of(method), *source, whole, {1}, {}))[0]->scenario->settings.batch;
    };
    QVERIFY(batch("ft:micro-batches=4") > batch("ft"));
  }

  void it_reports_and_stops() {
    const auto source = mlp();
    const ScenarioPtr whole = scenario(*source, 64, "v100-16gb-1x4", 96 << 10);
    std::stop_source stop;
    RunContext context;
    context.stop = stop.get_token();
    double before = 0;
    context.progress = [&](const Progress& progress) {
      QVERIFY(progress.phase.find("batch") != std::string::npos);
      QVERIFY(progress.fraction >= 0 && progress.fraction <= 1);
      before = std::max(before, progress.fraction);
    };
    QVERIFY(largest_batches(of("ft"), *source, whole, {1, 2, 4}, context).has_value());
    QVERIFY(before > 0.5);
    const auto between =
        largest_batches(of("ft"), *source, whole, {1, 2, 4}, context, [&](const ResultPtr&) { stop.request_stop(); });
    QVERIFY(!between && between.error().code == ErrorCode::cancelled);
    const auto at_once = largest_batches(of("pardnn"), *source, whole, {1, 2}, context);
    QVERIFY(!at_once && at_once.error().code == ErrorCode::cancelled);
  }
};

QTEST_APPLESS_MAIN(LargestBatchTest)
#include "largest_batch_test.moc"
