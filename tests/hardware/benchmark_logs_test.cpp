// SPDX-License-Identifier: Apache-2.0
// PARAM, superbench and aiconfigurator: small texts in their formats, times and sizes worked out by hand.
#include <QTest>
#include <algorithm>
#include <cmath>

#include "core/hardware/logs/measured_log.h"

using namespace turnpoint;

namespace {

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

const MeasuredCurve* curve_of(const MeasuredLog& log, Collective kind) {
  for (const auto& curve : log.curves)
    if (curve.kind == kind) return &curve;
  return nullptr;
}
double figure_of(const MeasuredLog& log, Figure wanted) {
  for (const auto& figure : log.figures)
    if (figure.figure == wanted) return figure.value;
  return 0;
}

// 1 MiB in 100 us is 10.486 GB/s; eight ranks make 2 x 7 / 8 of it on the ring.
constexpr const char* kParam =
    "[Rank   0] allSizes: [1048576] element_size: 4 local_rank: 0, num_pg 1, groupSize 8\n"
    "\n\tCOMMS-RES                         total-size (B)  nElementsPerRank  nElementsPairPerRank  Latency(us):p50\n"
    "\tCOMMS-RES-all_reduce-float32           1048576            262144             100.0       101.0       105.0"
    "        90.0       110.0         10.486      18.350\n"
    "\tCOMMS-RES-all_to_all-float32           1048576             32768             200.0       201.0       205.0"
    "       190.0       210.0          5.243       4.588\n";

}  // namespace

class BenchmarkLogsTest : public QObject {
  Q_OBJECT

 private slots:
  void param_tables() {
    const auto log = parse_measured_log(kParam, "param.log");
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    QCOMPARE(log->kind, LogKind::param);
    const auto *reduce = curve_of(*log, Collective::all_reduce), *exchange = curve_of(*log, Collective::all_to_all);
    QVERIFY(reduce && exchange);
    QCOMPARE(reduce->group, (DeviceGroup{8, 1, 8, 1}));
    QVERIFY(near(reduce->points[0].bytes, 1048576) && near(reduce->points[0].time_s, 100e-6));
    QVERIFY(near(reduce->points[0].spread.min_s, 90e-6) && near(reduce->points[0].spread.max_s, 110e-6));
    QVERIFY(near(exchange->points[0].bytes, 8 * 1048576.0) && near(exchange->points[0].time_s, 200e-6));
  }

  // A column more, a launcher's prefix, and no word about the ranks: the two bandwidths tell them.
  void param_tables_of_other_versions_data() {
    QTest::addColumn<QString>("row");
    QTest::addColumn<double>("time");
    QTest::newRow("pairs") << "0: \tCOMMS-RES-all_reduce-float32  1048576  262144  0  100.0  101.0  105.0  90.0  110.0  10.486  18.350"
                           << 100e-6;
    QTest::newRow("compute") << "\tCOMMS-RES-all_reduce-float32-tag  1048576  262144  100.0  101.0  105.0  90.0  110.0  10.486  18.350  300.0  200.0"
                             << 100e-6;
    QTest::newRow("bandwidths") << "COMMS-RES-all_reduce-float32        1048576         10.486      18.3505" << 1048576 / 10.486e9;
  }
  void param_tables_of_other_versions() {
    QFETCH(QString, row);
    QFETCH(double, time);
    const auto log = parse_measured_log("mpirun -np 8 -npernode 4 python comms.py\n" + row.toStdString() + "\n", "p.log");
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    QCOMPARE(log->curves.at(0).group, (DeviceGroup{8, 2, 4, 1}));
    QVERIFY(near(log->curves.at(0).points[0].time_s, time));
    const auto told = parse_measured_log(row.toStdString() + "\n", "p.log");
    QVERIFY(told.has_value());
    QCOMPARE(told->curves.at(0).group, (DeviceGroup{8, 1, 8, 1}));  // a note says that one node is assumed
    QVERIFY(!told->problems.empty());
  }

  void param_rows_that_contradict_themselves_are_left_out() {
    std::string text = kParam;
    text += "\tCOMMS-RES-all_gather-float32   2097152   262144   100.0   101.0   105.0   90.0   110.0   3.000   2.625\n";
    text += "\tCOMMS-RES-all_to_allv-float32  2097152   262144   100.0   101.0   105.0   90.0   110.0  20.972  18.350\n";
    const auto log = parse_measured_log(text, "param.log");
    QVERIFY(log.has_value() && !curve_of(*log, Collective::all_gather));
    QCOMPARE(curve_of(*log, Collective::all_to_all)->points.size(), std::size_t(1));
    const auto said = [&](const char* words) {
      return std::count_if(log->problems.begin(), log->problems.end(),
                           [&](const LogProblem& problem) { return problem.what.find(words) != std::string::npos; });
    };
    QCOMPARE(said("no latency fits"), 1);
    QCOMPARE(said("'all_to_allv-float32' measures nothing"), 1);
    QCOMPARE(said("one is assumed"), 1);
  }

  void superbench_results_of_two_nodes() {
    const std::string text =
        R"({"node": "a", "nccl-bw:nvlink/allreduce_8388608_time:0": 100.0, "nccl-bw:nvlink/allreduce_8388608_algbw:0": 83.89,
            "nccl-bw:nvlink/allreduce_8388608_busbw:0": 146.8, "nccl-bw:nvlink/allreduce_1024_time:0": 20.0,
            "mem-bw/h2d_bw:0": 25.0, "mem-bw/h2d_bw:1": 27.0, "mem-bw/d2h_bw:0": 24.0, "ib-loopback/ib_write_bw_8388608:0": 24.5,
            "ib-loopback/ib_write_bw_4096:0": 11.0, "gemm-flops/fp16_flops:0": 1.0, "nccl-bw/return_code": 0})";
    std::string one = text;
    one.erase(std::remove(one.begin(), one.end(), '\n'), one.end());
    std::string other = one;
    other.replace(other.find("100.0"), 5, "104.0");
    for (const std::string& whole : {one + "\n" + other + "\n", "[" + one + "," + other + "]"}) {
      const auto log = parse_measured_log(whole, "results-summary.jsonl");
      QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
      QCOMPARE(log->kind, LogKind::superbench);
      const auto* curve = curve_of(*log, Collective::all_reduce);
      QVERIFY(curve && curve->points.size() == 2);
      QCOMPARE(curve->group, (DeviceGroup{8, 1, 8, 1}));
      QVERIFY(near(curve->points[1].bytes, 8388608) && near(curve->points[1].time_s, 102e-6));
      QVERIFY(near(figure_of(*log, Figure::host_to_device), 26e9));
      QVERIFY(near(figure_of(*log, Figure::device_to_host), 24e9));
      QVERIFY(near(figure_of(*log, Figure::network_card), 24.5e9));
    }
  }

  void superbench_says_what_it_cannot_tell() {
    const auto broken = parse_measured_log("{\"mem-bw/h2d_bw\": 25.0}\n{\"mem-bw/h2d_bw\": \n", "r.jsonl");
    QVERIFY(!broken && broken.error().message().find("r.jsonl: line 2") != std::string::npos);
    const auto nothing = parse_measured_log(R"({"nccl-bw/allreduce_1024_time": "fast", "mem-bw/x": -1})", "r.json");
    QVERIFY(!nothing.has_value());
    const auto alone = parse_measured_log(R"({"nccl-bw/allreduce_1024_time": 5.0, "mem-bw/h2d_bw": 25.0})", "r.json");
    QVERIFY(alone && alone->curves.empty() && !alone->problems.empty());  // nothing tells the ranks
  }

  void aiconfigurator_tables() {
    const auto log = parse_measured_log(
        "framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency\n"
        "TRTLLM,2.26,NVIDIA H100,all_gather,NCCL,half,8,524288,0.05\n"
        "TRTLLM,2.26,NVIDIA H100,alltoall,NCCL,int8,4,1048576,0.08\n"
        "TRTLLM,2.26,NVIDIA H100,odd,NCCL,half,4,1048576,0.08\n"
        "TRTLLM,2.26,NVIDIA H100,all_reduce,NCCL,half,8,x,0.08\n",
        "nccl_perf.txt");
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    QCOMPARE(log->kind, LogKind::aiconfigurator);
    QCOMPARE(log->device_name, std::string("NVIDIA H100"));
    const auto *gather = curve_of(*log, Collective::all_gather), *exchange = curve_of(*log, Collective::all_to_all);
    QVERIFY(gather && exchange);
    QVERIFY(near(gather->points[0].bytes, 1048576) && near(gather->points[0].time_s, 50e-6));
    QVERIFY(near(exchange->points[0].bytes, 4 * 1048576.0) && near(exchange->points[0].time_s, 80e-6));
    QVERIFY(log->problems.size() >= 2);
    const auto products = parse_measured_log(
        "gemm_dtype,m,n,k,latency\nbfloat16,64,4096,1024,0.25\nfp8,64,4096,1024,0.1\n", "gemm_perf.txt");
    QVERIFY(products && products->operators.size() == 1);
    const auto& product = products->operators[0];
    QVERIFY(near(product.time_s, 250e-6) && product.precision == Precision::bf16);
    QCOMPARE(product.dims[0], (std::pair<std::string, std::int64_t>("M", 4096)));  // outputs
    QCOMPARE(product.dims[1], (std::pair<std::string, std::int64_t>("N", 64)));    // samples
  }
};

QTEST_APPLESS_MAIN(BenchmarkLogsTest)
#include "benchmark_logs_test.moc"
