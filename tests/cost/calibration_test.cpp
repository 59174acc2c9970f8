// SPDX-License-Identifier: Apache-2.0
// Fits against times made from known constants, and against Aceso's tables where the data folder is there.
#include <QtTest>
#include <cmath>
#include <random>

#include "core/cost/calibration.h"
#include "core/cost/measured_models.h"
#include "search/small_models.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

MeasuredWork row(const char* kind, double flop, double bytes, double time_s, const char* phase = "forward") {
  MeasuredWork r;
  r.name = kind;
  r.phase = phase;
  r.time_s = time_s;
  r.parts = {{kind, {flop, bytes}}};
  return r;
}

const OperatorFit* find(const std::vector<OperatorFit>& fits, const char* kind, const char* phase = "forward") {
  for (const auto& fit : fits)
    if (fit.kind == kind && fit.phase == phase) return &fit;
  return nullptr;
}

bool near(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance * std::abs(b); }

}  // namespace

class CalibrationTest : public QObject {
  Q_OBJECT

 private slots:
  void known_constants_are_found() {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> size(0.1, 100);
    std::vector<MeasuredWork> rows;
    for (int i = 0; i < 40; ++i) {
      const double flop = 1e9 * size(random), bytes = 1e6 * size(random);
      rows.push_back(row("matmul", flop, bytes, 20e-6 + flop / 60e12 + bytes / 700e9));
      rows.push_back(row("softmax", 0, bytes, 8e-6 + bytes / 800e9, "backward"));
    }
    const auto fits = fit_operators(rows);
    QCOMPARE(fits.size(), std::size_t(2));
    const auto* product = find(fits, "matmul");
    QVERIFY(product && near(product->launch_s, 20e-6, 0.01) && near(product->s_per_flop, 1 / 60e12, 0.01) &&
            near(product->s_per_byte, 1 / 700e9, 0.02));
    QCOMPARE(product->samples, 40);
    const auto* softmax = find(fits, "softmax", "backward");
    QVERIFY(softmax && near(softmax->launch_s, 8e-6, 0.01) && near(softmax->s_per_byte, 1 / 800e9, 0.01));
    QCOMPARE(softmax->s_per_flop, 0.0);
    for (const auto& r : rows) QVERIFY(near(fitted_seconds(fits, r).value(), r.time_s, 0.01));
    QVERIFY(!fitted_seconds(fits, row("pooling", 1, 1, 1)));
  }

  // Layers of 1 to 40 time steps, each of which is launched: the constant is that of one step.
  void launches_are_told_from_work() {
    std::mt19937 random(9);
    std::uniform_real_distribution<double> size(0.1, 100);
    std::vector<MeasuredWork> rows;
    for (int i = 0; i < 40; ++i) {
      const double flop = 1e9 * size(random), bytes = 1e6 * size(random), steps = i + 1;
      rows.push_back(row("recurrent", flop, bytes, steps * 30e-6 + flop / 60e12 + bytes / 700e9));
      rows.back().parts.front().work.launches = steps;
    }
    const auto fits = fit_operators(rows);
    const auto* layer = find(fits, "recurrent");
    QVERIFY(layer && near(layer->launch_s, 30e-6, 0.01) && near(layer->s_per_flop, 1 / 60e12, 0.02) &&
            near(layer->s_per_byte, 1 / 700e9, 0.02));
    for (const auto& r : rows) QVERIFY(near(fitted_seconds(fits, r).value(), r.time_s, 0.01));
  }

  void an_outlier_moves_little() {
    std::vector<MeasuredWork> rows;
    for (int i = 1; i <= 20; ++i) rows.push_back(row("softmax", 0, 1e6 * i, 5e-6 + 1e6 * i / 800e9));
    rows.push_back(row("softmax", 0, 2e6, 900e-6));  // a first run that compiled its kernel
    const auto fits = fit_operators(rows);
    QVERIFY(near(fitted_seconds(fits, rows[9]).value(), rows[9].time_s, 0.1));
  }

  void what_stands_beside_is_taken_off() {
    std::vector<MeasuredWork> rows;
    std::vector<double> beside;
    for (int i = 1; i <= 10; ++i) {
      beside.push_back(100e-6);
      rows.push_back(row("matmul", 1e9 * i, 0, 110e-6 + 1e9 * i / 50e12));
    }
    const auto fits = fit_operators(rows, beside);
    QVERIFY(near(find(fits, "matmul")->launch_s, 10e-6, 0.05));
  }

  void the_cost_model_uses_the_fit_of_its_precision() {
    Scenario scenario;
    scenario.model = test::mlp();
    auto cluster = std::make_shared<Cluster>(**cluster_preset("v100-16gb-1x1"));
    cluster->fits = {{"matmul", "forward", Precision::fp32, 1e-3, 0, 0, 1},
                     {"matmul", "backward", Precision::bf16, 5, 0, 0, 1}};
    scenario.cluster = cluster;
    for (const double speed : {1.0, 2.0}) {
      scenario.settings.factors.device_speed = speed;
      const TensorUses uses = analyse_tensor_uses(*scenario.model);
      const ReshardingModel resharding(make_mesh(*cluster), CollectiveModel(*cluster, scenario.settings.factors), 1e11);
      const OperatorCostModel costs(scenario, uses, resharding);
      bool met = false;
      for (std::size_t i = 0; i < scenario.model->operators.size(); ++i) {
        const auto& op = scenario.model->operators[OperatorId(i)];
        if (op.kind != OperatorKind::matmul) continue;
        met = true;
        const auto cost = costs.cost(OperatorId(i), {}).breakdown;
        QCOMPARE(cost.compute[static_cast<std::size_t>(ComputePart::forward)], 1e-3 / speed);
        QVERIFY(cost.compute[static_cast<std::size_t>(ComputePart::backward)] < 1e-3);  // the formula: no fit in fp32
      }
      QVERIFY(met);
    }
  }

  // A product of activations has no such stand-in.
  void products_of_activations_do_not_follow_others() {
    Scenario scenario;
    scenario.model = test::attention();
    auto cluster = std::make_shared<Cluster>(**cluster_preset("v100-16gb-1x1"));
    cluster->fits = {{"matmul", "forward", Precision::fp32, 5, 0, 0, 4}};
    scenario.cluster = cluster;
    const TensorUses uses = analyse_tensor_uses(*scenario.model);
    const ReshardingModel resharding(make_mesh(*cluster), CollectiveModel(*cluster, {}), 1e11);
    const OperatorCostModel costs(scenario, uses, resharding);
    int of_activations = 0, weighted = 0;
    for (std::size_t i = 0; i < scenario.model->operators.size(); ++i) {
      const auto& op = scenario.model->operators[OperatorId(i)];
      if (op.kind != OperatorKind::matmul) continue;
      auto cost = costs.cost(OperatorId(i), {}).breakdown;
      const bool activations = fitted_kind(*scenario.model, op) == "matmul of activations";
      QCOMPARE(cost[ComputePart::forward] >= 5, !activations);
      (activations ? of_activations : weighted) += 1;
    }
    QVERIFY(of_activations == 2 && weighted >= 4);
  }

  // Of two fits the one of its own kernel counts, else the one of all convolutions; no faster than that says, whatever
  // the best product reaches.
  void a_kernel_without_a_fit_follows_all_convolutions() {
    Scenario scenario;
    scenario.model = test::convolution();
    for (const bool own : {true, false}) {
      auto cluster = std::make_shared<Cluster>(**cluster_preset("v100-16gb-1x1"));
      cluster->fits = {{"convolution", "forward", Precision::fp32, 1e-3, 1e-18, 0, 4},
                       {"matmul of activations", "forward", Precision::fp32, 5, 0, 0, 4}};
      int met = 0;
      for (const auto& op : scenario.model->operators)
        if (op.kind == OperatorKind::convolution && own)
          cluster->fits.push_back({fitted_kind(*scenario.model, op), "forward", Precision::fp32, 2e-3, 0, 0, 4});
      scenario.cluster = cluster;
      const TensorUses uses = analyse_tensor_uses(*scenario.model);
      const ReshardingModel resharding(make_mesh(*cluster), CollectiveModel(*cluster, {}), 1e11);
      const OperatorCostModel costs(scenario, uses, resharding);
      for (std::size_t i = 0; i < scenario.model->operators.size(); ++i) {
        const auto& op = scenario.model->operators[OperatorId(i)];
        auto cost = costs.cost(OperatorId(i), {}).breakdown;
        const double forward = cost[ComputePart::forward];
        if (op.kind == OperatorKind::matmul) QVERIFY(forward < 1e-3);
        if (op.kind != OperatorKind::convolution) continue;
        QVERIFY(std::abs(forward - (own ? 2e-3 : 1e-3)) < 1e-6);
        ++met;
      }
      QVERIFY(met > 0);
    }
  }

  void a_profile_keeps_its_fits() {
    auto cluster = **cluster_preset("v100-16gb-1x8");
    cluster.fits = {{"convolution 3x3 stride 2", "backward", Precision::bf16, 1e-6, 2e-14, 3e-12, 17}};
    const auto read = parse_hardware_profile(write_hardware_profile(cluster), "profile.json");
    QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
    QCOMPARE((*read)->fits.size(), std::size_t(1));
    const OperatorFit& fit = (*read)->fits[0];
    QCOMPARE(fit.kind, std::string("convolution 3x3 stride 2"));
    QVERIFY(fit.phase == "backward" && fit.precision == Precision::bf16 && fit.samples == 17);
    QVERIFY(fit.launch_s == 1e-6 && fit.s_per_flop == 2e-14 && fit.s_per_byte == 3e-12);
    QCOMPARE((*read)->device.efficiency(Precision::bf16), 0.6);
    QCOMPARE((*read)->device.efficiency(Precision::fp32), 0.8);
    const auto broken = parse_hardware_profile(
        R"({"format": "turnpoint/hardware-profile@1", "nodes": 1, "devices_per_node": 1, "device": {"name": "x", "memory_bytes": 1000000,
            "peak_flop_per_s": {"fp32": 1e12, "bf16": 1e12}, "memory_bandwidth_bytes_per_s": 1e11}, "links": [],
            "operator_fits": [{"kind": "matmul", "launch_s": -1, "s_per_flop": 0, "s_per_byte": 0}]})",
        "bad.json");
    QVERIFY(!broken && broken.error().message().find("launch_s") != std::string::npos);
  }

  void aceso_sizes_follow_from_the_table() {
    REQUIRE_DATA(data);
    const auto log = read_measured_log(data / "hardware/aceso_v100/gpt_1_3B_mbs4_tp8_algo0.csv");
    QVERIFY(log.has_value());
    const auto gpt = aceso_gpt(*log);
    QVERIFY2(gpt.has_value(), gpt ? "" : gpt.error().message().c_str());
    bool met = false;
    for (const auto& op : gpt->model->operators) {
      if (op.scope != "enc-MLP-GEMM-1" || op.kind != OperatorKind::matmul) continue;
      met = true;
      QCOMPARE(op.forward_macs,
               4.0 * 2048 * 2048 * (4 * 2048 / 8));  // batch, sequence, hidden, a device's part of four hidden
    }
    QVERIFY(met);
    QCOMPARE(gpt->forward.at("enc-MLP-GEMM-2").bytes, 2.0 * 4 * 2048 * 2048);
    QVERIFY(!gpt->forward.count("enc-MLP-GEMM-1") && gpt->backward.count("enc-MLP-GEMM-1"));
    const auto resnet = read_measured_log(data / "hardware/aceso_v100/resnet_500M_mbs16_tp1_algo0.csv");
    QVERIFY(resnet.has_value());
    const auto wide = aceso_resnet(*resnet);
    QVERIFY2(wide.has_value(), wide ? "" : wide.error().message().c_str());
    const auto rows = measured_work(*resnet);
    QCOMPARE(rows.size(), std::size_t(2 * 134));
    for (const auto& r : rows)
      if (r.name.find("-conv") != std::string::npos && r.phase == "forward")
        QVERIFY2(near(r.activation_bytes, r.measured_activation_bytes, 0.04), r.name.c_str());
  }

  void unknown_sizes_are_predicted() {
    REQUIRE_DATA(data);
    std::vector<MeasuredWork> small;
    for (const char* batch : {"1", "2", "4", "8"}) {
      const auto log =
          read_measured_log(data / ("hardware/aceso_v100/gpt_350M_mbs" + std::string(batch) + "_tp1_algo0.csv"));
      QVERIFY(log.has_value());
      for (auto& r : measured_work(*log)) small.push_back(std::move(r));
    }
    const auto fits = fit_operators(small);
    const auto large = read_measured_log(data / "hardware/aceso_v100/gpt_1_3B_mbs4_tp1_algo0.csv");
    QVERIFY(large.has_value());
    double predicted = 0, measured = 0;
    for (const auto& r : measured_work(*large)) {
      if (!r.name.starts_with("enc-")) continue;
      predicted += fitted_seconds(fits, r).value();
      measured += r.time_s;
    }
    QVERIFY2(near(predicted, measured, 0.05),
             qPrintable(QString("%1 s predicted, %2 s measured").arg(predicted).arg(measured)));
  }

  void tables_that_imply_nothing_are_refused() {
    const auto log = parse_measured_log(
        "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,fwd_reserved,bwd_"
        "reserved\n"
        "enc-attention-dense,1,1,1,1,0,0,0,0\n",
        "gpt_9B_mbs1_tp1_algo0.csv");
    QVERIFY(log.has_value());
    const auto gpt = aceso_gpt(*log);
    QVERIFY(!gpt && gpt.error().message().find("gpt_9B_mbs1_tp1_algo0.csv") != std::string::npos);
    QVERIFY(measured_work(*log).empty());
  }
};

QTEST_APPLESS_MAIN(CalibrationTest)
#include "calibration_test.moc"
