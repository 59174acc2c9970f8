// SPDX-License-Identifier: Apache-2.0
// The largest batch that fits, against all batches one by one; what no batch can be chosen of; limits at which nothing
// fits; stopping.
#include <QtTest>
#include <algorithm>
#include <functional>
#include <optional>

#include "core/schedule/simulated_points.h"
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

/// Twelve layers alike: while the last one's tensors are kept, the first one's gradients are far away.
ModelSourcePtr deep() {
  return std::make_shared<Built>([](std::int64_t batch) {
    ModelBuilder b("deep", "test", batch, 0);
    TensorId x = b.input("x", {batch, 32}, {DimName::batch, DimName::channel}, ElementType::f32);
    for (int layer = 0; layer < 12; ++layer) {
      const std::string at = std::to_string(layer);
      x = b.linear("fc" + at, x, b.parameter("w" + at, {32, 32}));
    }
    return test::finished(b, x);
  });
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

/// Whether any plan of an exact search fits by its simulated peak: all of them are simulated.
bool fits(const Contender& method, const ScenarioPtr& scenario) {
  if (!method.refuses(*scenario).empty()) return false;
  const auto found = method.make()->run(scenario, SearchPass::exact, {});
  if (!found) qFatal("%s", found.error().message().c_str());
  const auto all = with_simulated_points(*found, {});
  if (!all) qFatal("%s", all.error().message().c_str());
  return std::any_of((*all)->points.begin(), (*all)->points.end(), [&](const ResultPoint& point) {
    return *point.simulated_memory_bytes <= scenario->memory_limit();
  });
}

/// The largest of all batches from `least` to `most` that fits, looked at one by one; 0: none. `divisible`: of those
/// that the devices divide. A batch of another size has no plan that splits it, and the plans that are then on the
/// frontier may have smaller peaks than those of a smaller batch.
std::int64_t largest_of_all(const Contender& method, const ModelSource& source, const ScenarioPtr& on,
                            std::int64_t least, std::int64_t most, bool divisible = false) {
  std::int64_t largest = 0;
  for (std::int64_t batch = least; batch <= most; ++batch)
    if ((!divisible || batch % on->cluster->devices() == 0) && fits(method, *with_batch(source, on, batch)))
      largest = batch;
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
    double base = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const Result& result = *(*found)[i];
      QCOMPARE(result.scenario->cluster->devices(), counts[i]);
      QCOMPARE(result.objective, std::string("largest-batch"));
      QCOMPARE(result.points.size(), std::size_t(1));
      QVERIFY(result.points.front().fits);
      const std::int64_t batch = result.scenario->settings.batch;
      QCOMPARE(result.scenario->model->batch, batch);
      const auto all =
          largest_of_all(contender, *source, *on_devices(whole, counts[i]), batch, 2 * batch + 4, method == "ft");
      QVERIFY(fits(contender, result.scenario));
      QVERIFY2(all > 0 && all - batch <= std::max<std::int64_t>(1, batch / kBatchResolution) - 1,
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

  /// Gradients of parameters are not there yet when the kept tensors are most: a peak may be below the plain sum.
  void what_fits_by_its_peak_alone_is_found() {
    const auto source = deep();
    int seen = 0;
    for (const std::int64_t batch : {24, 32, 48}) {
      for (const char* method : {"data-parallel", "ft"}) {
        const auto unlimited = scenario(*source, batch, "v100-16gb-1x1", std::int64_t(1) << 30);
        const auto all = with_simulated_points(*of(method).make()->run(unlimited, SearchPass::exact, {}), {});
        QVERIFY(all.has_value());
        std::int64_t least_sum = (*all)->points.front().memory_bytes, least_peak = std::int64_t(1) << 40;
        for (const ResultPoint& point : (*all)->points)
          least_peak = std::min(least_peak, *point.simulated_memory_bytes);
        if (least_peak >= least_sum) continue;
        ++seen;
        const auto tight = scenario(*source, batch, "v100-16gb-1x1", least_peak);
        const auto found = largest_batches(of(method), *source, tight, {1}, {});
        QVERIFY(found.has_value());
        QVERIFY2((*found)[0]->points.front().fits, method);
        QCOMPARE((*found)[0]->scenario->settings.batch, batch);
      }
    }
    QVERIFY(seen > 0);
  }

  /// The words about the next larger batch are true of all its plans.
  void what_is_said_of_the_next_larger_batch_is_so() {
    const auto source = open_model("builtin:gpt2?layers=1&sequence=64");
    QVERIFY(source.has_value());
    const Contender method = of("ft");
    for (const std::int64_t mib : {900, 2200}) {
      const ScenarioPtr whole = scenario(**source, 64, "v100-16gb-1x4", mib << 20);
      const auto found = largest_batches(method, **source, whole, {1, 4}, {});
      QVERIFY2(found.has_value(), found ? "" : found.error().message().c_str());
      for (const ResultPtr& result : *found) {
        QVERIFY(result->points.front().fits);
        QVERIFY(*result->points.front().simulated_memory_bytes <= mib << 20);
        const std::int64_t batch = result->scenario->settings.batch, step = std::max<std::int64_t>(1, batch / 16);
        std::int64_t next = batch + 1;
        const auto words = [&] { return QString("a batch of %1 fits, and one of %2 does not").arg(batch).arg(next); };
        while (next < batch + step && words().toStdString() != result->explanations.back()) ++next;
        QVERIFY2(result->explanations.back() == words().toStdString(), result->explanations.back().c_str());
        const ScenarioPtr here = *on_devices(whole, result->scenario->cluster->devices());
        QVERIFY(fits(method, *with_batch(**source, here, batch)));
        for (const std::int64_t larger : {next, batch + 2 * step, 2 * batch})
          QVERIFY2(!fits(method, *with_batch(**source, here, larger)), qPrintable(QString::number(larger)));
      }
    }
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
