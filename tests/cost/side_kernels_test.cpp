// SPDX-License-Identifier: Apache-2.0
// Kernels that engines launch beside an operator's own, by hand, on devices of 100 GB/s with launches of a microsecond.
#include "core/cost/side_kernels.h"

#include <QtTest>

#include "cost/eager_models.h"
#include "cost/round_setting.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

void through_nccl(Cluster& cluster) { cluster.library = Library::nccl; }

double part(CostBreakdown cost, ComputePart which) { return cost[which]; }

CostBreakdown of(const Setting& setting, const char* name, const MemoryChoice& choice) {
  const OperatorId id = setting.find(name);
  return setting.costs
      ->cost(id, data_parallel_configuration(setting.scenario.model->operators[id], setting.resharding->mesh()), choice)
      .breakdown;
}

}  // namespace

class SideKernelsTest : public QObject {
  Q_OBJECT

 private slots:
  // 64 rows on four devices, 64 channels in fp32: 4,096 bytes that the bias's gradient is summed from.
  void a_bias_reads_its_gradient_once_more() {
    const Setting setting(mlp(), 1, 4);
    const Model& model = *setting.scenario.model;
    const Operator& op = model.operators[setting.find("fc1")];
    const Mesh& mesh = setting.resharding->mesh();
    const Configuration split = data_parallel_configuration(op, mesh);
    const SideKernels forward = side_kernels(setting.scenario, op, split, mesh, false),
                      backward = side_kernels(setting.scenario, op, split, mesh, true);
    QCOMPARE(forward.kernels, 0);
    QCOMPARE(backward.kernels, 1);
    QCOMPARE(backward.bytes, 4096.0);
    const PhaseWork work = setting.costs->work(op, split, true);
    QVERIFY(close(part(setting.data_parallel("fc1"), ComputePart::backward),
                  std::max(work.flop / 1e12, work.bytes / 1e11) + 1e-6 + 4096 / 1e11 + 1e-6));
    const auto torus = std::make_shared<Cluster>(*setting.scenario.cluster);
    torus->library = Library::torus;
    Scenario fused = setting.scenario;
    fused.cluster = torus;
    QCOMPARE(side_kernels(fused, op, split, mesh, true).kernels, 0);
    Scenario as_papers = setting.scenario;
    as_papers.settings.accounting = Accounting::paper;
    QCOMPARE(side_kernels(as_papers, op, split, mesh, true).kernels, 0);
    // Without a bias, and of what is no product, there is none.
    const Setting plain(residual(), 1, 4);
    for (std::size_t o = 0; o < plain.scenario.model->operators.size(); ++o) {
      const Operator& other = plain.scenario.model->operators[OperatorId(o)];
      QCOMPARE(side_kernels(plain.scenario, other, data_parallel_configuration(other, mesh), mesh, true).kernels, 0);
    }
  }

  // 16 sequences of 64 tokens: queries of 512 and keys of 128 channels in 16 bits, read and written in either phase.
  void a_rotation_is_a_kernel() {
    const Setting setting(llama(), 1, 1, in_16_bits);
    const Mesh& mesh = setting.resharding->mesh();
    for (const auto& [name, width] : {std::pair{"layer0/attention/q", 512}, {"layer0/attention/k", 128}})
      for (const bool backward : {false, true}) {
        const SideKernels side =
            side_kernels(setting.scenario, setting.scenario.model->operators[setting.find(name)], {}, mesh, backward);
        QCOMPARE(side.kernels, 1);
        QCOMPARE(side.bytes, 2.0 * 16 * 64 * width * 2);
      }
    const Operator& values = setting.scenario.model->operators[setting.find("layer0/attention/v")];
    QCOMPARE(side_kernels(setting.scenario, values, {}, mesh, true).kernels, 0);
    Scenario eager = setting.scenario;
    eager.settings.kernels = Kernels::eager;  // several kernels, counted elsewhere
    QCOMPARE(side_kernels(eager, eager.model->operators[setting.find("layer0/attention/q")], {}, mesh, true).kernels,
             0);
  }

  // 2,112 weights in fp32. They are scaled before they are sent, or copied into a message: 8 bytes each.
  void gradients_are_scaled() {
    const Setting rings(mlp(), 1, 4), setting(mlp(), 1, 4, {}, through_nccl), alone(mlp(), 1, 1, {}, through_nccl);
    const double update = 2112 * 28 / 1e11 + 1e-6;
    QVERIFY(close(part(of(rings, "fc1", {}), ComputePart::update), update));
    QVERIFY(close(part(of(alone, "fc1", {}), ComputePart::update), update));
    QVERIFY(close(part(of(setting, "fc1", {}), ComputePart::update), update + 2112 * 8 / 1e11));
    const std::uint32_t all = 3;
    for (const Update how : {Update::sharded, Update::sharded_state, Update::sharded_weights}) {
      const MemoryChoice choice{how, all};
      QVERIFY(close(part(of(setting, "fc1", choice), ComputePart::update),
                    update - 2112 * 28 * 0.75 / 1e11 + 2112 * 8 / 1e11));
    }
  }

  // The copy in 16 bits is made from the master copy by a kernel of its own: 4 bytes more read than one kernel would.
  void masters_are_read_once_more() {
    const Setting setting(mlp(), 1, 1, in_16_bits);
    QVERIFY(close(part(of(setting, "fc1", {}), ComputePart::update), 2112 * (2 + 2 * 12 + 4 + 2) / 1e11 + 1e-6));
  }
};

QTEST_APPLESS_MAIN(SideKernelsTest)
#include "side_kernels_test.moc"
