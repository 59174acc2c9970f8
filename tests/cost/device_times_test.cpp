// SPDX-License-Identifier: Apache-2.0
// Times inside the caches and outside them, joined by what a step leaves in the caches.
#include <QTest>
#include <algorithm>

#include "core/hardware/cache_misses.h"
#include "core/model/builder.h"
#include "core/plan/one_stage.h"
#include "cost/round_setting.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr double kFirst = 32 * 64, kSecond = 64 * 16, kParameters = kFirst + kSecond;

ModelPtr two_products(std::int64_t batch) {
  ModelBuilder b("two", "test", batch, 0);
  TensorId x = b.input("x", {batch, 32}, {DimName::batch, DimName::channel}, ElementType::f32);
  x = b.linear("a", x, b.parameter("wa", {32, 64}));
  return *b.finish({b.linear("b", x, b.parameter("wb", {64, 16}))});
}

const Operator& first_of(const Model& model) { return *std::ranges::find(model.operators, "a", &Operator::name); }

/// What each of two devices goes through: 8 bytes a parameter and an activation, 8 more of Adam's state.
double set_of(std::int64_t batch, bool with_update) {
  return (kParameters * (with_update ? 16 : 8) + double(batch) * (64 + 16) * 8) / 2;
}

void measured_product(Cluster& cluster) {
  std::vector<std::int64_t> dims;
  const ModelPtr model = two_products(512);
  for (const LoopDimension& dim : first_of(*model).dims) dims.push_back(dim.size);
  cluster.operators = {{"matmul", dims, Precision::fp32, "forward", 9e-6, 3e-6}};
  cluster.fits = {{"matmul", "forward", Precision::fp32, 4e-6, 2e-12, 3e-11, 9},
                  {"matmul", "backward", Precision::fp32, 6e-6, 0, 0, 9}};
  cluster.warm_fits = {{"matmul", "forward", Precision::fp32, 1e-6, 1e-12, 1e-11, 9}};
  cluster.device.cache_bandwidth = 4e11;
}

}  // namespace

class DeviceTimesTest : public QObject {
  Q_OBJECT

 private slots:
  void a_step_goes_through_what_it_keeps() {
    for (const std::int64_t batch : {8, 1024}) {
      const ModelPtr model = two_products(batch);
      for (const bool with_update : {false, true})
        QCOMPARE(working_set_bytes(*model, Settings(), 2, with_update), set_of(batch, with_update));
    }
    Settings half;
    half.precision = Precision::bf16;
    QCOMPARE(working_set_bytes(*two_products(8), half, 2, false), (kParameters * 4 + 8.0 * (64 + 16) * 4) / 2);
  }

  // A small batch lies in the caches, a large one outside, one between has its share: measured times, fits and rates.
  void by_the_share_that_the_step_finds_in_the_caches() {
    const double cache = set_of(8, true);
    for (const std::int64_t batch : {8, 256, 1024}) {
      const double missed = miss_share(set_of(batch, false), cache), in_update = miss_share(set_of(batch, true), cache);
      QVERIFY(batch == 8 ? missed == 0 && in_update == 0 : missed > 0.1 && missed < in_update && in_update < 1);
      const Setting s(two_products(batch), 1, 2, {}, [&](Cluster& cluster) {
        measured_product(cluster);
        cluster.device.cache_bytes = std::int64_t(cache);
      });
      const auto mixed = [&](double warm, double cold) { return warm + missed * (cold - warm); };
      const Operator& second = s.scenario.model->operators[s.find("b")];
      const PhaseWork work = s.costs->work(second, {}, false);
      const CostBreakdown b = s.costs->cost(s.find("b"), {}).breakdown;
      QVERIFY(close(b.compute[std::size_t(ComputePart::forward)],
                    mixed(1e-6, 4e-6) + work.flop * mixed(1e-12, 2e-12) + work.bytes * mixed(1e-11, 3e-11)));
      QVERIFY(close(b.compute[std::size_t(ComputePart::backward)], 6e-6));  // nothing is known of it in the caches
      const double bytes = s.costs->update_bytes(s.find("b"), {}, {});
      QVERIFY(close(b.compute[std::size_t(ComputePart::update)],
                    bytes * (1 / 4e11 + in_update * (1 / 1e11 - 1 / 4e11)) + 1e-6));
    }
    const Setting measured(two_products(512), 1, 1, {}, [&](Cluster& cluster) {
      measured_product(cluster);
      cluster.device.cache_bytes = std::int64_t(cache);
    });
    QVERIFY(close(measured.costs->forward_s(measured.find("a"), {}),
                  3e-6 + miss_share(2 * set_of(512, false), cache) * 6e-6));
  }

  // Before an update comes back to a number, a step has gone through the optimizer state as well.
  void fits_of_updates_have_their_own_share() {
    const double cache = set_of(8, true), in_update = miss_share(set_of(16, true), cache);
    const Setting s(two_products(16), 1, 2, {}, [&](Cluster& cluster) {
      cluster.fits = {{kUpdateKind, kUpdateKind, Precision::fp32, 8e-6, 0, 2e-11, 9}};
      cluster.warm_fits = {{kUpdateKind, kUpdateKind, Precision::fp32, 2e-6, 0, 5e-12, 9}};
      cluster.device.cache_bytes = std::int64_t(cache);
    });
    QVERIFY(in_update > 0.1 && miss_share(set_of(16, false), cache) == 0);
    const CostBreakdown b = s.costs->cost(s.find("b"), {}).breakdown;
    QVERIFY(
        close(b.compute[std::size_t(ComputePart::update)],
              2e-6 + in_update * 6e-6 + s.costs->update_bytes(s.find("b"), {}, {}) * (5e-12 + in_update * 1.5e-11)));
  }

  // A stage's device goes through its part of the model alone: of two stages on two devices each as much as of one.
  void stages_find_as_much_in_the_caches() {
    const double cache = set_of(8, true);
    const Setting s(two_products(256), 1, 2, {}, [&](Cluster& cluster) {
      measured_product(cluster);
      cluster.device.cache_bytes = std::int64_t(cache);
    });
    const auto stage = one_stage_of(s.scenario, 2, 1);
    QVERIFY(stage.has_value());
    QCOMPARE((*stage)->cluster->devices(), 1);
    QCOMPARE(DeviceTimes(**stage).bytes_per_second, DeviceTimes(s.scenario).bytes_per_second);
  }

  // Without a cache that was seen, times are those outside it, whatever else a profile holds.
  void without_caches_nothing_changes() {
    const Setting s(two_products(512), 1, 1, {}, measured_product);
    QVERIFY(close(s.costs->forward_s(s.find("a"), {}), 9e-6));
    const Setting twice(
        two_products(512), 1, 1, [](Settings& settings) { settings.factors.device_speed = 2; }, measured_product);
    QVERIFY(close(twice.costs->forward_s(twice.find("a"), {}), 4.5e-6));
  }
};

QTEST_APPLESS_MAIN(DeviceTimesTest)
#include "device_times_test.moc"
