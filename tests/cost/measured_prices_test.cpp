// SPDX-License-Identifier: Apache-2.0
// Prices on hardware that real logs describe.
#include <QTest>
#include <algorithm>
#include <cmath>

#include "core/cost/resharding.h"
#include "core/hardware/measured/profile_builder.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

constexpr double kMiB = 1 << 20;

ClusterPtr profile_of(const std::string& log, const std::string& base) {
  const auto report = read_hardware_files({log}, *cluster_preset(base));
  return report && report->cluster ? report->cluster : nullptr;
}

}  // namespace

class MeasuredPricesTest : public QObject {
  Q_OBJECT

 private slots:
  // The whole group was measured: nothing is cheaper than what was, whatever could be made of its parts.
  void a_tensor_group_costs_what_was_measured() {
    REQUIRE_DATA(folder);
    const ClusterPtr cluster = profile_of(folder / "hardware/nccl-tests/a100x8_nccl_allreduce.log", "a100-40gb-1x8");
    QVERIFY(cluster);
    const Mesh mesh = make_mesh(*cluster);
    const ReshardingModel resharding(mesh, CollectiveModel(*cluster, {}), 1);
    Layout partial;
    for (int a = 0; a < mesh.count(); ++a) partial.axis[static_cast<std::size_t>(a)] = Layout::kPartial;
    for (double mib = 1; mib <= 1024; mib *= 2) {
      const auto rows = static_cast<std::int64_t>(mib * kMiB / 4 / 1024);
      const ReshardPath path = resharding.path({rows, 1024}, 4, partial, Layout());
      QCOMPARE(path.steps.size(), std::size_t(1));
      QCOMPARE(path.steps[0].move, ReshardMove::all_reduce);
      if (mib == 8) QVERIFY(std::abs(path.time_s - 162e-6) < 1e-6);
      if (mib == 128) QVERIFY(std::abs(path.time_s - 1162e-6) < 1e-6);
    }
  }

  // Fitted to every other size, the sizes left out are met: by the curve, and by the library's formulas alone.
  void left_out_sizes() {
    REQUIRE_DATA(folder);
    for (const auto& [log, base] : {std::pair("a100x8_nccl_allreduce.log", "a100-40gb-1x8"),
                                    std::pair("p4de_2nodes_allreduce_srun_prefix.log", "a100-80gb-2x8"),
                                    std::pair("a100x8_nccl_allgather.log", "a100-40gb-1x8")}) {
      const auto whole = profile_of(folder / "hardware/nccl-tests" / log, base);
      QVERIFY(whole);
      Cluster half = *whole;
      std::vector<CollectiveSample> left_out;
      half.collectives.clear();
      for (std::size_t i = 0; i < whole->collectives.size(); ++i)
        (i % 2 == 0 ? half.collectives : left_out).push_back(whole->collectives[i]);
      const CollectiveModel model(half, {});
      std::vector<double> errors;
      for (const auto& sample : left_out)
        errors.push_back(std::abs(model.time(sample.kind, sample.group, sample.bytes).value / sample.time_s - 1));
      std::sort(errors.begin(), errors.end());
      qInfo("%s: %zu sizes left out, median error %.1f %%, largest %.1f %%", log, errors.size(),
            100 * errors[errors.size() / 2], 100 * errors.back());
      QVERIFY(errors[errors.size() / 2] < 0.10);
      QVERIFY(errors.back() < 0.30);
    }
  }
};

QTEST_APPLESS_MAIN(MeasuredPricesTest)
#include "measured_prices_test.moc"
