// SPDX-License-Identifier: Apache-2.0
// Every file of the data folder's hardware measurements against figures read off it by hand or added up by a script of
// its own (Python's csv and json modules).
#include <QTest>
#include <algorithm>
#include <cmath>

#include "core/hardware/logs/measured_log.h"
#include "core/hardware/measured/profile_builder.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

constexpr double kMiB = 1048576;

bool close(double a, double b, double tolerance = 1e-9) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

const MeasuredCurve* find(const MeasuredLog& log, Collective kind, int nodes, int per_node,
                          const std::string& variant = {}) {
  for (const auto& curve : log.curves)
    if (curve.kind == kind && curve.group.nodes == nodes && curve.group.per_node == per_node &&
        curve.variant == variant)
      return &curve;
  return nullptr;
}

double time_at(const MeasuredCurve* curve, double bytes) {
  for (const auto& point : curve->points)
    if (point.bytes == bytes) return point.time_s;
  return -1;
}

const MeasuredFigure* figure(const MeasuredLog& log, Figure wanted) {
  for (const auto& found : log.figures)
    if (found.figure == wanted) return &found;
  return nullptr;
}

bool says(const MeasuredLog& log, int line, const char* text) {
  return std::any_of(log.problems.begin(), log.problems.end(), [&](const LogProblem& problem) {
    return problem.line == line && problem.what.find(text) != std::string::npos;
  });
}

int warnings(const MeasuredLog& log) {
  return int(std::count_if(log.problems.begin(), log.problems.end(), [](const LogProblem& problem) {
    return problem.severity == LogProblem::Severity::warning;
  }));
}

}  // namespace

class MeasuredLogsTest : public QObject {
  Q_OBJECT

  std::filesystem::path data_;
  MeasuredLog read(const char* name, LogKind kind) {
    const auto log = read_measured_log((data_ / "hardware" / name).string());
    if (!log) {
      QTest::qFail(log.error().message().c_str(), __FILE__, __LINE__);
      return {};
    }
    if (log->kind != kind) QTest::qFail(name, __FILE__, __LINE__);
    return *log;
  }

 private slots:
  void initTestCase() {
    REQUIRE_DATA(data);
    data_ = data;
  }

  void nccl_tests() {
    const MeasuredLog reduce = read("nccl-tests/a100x8_nccl_allreduce.log", LogKind::nccl_tests);
    QCOMPARE(reduce.device_name, std::string("A100-SXM4-40GB"));
    QCOMPARE(reduce.nodes, 1);
    QCOMPARE(reduce.devices_per_node, 8);
    QCOMPARE(reduce.curves.size(), std::size_t(2));
    const auto* curve = find(reduce, Collective::all_reduce, 1, 8);
    QVERIFY(curve);
    QCOMPARE(curve->points.size(), std::size_t(32));
    QVERIFY(close(time_at(curve, 4), 34.73e-6));
    QVERIFY(close(time_at(curve, kMiB), 74.78e-6));
    QVERIFY(close(time_at(curve, 8589934592.0), 63896e-6));
    QVERIFY(close(time_at(find(reduce, Collective::all_reduce, 1, 8, "in-place"), 128), 43.78e-6));
    QVERIFY(says(reduce, 19, "2 rows of size 0"));
    QVERIFY(says(reduce, 25, "not monotonic"));  // 43.78 us in place at 128 bytes, then 34.95
    QCOMPARE(warnings(reduce), 1);
    QCOMPARE(curve->points.front().line, 19);

    // Gathered size: what the file prints is the whole tensor.
    const MeasuredLog gather = read("nccl-tests/a100x8_nccl_allgather.log", LogKind::nccl_tests);
    QCOMPARE(find(gather, Collective::all_gather, 1, 8)->points.size(), std::size_t(29));
    QVERIFY(close(time_at(find(gather, Collective::all_gather, 1, 8), 16777216), 167.7e-6));
    QVERIFY(says(gather, 22, "5 rows of size 0"));

    const MeasuredLog two = read("nccl-tests/p4de_2nodes_allreduce_srun_prefix.log", LogKind::nccl_tests);
    QCOMPARE(two.curves.size(), std::size_t(2));
    const auto* both = find(two, Collective::all_reduce, 2, 8);
    QVERIFY(both);
    QCOMPARE(both->points.size(), std::size_t(29));
    QVERIFY(close(time_at(both, 2147483648.0), 51406e-6));
    QVERIFY(says(two, 3, "bandwidths say 16"));
  }

  void nvbandwidth() {
    const MeasuredLog log = read("nvbandwidth/gh200_nvbandwidth_v0.6.log", LogKind::nvbandwidth);
    QCOMPARE(log.device_name, std::string("NVIDIA GH200 480GB"));
    QVERIFY(close(figure(log, Figure::host_to_device)->value, 269.33e9));  // the least of six cells
    QVERIFY(close(figure(log, Figure::device_to_host)->value, 295.15e9));
    QVERIFY(close(figure(log, Figure::host_latency)->value, 772.58e-9));
    QCOMPARE(log.figures.size(), std::size_t(3));
    QVERIFY(says(log, 0, "17 tests were waived"));
    QVERIFY(says(log, 12, "3 columns, but 1 device"));
  }

  void topologies() {
    const MeasuredLog pair = read("topo/2gpu_nvlink_nv2.txt", LogKind::smi_topology);
    QCOMPARE(pair.topology->devices, 2);
    QCOMPARE(pair.topology->nvlinks_per_device, 2);
    const MeasuredLog phb = read("topo/2gpu_pcie_phb.txt", LogKind::smi_topology);
    QCOMPARE(phb.topology->nvlinks_per_device, 0);
    QCOMPARE(phb.topology->links[0][1], std::string("PHB"));
    const MeasuredLog threadripper = read("topo/2gpu_threadripper_phb.txt", LogKind::smi_topology);
    QVERIFY((threadripper.topology->nics == std::vector<std::string>{"mlx5_0", "mlx5_1"}));
    QCOMPARE(threadripper.topology->devices, 2);
    const MeasuredLog a100 = read("topo/a100x8_nv12.txt", LogKind::smi_topology);
    QCOMPARE(a100.topology->devices, 8);
    QCOMPARE(a100.topology->nvlinks_per_device, 12);
    const MeasuredLog v100 = read("topo/v100x8_dgx1_like.txt", LogKind::smi_topology);
    QCOMPARE(v100.topology->devices, 8);
    QCOMPARE(v100.topology->nvlinks_per_device, 6);  // 1 + 1 + 2 + 2
    QCOMPARE(v100.topology->links[0][4], std::string("NV2"));
    QCOMPARE(v100.topology->links[7][0], std::string("SYS"));
    QCOMPARE(v100.topology->nics.size(), std::size_t(1));
    for (const auto* log : {&pair, &phb, &threadripper, &a100, &v100}) QCOMPARE(warnings(*log), 0);

    const MeasuredLog ndv2 = read("nccl-topo-xml/ndv2-topo.xml", LogKind::nccl_topology);
    QCOMPARE(ndv2.topology->devices, 8);
    QCOMPARE(ndv2.topology->nics.size(), std::size_t(1));
    // 16 GT/s x 16 lanes, 128 of 130 bits.
    QVERIFY(close(figure(ndv2, Figure::host_link_wire)->value, 16e9 / 8 * 16 * 128 / 130));
    const MeasuredLog ndv4 = read("nccl-topo-xml/ndv4-topo.xml", LogKind::nccl_topology);
    QCOMPARE(ndv4.topology->devices, 8);
    QCOMPARE(ndv4.topology->nics.size(), std::size_t(8));
    const MeasuredLog amd = read("nccl-topo-xml/rccl_topo_8p_940.xml", LogKind::nccl_topology);
    QCOMPARE(amd.topology->devices, 8);
    QCOMPARE(amd.topology->nics.size(), std::size_t(8));
    QCOMPARE(amd.device_name, std::string("AMD Instinct MI300X"));       // vendor 0x1002, device 0x74a1
    QVERIFY(close(figure(amd, Figure::node_network)->value, 8 * 50e9));  // eight times 400 Gbit/s
    for (int i = 0; i < 8; ++i)
      for (int k = 0; k < 8; ++k)
        QCOMPARE(amd.topology->links[std::size_t(i)][std::size_t(k)], std::string(i == k ? "X" : "xGMI"));
  }

  void galvatron() {
    const MeasuredLog ring = read("galvatron/allreduce_bandwidth_1nodes_8gpus_per_node.json", LogKind::galvatron);
    QCOMPARE(ring.figures.size(), std::size_t(5));
    QVERIFY(std::any_of(ring.figures.begin(), ring.figures.end(), [](const MeasuredFigure& f) {
      return f.group.size == 8 && f.kind == Collective::all_reduce && close(f.value, 154.203e9);
    }));
    QCOMPARE(read("galvatron/p2p_bandwidth_1nodes_8gpus_per_node.json", LogKind::galvatron).figures.size(),
             std::size_t(3));
    QVERIFY(
        close(figure(read("galvatron/overlap_coefficient.json", LogKind::galvatron), Figure::overlap_slowdown)->value,
              1.125552573612729));
    const MeasuredLog times = read("galvatron/sp_time_1nodes_8gpus_per_node.json", LogKind::galvatron);
    QCOMPARE(times.curves.size(), std::size_t(6));
    QVERIFY(close(time_at(find(times, Collective::all_reduce, 1, 8), 1024 * kMiB), 8.1409e-3));
    QVERIFY(
        close(time_at(find(times, Collective::all_to_all, 1, 4), 16 * 4 * kMiB), 0.1514e-3));  // four blocks of 16 MiB
    const MeasuredLog layers = read("galvatron/computation_profiling_bf16_llama2-7b_all.json", LogKind::galvatron);
    QCOMPARE(layers.operators.size(), std::size_t(48));
    double sum = 0;
    for (const auto& op : layers.operators) sum += op.time_s;
    QVERIFY(close(sum, 2.8889671792507174));
    QCOMPARE(layers.operators[0].model, std::string("bf16_llama2-7b_all"));
    QCOMPARE(layers.operators[0].precision, Precision::bf16);
  }

  void nnscaler() {
    const MeasuredLog log = read("nnscaler/mi200_intra_4.json", LogKind::nnscaler);
    QCOMPARE(log.curves.size(), std::size_t(4));
    for (const auto& curve : log.curves) QCOMPARE(curve.points.size(), std::size_t(12));
    QVERIFY(close(time_at(find(log, Collective::reduce_scatter, 1, 4), 64 * kMiB), 0.0020192861557006836));
    QVERIFY(close(time_at(find(log, Collective::all_to_all, 1, 4), 512 * kMiB), 0.004883217811584473));
    QVERIFY(find(read("nnscaler/mi200_intra_2.json", LogKind::nnscaler), Collective::all_gather, 1, 2));
  }

  void vidur() {
    const MeasuredLog reduce = read("vidur/network/a100_dgx/all_reduce.csv", LogKind::vidur_collectives);
    QCOMPARE(reduce.curves.size(), std::size_t(7));
    double sum = 0;
    std::size_t points = 0;
    for (const auto& curve : reduce.curves)
      for (const auto& point : curve.points) {
        sum += point.time_s;
        ++points;
        QVERIFY(point.spread.min_s <= point.time_s && point.time_s <= point.spread.max_s);
      }
    QCOMPARE(points, std::size_t(6951));
    QVERIFY(close(sum, 13.660649999932));
    // 16 MiB was measured twice: 2.886 and 2.899 ms.
    QVERIFY(close(time_at(find(reduce, Collective::all_reduce, 2, 1), 16777216), 2.8925e-3));
    const MeasuredLog send = read("vidur/network/a100_dgx/send_recv.csv", LogKind::vidur_collectives);
    QCOMPARE(send.curves.size(), std::size_t(2));
    QVERIFY(close(time_at(find(send, Collective::send, 1, 2), 16777216), 65e-6));
    const MeasuredLog mlp = read("vidur/compute/a100_llama2-7b_mlp.csv", LogKind::vidur_compute);
    QCOMPARE(mlp.operators.size(), std::size_t(10 * 1044));
    sum = 0;
    for (const auto& op : mlp.operators) sum += op.time_s;
    QVERIFY(close(sum, 1.554868));
    QVERIFY((mlp.operators[0].dims[0] == std::pair<std::string, std::int64_t>{"num_tokens", 4096}));
    QCOMPARE(warnings(mlp), 0);
  }

  void deepbench() {
    const MeasuredLog log = read("deepbench/v100_gemm_fp32.csv", LogKind::deepbench_gemm);
    QCOMPARE(log.operators.size(), std::size_t(160));
    double sum = 0;
    for (const auto& op : log.operators) sum += op.time_s;
    QVERIFY(close(sum, 2.003487));
    QCOMPARE(warnings(log), 0);
  }

  void aceso() {
    const MeasuredLog gpt = read("aceso_v100/gpt_1_3B_mbs2_tp2_algo0.csv", LogKind::aceso_operators);
    QCOMPARE(gpt.operators.size(), std::size_t(32));
    double forward = 0, backward = 0, weights = 0, activations = 0;
    for (const auto& op : gpt.operators) {
      (op.phase == "forward" ? forward : backward) += op.time_s;
      if (op.phase == "forward") weights += *op.weights_mib, activations += *op.activations_mib;
    }
    QVERIFY(close(forward, 17885.674e-6) && close(backward, 24117.819e-6));
    QVERIFY(close(weights, 256) && close(activations, 1560.179));
    QCOMPARE(gpt.operators[0].model, std::string("gpt_1_3B"));
    QCOMPARE(gpt.operators[0].micro_batch, 2);
    QCOMPARE(gpt.operators[0].tensor_parallel, 2);
    QCOMPARE(gpt.operators[0].variant, 0);
    QCOMPARE(gpt.operators[0].precision, Precision::bf16);
    QCOMPARE(read("aceso_v100/resnet_500M_mbs16_tp1_algo1.csv", LogKind::aceso_operators).operators[0].precision,
             Precision::fp32);

    // Blocks of one device: 512 MiB gathered from two are 1 GiB.
    const MeasuredLog gather = read("aceso_v100/prim_gpt_1_3B_all_gather_2gpus.csv", LogKind::aceso_collectives);
    QVERIFY(close(time_at(find(gather, Collective::all_gather, 1, 2), 1024 * kMiB), 18.473e-3));
    QVERIFY(close(time_at(find(read("aceso_v100/prim_gpt_1_3B_all_reduce_4gpus.csv", LogKind::aceso_collectives),
                               Collective::all_reduce, 1, 4),
                          512 * kMiB),
                  10.326e-3));
    QVERIFY(says(gather, 0, "3 sizes were not measured"));
    // 17.22 GiB/s at 1 MiB.
    const MeasuredLog send = read("aceso_v100/p2p_intra_node.csv", LogKind::aceso_p2p);
    QVERIFY(close(time_at(find(send, Collective::send, 1, 2), kMiB), 1 / 1024.0 / 17.22));
    QVERIFY(close(
        time_at(find(read("aceso_v100/p2p_inter_node.csv", LogKind::aceso_p2p), Collective::send, 2, 1), 1024 * kMiB),
        1 / 5.44));
  }

  // All files of the folder, added up.
  void all_of_aceso() {
    double operators = 0, collectives = 0;
    std::size_t tables = 0, samples = 0, points = 0;
    for (const auto& entry : std::filesystem::directory_iterator(data_ / "hardware/aceso_v100")) {
      const auto log = read_measured_log(entry.path().string());
      QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
      if (log->kind == LogKind::aceso_operators) ++tables;
      for (const auto& op : log->operators) operators += op.time_s, ++samples;
      if (log->kind == LogKind::aceso_collectives)
        for (const auto& curve : log->curves)
          for (const auto& point : curve.points) collectives += point.time_s, ++points;
    }
    QCOMPARE(tables, std::size_t(96));
    QCOMPARE(samples, std::size_t(2 * 5312));
    QVERIFY(close(operators, 32.738418267));
    QCOMPARE(points, std::size_t(1450));
    QVERIFY(close(collectives, 12.053853));
  }

  void device_sheets() {
    const MeasuredLog a100 = read("gpu_specs/a100-sxm-80gb.json", LogKind::gpu_specs);
    QVERIFY(close(figure(a100, Figure::peak_16bit)->value, 312e12));
    QVERIFY(close(figure(a100, Figure::device_memory)->value, 2039e9));
    QCOMPARE(warnings(a100), 0);
    QVERIFY(
        close(figure(read("gpu_specs/h100-sxm-80gb.json", LogKind::gpu_specs), Figure::intra_node_link)->value, 450e9));
    QVERIFY(says(read("gpu_specs/v100-sxm-16gb.json", LogKind::gpu_specs), 0, "is 32, but the name says 16"));
  }

  // A size taken for the wrong thing (one device's part for the whole tensor) would be off by the size of the group: at
  // large sizes all-reduce, all-gather and reduce-scatter of a machine move about as many bytes a second over a link.
  void sizes_mean_the_whole_tensor() {
    const auto ring = [](const MeasuredCurve& curve) {
      const double g = curve.group.size;
      const auto& point = curve.points[curve.points.size() - 1];
      return (curve.kind == Collective::all_reduce ? 2 : 1) * (g - 1) / g * point.bytes / point.time_s;
    };
    const auto compare = [&](const MeasuredLog& a, const MeasuredLog& b, int devices, Collective kind) {
      const auto *reduce = find(a, Collective::all_reduce, 1, devices), *other = find(b, kind, 1, devices);
      QVERIFY(reduce && other);
      const double ratio = ring(*other) / ring(*reduce);
      QVERIFY2(ratio > 0.45 && ratio < 1.6, std::to_string(ratio).c_str());
    };
    const MeasuredLog reduce = read("nccl-tests/a100x8_nccl_allreduce.log", LogKind::nccl_tests);
    compare(reduce, read("nccl-tests/a100x8_nccl_allgather.log", LogKind::nccl_tests), 8, Collective::all_gather);
    for (const int devices : {2, 4}) {
      const auto name = "nnscaler/mi200_intra_" + std::to_string(devices) + ".json";
      const MeasuredLog log = read(name.c_str(), LogKind::nnscaler);
      compare(log, log, devices, Collective::all_gather);
      compare(log, log, devices, Collective::reduce_scatter);
    }
    for (const char* devices : {"2", "4", "8"}) {
      const auto prim = [&](const char* kind) {
        return read((std::string("aceso_v100/prim_gpt_1_3B_") + kind + "_" + devices + "gpus.csv").c_str(),
                    LogKind::aceso_collectives);
      };
      compare(prim("all_reduce"), prim("all_gather"), *devices - '0', Collective::all_gather);
      compare(prim("all_reduce"), prim("reduce_scatter"), *devices - '0', Collective::reduce_scatter);
    }
  }

  // Every file below the folder is read or refused with its name in one message; none takes long.
  void every_file() {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(data_ / "hardware"))
      if (entry.is_regular_file()) paths.push_back(entry.path().string());
    QVERIFY(paths.size() >= 140);
    for (const auto& path : paths) {
      const auto log = read_measured_log(path);
      QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
      QVERIFY(!(log->curves.empty() && log->figures.empty() && log->operators.empty() && !log->topology));
    }
    const auto report = read_hardware_files(paths, *open_hardware("v100-16gb-2x8"));
    QVERIFY(report.has_value());
    QVERIFY(report->cluster);
    QVERIFY(parse_hardware_profile(write_hardware_profile(*report->cluster), "all.json").has_value());
  }
};

QTEST_APPLESS_MAIN(MeasuredLogsTest)
#include "measured_logs_test.moc"
