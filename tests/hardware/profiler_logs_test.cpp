// SPDX-License-Identifier: Apache-2.0
// Traces of profilers and tables of network benchmarks: small files made by hand after real ones, each value worked
// out.
#include <fmt/format.h>
#include <zlib.h>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <fstream>

#include "core/hardware/measured/profile_builder.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

bool nearly(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b)); }

MeasuredLog parsed(const std::string& text, const char* path) {
  const auto log = parse_measured_log(text, path);
  if (log) return *log;
  QTest::qFail(log.error().message().c_str(), __FILE__, __LINE__);
  return {};
}

std::string remarks(const MeasuredLog& log) {
  std::string text;
  for (const auto& problem : log.problems) text += fmt::format("{}: {}\n", problem.line, problem.what);
  return text;
}

const MeasuredOperator* product(const MeasuredLog& log, std::int64_t samples, const char* phase) {
  for (const auto& op : log.operators)
    if (op.kind == "matmul" && op.dims.at(0).second == samples && op.phase == phase) return &op;
  return nullptr;
}

std::string cpu_op(int external, int sequence, double start, double duration, const std::string& name,
                   const std::string& more = {}, int thread = 7) {
  return fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": {},
    "args": {{"External id": {}, "Sequence number": {}, "Fwd thread id": 0{}}}}},)",
                     name, thread, start, duration, external, sequence, more);
}
std::string kernel(int external, double duration, const std::string& name, const std::string& more = {}) {
  return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 20, "ts": 5, "dur": {},
    "args": {{"External id": {}, "device": 0, "stream": 20{}}}}},)",
                     name, duration, external, more);
}
std::string exchange(const char* name, double in, double out, int group, const char* ranks, double duration) {
  return kernel(-1, duration, "ncclDevKernel_Ring",
                fmt::format(R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "Group size": {},
                               "dtype": "BFloat16", "Process Group Ranks": "{}")",
                            name, in, out, group, ranks));
}

/// One dense layer, forward twice and backward once, and exchanges on two hosts of two devices.
std::string trace() {
  const std::string shapes = R"(, "Input Dims": [[512], [4096, 1024], [1024, 512], []],
    "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar"])";
  std::string events;
  events += cpu_op(1, 10, 100, 50, "aten::linear") + cpu_op(2, 10, 110, 30, "aten::addmm", shapes);
  events += kernel(2, 200, "ampere_gemm");
  events += cpu_op(3, 11, 200, 50, "aten::linear") + cpu_op(4, 11, 210, 30, "aten::addmm", shapes);
  events +=
      kernel(4, 220,
             "ampere_gemm") +  // A kernel that names no operator, launched by a call inside the second: 240 in all.
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 7, "ts": 215, "dur": 5,
              "args": {"External id": 900, "correlation": 900}},)" +
      kernel(900, 20, "splitk_reduce", R"(, "correlation": 900)");
  events += cpu_op(5, 11, 300, 20, "aten::relu") + kernel(5, 30, "relu_kernel");
  // Backward of the second: two products inside its node, on another thread.
  events += cpu_op(6, 11, 400, 100, "autograd::engine::evaluate_function: AddmmBackward0", "", 8);
  events +=
      cpu_op(7, -1, 410, 30, "aten::mm",
             R"(, "Input Dims": [[4096, 512], [512, 1024]], "Input type": ["c10::BFloat16", "c10::BFloat16"])", 8);
  events +=
      cpu_op(8, -1, 450, 30, "aten::mm",
             R"(, "Input Dims": [[512, 4096], [4096, 1024]], "Input type": ["c10::BFloat16", "c10::BFloat16"])", 8);
  events += kernel(7, 210, "ampere_gemm") + kernel(8, 190, "ampere_gemm");
  events += exchange("allreduce", 1048576, 1048576, 4, "[0, 1, 2, 3]", 900) +
            exchange("allreduce", 1048576, 1048576, 4, "[0, 1, 2, 3]", 400);
  events += exchange("_allgather_base", 1000, 2000, 2, "[0, 1]", 50);
  events += exchange("_reduce_scatter_base", 6000, 3000, 2, "[1, 3]", 60);
  events += exchange("all_to_all", 8000, 8000, 2, "[0, 1]", 70);
  events += kernel(-1, 80, "ncclDevKernel_SendRecv");
  events.pop_back();
  return R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 4},
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85017755648},
                         {"id": 1, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85017755648}],
    "traceEvents": [)" +
         events + R"(], "traceName": "t.json"})";
}

}  // namespace

class ProfilerLogsTest : public QObject {
  Q_OBJECT

  void check_trace(const MeasuredLog& log) {
    QCOMPARE(log.kind, LogKind::kineto);
    QCOMPARE(log.device_name, std::string("NVIDIA H100 80GB HBM3"));
    QCOMPARE(log.devices_per_node, 2);
    const auto *forward = product(log, 4096, "forward"), *backward = product(log, 4096, "backward");
    QVERIFY(forward && backward);
    QVERIFY(nearly(forward->time_s, 220e-6));  // the median of 200 and 240
    QVERIFY(nearly(forward->spread.min_s, 200e-6) && nearly(forward->spread.max_s, 240e-6));
    QVERIFY(nearly(backward->time_s, 400e-6));  // 210 and 190, both inside one node
    QCOMPARE(forward->precision, Precision::bf16);
    QCOMPARE(forward->dims[1].second, std::int64_t(1024));
    QCOMPARE(forward->dims[2].second, std::int64_t(512));
    QVERIFY(!product(log, 512, "forward"));  // a product inside backward is no layer of its own
    const auto curve = [&](Collective kind, const DeviceGroup& group) -> const MeasuredPoint* {
      for (const auto& found : log.curves)
        if (found.kind == kind && found.group == group) return &found.points.at(0);
      return nullptr;
    };
    // Four ranks on hosts of two; the time without waiting for the last one.
    const auto* reduce = curve(Collective::all_reduce, {4, 2, 2, 1});
    QVERIFY(reduce && nearly(reduce->bytes, 2 * 1048576) && nearly(reduce->time_s, 400e-6) && reduce->repeats == 2);
    const auto* gather = curve(Collective::all_gather, {2, 1, 2, 1});
    QVERIFY(gather && nearly(gather->bytes, 4000) && nearly(gather->time_s, 50e-6));
    const auto* scatter = curve(Collective::reduce_scatter, {2, 2, 1, 1});
    QVERIFY(scatter && nearly(scatter->bytes, 12000));
    const auto* all = curve(Collective::all_to_all, {2, 1, 2, 1});
    QVERIFY(all && nearly(all->bytes, 32000));
    QVERIFY2(remarks(log).find("1 kernels of NCCL do not say") != std::string::npos, remarks(log).c_str());
  }

 private slots:
  void kineto() {
    check_trace(parsed(trace(), "trace.json"));
    // What it measured costs plans: the layer's signature, forward and backward.
    std::vector<std::string> notes;
    const auto cluster = *build_profile({parsed(trace(), "trace.json")}, *open_hardware("h100-80gb-2x2"), notes);
    QCOMPARE(cluster->operators.size(), std::size_t(2));
    for (const auto& sample : cluster->operators) {
      QVERIFY((sample.dims == std::vector<std::int64_t>{4096, 1024, 512}));
      QVERIFY(nearly(sample.time_s, sample.phase == "forward" ? 220e-6 : 400e-6));
    }
    QCOMPARE(cluster->collectives.size(), std::size_t(4));
  }

  // Longer than memory is used for, packed; and the same on a text that is cut or nested without end.
  void kineto_of_any_size() {
    QTemporaryDir folder;
    const std::string path = folder.filePath("trace.json.gz").toStdString();
    std::string filler;
    for (int i = 0; i < 1000; ++i)
      filler += fmt::format(
          R"({{"ph": "X", "cat": "python_function", "name": "line {}", "tid": 1, "ts": {}, "dur": 1}},)", i * 7919, i);
    std::string text = trace();
    gzFile file = gzopen(path.c_str(), "wb1");
    const auto at = text.find("\"traceEvents\": [") + 16;
    gzwrite(file, text.data(), static_cast<unsigned>(at));
    for (std::size_t size = 0; size < (34u << 20); size += filler.size())
      gzwrite(file, filler.data(), static_cast<unsigned>(filler.size()));
    gzwrite(file, text.data() + at, static_cast<unsigned>(text.size() - at));
    gzclose(file);
    const auto log = read_measured_log(path);
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    check_trace(*log);
    const auto cut = parse_measured_log(text.substr(0, text.size() - 30), "cut.json");
    QVERIFY(!cut.has_value() && cut.error().message().find("cut.json: not valid JSON") != std::string::npos);
    const auto deep = parse_measured_log("{\"traceEvents\": " + std::string(100'000, '['), "deep.json");
    QVERIFY(!deep.has_value() && deep.error().message().find("nested deeper than 64") != std::string::npos);
    const auto wide = parse_measured_log("{\"traceEvents\": [\"" + std::string(17u << 20, 'x') + "\"]}", "wide.json");
    QVERIFY2(!wide.has_value() && wide.error().message().find("a value of more than 16 MiB") != std::string::npos,
             wide ? "" : wide.error().message().c_str());
  }

  void kineto_of_the_data_folder() {
    REQUIRE_DATA(data);
    const auto log = read_measured_log((data / "traces/alexnet_kineto.json.gz").string());
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    QCOMPARE(log->device_name, std::string("NVIDIA A100-PG509-200"));
    QCOMPARE(log->devices_per_node, 8);
    // Recorded without shapes: times by name, no product of a size.
    QVERIFY2(remarks(*log).find("6 matrix products without sizes") != std::string::npos, remarks(*log).c_str());
    QVERIFY(!log->operators.empty() && log->curves.empty());
    QVERIFY(std::any_of(log->operators.begin(), log->operators.end(),
                        [](const auto& op) { return op.kind == "aten::addmm" && op.time_s > 1e-6; }));
  }

  void osu() {
    const std::string table =
        "mpirun -np 16 --npernode 8 ./osu_allreduce -d cuda -f\n\n"
        "# OSU MPI-CUDA Allreduce Latency Test v7.4\n# Datatype: MPI_FLOAT.\n"
        "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
        "4                      20.50             18.25             22.75        1000\n"
        "1048576               310.50            300.25            320.75         100\n";
    const MeasuredLog log = parsed(table, "osu.txt");
    QCOMPARE(log.kind, LogKind::osu);
    QCOMPARE(log.curves.size(), std::size_t(1));
    QCOMPARE(log.curves[0].group, (DeviceGroup{16, 2, 8, 1}));
    QVERIFY(nearly(log.curves[0].points.at(1).bytes, 1048576) && nearly(log.curves[0].points[1].time_s, 310.5e-6));
    QVERIFY(nearly(log.curves[0].points[1].spread.max_s, 320.75e-6));
    QCOMPARE(remarks(log), std::string());
    // Without a command line the name tells the shape; sizes are one rank's or one pair's.
    const auto named = [&](const char* title, const char* path) {
      return parsed(fmt::format("# OSU MPI {} Latency Test v5.9\n# Size       Avg Latency(us)\n1024    12.5\n", title),
                    path);
    };
    const MeasuredLog gather = named("Allgather", "osu_allgather_2nodes_8gpus_per_node.txt");
    QCOMPARE(gather.curves.at(0).group, (DeviceGroup{16, 2, 8, 1}));
    QVERIFY(nearly(gather.curves[0].points.at(0).bytes, 16 * 1024));
    QVERIFY2(remarks(gather).find("in the memory of hosts") != std::string::npos, remarks(gather).c_str());
    const MeasuredLog all = named("All-to-All Personalized Exchange", "osu_alltoall_np4_1nodes.txt");
    QVERIFY(nearly(all.curves.at(0).points.at(0).bytes, 4 * 4 * 1024));
    const auto silent =
        parse_measured_log("# OSU MPI Allreduce Latency Test v7.0\n# Size Avg Latency(us)\n4 1.5\n", "a.txt");
    QVERIFY(!silent.has_value() && silent.error().message().find("says how many ranks ran") != std::string::npos);
    // Two ranks: half a round trip is a send, and of bandwidths the best counts.
    const MeasuredLog pair = parsed(
        "# OSU MPI-CUDA Latency Test v7.4\n# Size  Latency (us)\n0  1.0\n8  2.5\n65536  9.5\n"
        "# OSU MPI-CUDA Bandwidth Test v7.4\n# Size  Bandwidth (MB/s)\n1024  500.5\n4194304  24000.5\n",
        "osu_inter_node.txt");
    QCOMPARE(pair.curves.at(0).group, (DeviceGroup{2, 2, 1, 1}));
    QCOMPARE(pair.curves[0].kind, Collective::send);
    QCOMPARE(pair.curves[0].points.size(), std::size_t(2));
    QCOMPARE(pair.figures.size(), std::size_t(1));
    QVERIFY(nearly(pair.figures[0].value, 24000.5e6));
  }

  void intel_mpi() {
    const MeasuredLog log = parsed(
        "#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part\n"
        "#----------------------------------------------------------------\n"
        "# Benchmarking PingPong \n# #processes = 2 \n# ( 6 additional processes waiting in MPI_Barrier)\n"
        "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
        "            0         1000         0.50         0.00\n         1024         1000         1.25       819.20\n\n"
        "# Benchmarking Allgather \n# #processes = 8 \n"
        "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
        "            0         1000         0.05         0.06         0.05\n"
        "         2048         1000         9.25        12.75        11.50\n"
        "# Benchmarking Barrier \n# #processes = 8 \n #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
        "         1000         3.10         3.20         3.15\n",
        "imb_1nodes.txt");
    QCOMPARE(log.kind, LogKind::intel_mpi);
    QCOMPARE(log.curves.size(), std::size_t(2));
    const auto& gather = log.curves[0].kind == Collective::all_gather ? log.curves[0] : log.curves[1];
    const auto& send = log.curves[0].kind == Collective::all_gather ? log.curves[1] : log.curves[0];
    QCOMPARE(gather.group, (DeviceGroup{8, 1, 8, 1}));
    QVERIFY(nearly(gather.points.at(0).bytes, 8 * 2048) && nearly(gather.points[0].time_s, 11.5e-6));
    QVERIFY(nearly(gather.points[0].spread.max_s, 12.75e-6));
    QCOMPARE(send.kind, Collective::send);
    QVERIFY(nearly(send.points.at(0).bytes, 1024) && nearly(send.points[0].time_s, 1.25e-6));
  }

  void perftest() {
    const std::string bandwidth =
        "                    RDMA_Write BW Test\n Link type       : IB\n"
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
        " 4096       5000             150.00             148.00               4.516\n"
        " 65536      5000             197.00             196.00               0.373840\n";
    const MeasuredLog log = parsed(bandwidth, "ib.txt");
    QCOMPARE(log.kind, LogKind::perftest);
    QCOMPARE(log.figures.size(), std::size_t(1));
    QVERIFY(nearly(log.figures[0].value, 196e9 / 8));
    const MeasuredLog mebi = parsed(
        " #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n 65536 5000 11545.2 11500.5 0.18\n",
        "ib.txt");
    QVERIFY(nearly(mebi.figures.at(0).value, 11500.5 * 1048576));
    const MeasuredLog latency = parsed(
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n 2 1000 1.50 5.50 1.75 "
        "1.80\n",
        "lat.txt");
    QVERIFY(nearly(latency.figures.at(0).value, 1.75e-6));
    QVERIFY(!parse_measured_log("RDMA_Write Bidirectional BW Test\n" + bandwidth.substr(39), "both.txt").has_value());
    // One card says nothing of a node; eight of them, counted by a topology, do.
    std::vector<std::string> notes;
    const ClusterPtr base = *open_hardware("a100-80gb-2x8");
    QCOMPARE((*build_profile({log}, base, notes))->links[kInterNode].bandwidth, base->links[kInterNode].bandwidth);
    QVERIFY(notes.at(0).find("how many a node has is not told") != std::string::npos);
    MeasuredLog topology;
    topology.topology = Topology{8, {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"}, {}, 12};
    QVERIFY(nearly((*build_profile({log, topology}, base, notes))->links[kInterNode].bandwidth, 4 * 196e9 / 8));
  }

  void rocm_topology() {
    const MeasuredLog log = parsed(
        "=========================== ROCm System Management Interface ===========================\n"
        "=============================== Weight between two GPUs ================================\n"
        "       GPU0         GPU1         \nGPU0   0            15           \nGPU1   15           0            \n"
        "============================== Link Type between two GPUs ==============================\n"
        "       GPU0         GPU1         \nGPU0   0            XGMI         \nGPU1   XGMI         0            \n"
        "====================================== Numa Nodes ======================================\n"
        "GPU[0]\t\t: (Topology) Numa Node: 0\n",
        "topo.txt");
    QCOMPARE(log.kind, LogKind::rocm_topology);
    QCOMPARE(log.topology->devices, 2);
    QCOMPARE(log.topology->links[0][0], std::string("X"));
    QCOMPARE(log.topology->links[0][1], std::string("xGMI"));
    QVERIFY(!parse_measured_log("= Link Type between two GPUs =\n GPU0 GPU1\nGPU0 0 XGMI\n", "cut.txt").has_value());
  }

  void nsys() {
    const MeasuredLog log = parsed(
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "61.5,6150,3,2050.0,2000.0,1900,2250,150.5,\"void cutlass::Kernel<float, 128, 64>(int, float)\"\n"
        "38.5,3850,1,3850.0,3850.0,3850,3850,0.0,ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm *)\n",
        "kernels.csv");
    QCOMPARE(log.kind, LogKind::nsys);
    QCOMPARE(log.operators.size(), std::size_t(2));
    QCOMPARE(log.operators[0].kind, std::string("void cutlass::Kernel<float, 128, 64>(int, float)"));
    QVERIFY(nearly(log.operators[0].time_s, 2e-6) && nearly(log.operators[0].spread.max_s, 2.25e-6));
    QVERIFY2(remarks(log).find("1 kernels of NCCL: neither bytes nor devices") != std::string::npos,
             remarks(log).c_str());
  }
};

QTEST_APPLESS_MAIN(ProfilerLogsTest)
#include "profiler_logs_test.moc"
