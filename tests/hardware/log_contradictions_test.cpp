// SPDX-License-Identifier: Apache-2.0
// Logs whose parts contradict one another, that a launcher or a collector has prefixed, or that are longer than memory:
// who took part is what list, host names and bandwidth columns say together.
#include <fmt/format.h>
#include <zlib.h>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>

#include "core/hardware/collective_model.h"
#include "core/hardware/measured/profile_builder.h"

using namespace turnpoint;

namespace {

bool near_to(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

std::string told(const MeasuredLog& log) {
  std::string text;
  for (const auto& problem : log.problems) text += fmt::format("{}: {}\n", problem.line, problem.what);
  return text;
}

const char* const kHead =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";

std::string rank(int number, const std::string& host, int device) {
  return fmt::format("#  Rank {:2} Group  0 Pid  100 on {} device {:2} [0000:{:02x}:00] NVIDIA H100 80GB HBM3\n",
                     number, host, device, device);
}

/// 64 MiB in 1.3 ms: 51.62 GB/s; the bus bandwidth of an all-reduce of `ranks`.
std::string rows(int ranks) {
  return fmt::format(
      "    67108864      16777216     float     sum      -1   1300.0   51.62   {0:.2f}      0   1300.0   "
      "51.62   {0:.2f}      0\n",
      51.6222 * 2 * (ranks - 1) / ranks);
}

/// Sixteen ranks, eight on each of two hosts.
std::string two_nodes() {
  std::string text = "# nThread 1 nGpus 1 minBytes 67108864 maxBytes 67108864\n# Using devices\n";
  for (int i = 0; i < 16; ++i) text += rank(i, i < 8 ? "a" : "b", i % 8);
  return text + "# Collective test starting: all_reduce_perf\n" + kHead + rows(16);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  return at == std::string::npos ? std::string() : text.replace(at, from.size(), to);
}

MeasuredLog log_of_text(const std::string& text, const char* path = "run.log") {
  const auto log = parse_measured_log(text, path);
  if (!log) {
    QTest::qFail(log.error().message().c_str(), __FILE__, __LINE__);
    return {};
  }
  return *log;
}

DeviceGroup group_in(const std::string& text) {
  const MeasuredLog log = log_of_text(text);
  return log.curves.empty() ? DeviceGroup{} : log.curves[0].group;
}

const DeviceGroup kTwoNodes{16, 2, 8, 1};

std::string prefixed(const std::string& text, const std::string& prefix) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) result += prefix + line + "\n";
  return result;
}

void pack(const std::string& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

}  // namespace

class LogContradictionsTest : public QObject {
  Q_OBJECT

 private slots:
  void a_list_that_lost_a_line() {
    QCOMPARE(group_in(two_nodes()), kTwoNodes);
    // The first line was copied without its '#': it is a rank like the others.
    const MeasuredLog bare = log_of_text(replaced(two_nodes(), "#  Rank  0", "Rank  0"));
    QCOMPARE(bare.curves.at(0).group, kTwoNodes);
    QCOMPARE(told(bare), std::string());
    // It is missing altogether: 15 are listed, numbered up to 15, on hosts of 7 and 8.
    const MeasuredLog lost = log_of_text(replaced(two_nodes(), rank(0, "a", 0), ""));
    QCOMPARE(lost.curves.at(0).group, kTwoNodes);
    QVERIFY2(told(lost).find("the list shows 15 ranks, but numbers them up to 15: 16 taken") != std::string::npos,
             told(lost).c_str());
    // The last line is missing: only the bandwidths know of it.
    const MeasuredLog cut = log_of_text(replaced(two_nodes(), rank(15, "b", 7), ""));
    QCOMPARE(cut.curves.at(0).group, kTwoNodes);
    QVERIFY2(told(cut).find("the log lists 15 ranks, but its bandwidth columns say 16: 16 taken") != std::string::npos,
             told(cut).c_str());
    // All of the second host is missing.
    std::string half = two_nodes();
    for (int i = 8; i < 16; ++i) half = replaced(half, rank(i, "b", i - 8), "");
    const MeasuredLog first = log_of_text(half);
    QCOMPARE(first.curves.at(0).group, kTwoNodes);
    QVERIFY2(told(first).find("the list names 1 host, but 16 ranks of at most 8 a host need 2") != std::string::npos,
             told(first).c_str());
  }

  // Such a run calibrates the network and leaves NVLink alone.
  void a_lost_line_sets_no_nvlink() {
    std::vector<std::string> notes;
    const ClusterPtr base = *open_hardware("h100-80gb-2x8");
    const auto cluster = build_profile({log_of_text(replaced(two_nodes(), rank(0, "a", 0), ""))}, base, notes);
    QVERIFY(cluster.has_value());
    QCOMPARE((*cluster)->links[kIntraNode].bandwidth, base->links[kIntraNode].bandwidth);
    Cluster formulas = **cluster;
    formulas.collectives.clear();
    const double time = CollectiveModel(formulas, {}).time(Collective::all_reduce, kTwoNodes, 67108864).value;
    QVERIFY(std::abs(time - 1.3e-3) < 1e-6 * 1.3e-3);
  }

  void uneven_hosts_are_no_node() {
    std::string text = "# Collective test starting: all_reduce_perf\n";
    for (int i = 0; i < 12; ++i) text += rank(i, i < 8 ? "a" : "b", i % 8);
    const auto log = parse_measured_log(text + kHead + rows(12), "run.log");
    QVERIFY(!log.has_value());
    QVERIFY2(log.error().message().find("12 ranks on 2 hosts of 4 to 8 devices: a group of unequal nodes") !=
                 std::string::npos,
             log.error().message().c_str());
  }

  // Two containers with one host name: ranks that say they are on the same device cannot be on the same host.
  void hosts_of_one_name() {
    std::string text = "# Collective test starting: all_reduce_perf\n";
    for (int i = 0; i < 16; ++i) text += rank(i, "localhost", i % 8);
    const MeasuredLog log = log_of_text(text + kHead + rows(16));
    QCOMPARE(log.curves.at(0).group, kTwoNodes);
    QVERIFY2(told(log).find("2 ranks each say that they are on the same device: 2 hosts of one name are assumed") !=
                 std::string::npos,
             told(log).c_str());
  }

  void prefixes_of_launchers_and_collectors_data() {
    QTest::addColumn<QByteArray>("prefix");
    for (const char* prefix :
         {"2026-05-01T12:00:00.123456789Z ", "2026-05-01 12:00:00,123 ", "[2026-05-01 12:00:00] ", "12:00:00.5  ",
          "1714560000.123456 ", "2026-05-01T12:00:00.1Z stdout F ", "node-17.cluster: ", "12: ", "[1,0]<stdout>:",
          "Fri May  1 12:00:00 2026[1,0]<stdout>:", "(Worker pid=4711, ip=10.0.0.1) ", "2026-05-01T12:00:00Z 3: "})
      QTest::newRow(prefix) << QByteArray(prefix);
  }
  void prefixes_of_launchers_and_collectors() {
    QFETCH(QByteArray, prefix);
    const MeasuredLog log = log_of_text(prefixed(two_nodes(), prefix.toStdString()));
    QCOMPARE(log.curves.size(), std::size_t(2));
    QCOMPARE(log.curves[0].group, kTwoNodes);
    QVERIFY(near_to(log.curves[0].points.at(0).time_s, 1.3e-3));
    QCOMPARE(told(log), std::string());
  }

  // NCCL_DEBUG=INFO of a thousand ranks: the table comes after hundreds of thousands of lines, and the file is longer
  // than what is held in memory at once.
  void logs_of_any_length() {
    QTemporaryDir folder;
    const std::string info = "node1:4242:4242 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n";
    std::string text;
    while (text.size() < 40'000) text += info;
    QCOMPARE(group_in(text + two_nodes()), kTwoNodes);  // after 500 lines in memory
    const std::string path = folder.filePath("long.log").toStdString();
    {
      std::ofstream file(path);
      for (std::size_t size = 0; size < (36u << 20); size += text.size()) file << text;
      file << "node1:4242:4242 [0] NCCL INFO caf\xe9\n" << std::string(100'000, 'x') << "\n" << two_nodes();
    }
    const auto log = read_measured_log(path);
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    QCOMPARE(log->curves.at(0).group, kTwoNodes);
    QVERIFY(log->curves[0].points.at(0).line > 400'000);
    QVERIFY2(told(*log).find("longer than 65536 bytes: left out") != std::string::npos, told(*log).c_str());
    QVERIFY2(told(*log).find("not UTF-8 text: left out") != std::string::npos, told(*log).c_str());
    // The same without a table is refused with its size.
    std::filesystem::resize_file(path, 34u << 20);
    const auto none = read_measured_log(path);
    QVERIFY(!none.has_value() && none.error().message().find("larger than 32 MiB") != std::string::npos);
  }

  void gzip() {
    QTemporaryDir folder;
    const std::string path = folder.filePath("run.log.gz").toStdString();
    pack(path, two_nodes());
    const auto log = read_measured_log(path);
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    QCOMPARE(log->curves.at(0).group, kTwoNodes);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    const auto cut = read_measured_log(path);
    QVERIFY(!cut.has_value());
    QVERIFY2(cut.error().message().find("run.log.gz: is a gzip file that ends too early") != std::string::npos,
             cut.error().message().c_str());
    // A tenth of a mebibyte that unpacks to a hundred.
    const std::string bomb = folder.filePath("bomb.gz").toStdString();
    gzFile file = gzopen(bomb.c_str(), "wb");
    const std::string line(1023, ' ');
    for (int i = 0; i < 100 * 1024; ++i) gzwrite(file, (line + "\n").data(), 1024);
    gzclose(file);
    const auto refused = read_measured_log(bomb);
    QVERIFY(!refused.has_value());
    QVERIFY2(refused.error().message().find("unpacks to more than 250 times its size") != std::string::npos,
             refused.error().message().c_str());
  }

  void one_unreadable_file_is_a_warning() {
    QTemporaryDir folder;
    const auto path = [&](const char* name) { return folder.filePath(name).toStdString(); };
    std::ofstream(path("run.log")) << two_nodes();
    std::ofstream(path("prose.txt")) << "Dear reader,\nno numbers here.\n";
    const auto report =
        read_hardware_files({path("prose.txt"), path("absent.log"), path("run.log")}, *open_hardware("h100-80gb-2x8"));
    QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
    QCOMPARE(report->logs.size(), std::size_t(1));
    QCOMPARE(report->unread.size(), std::size_t(2));
    QCOMPARE(report->unread[0].path, path("prose.txt"));
    QVERIFY(report->unread[0].error.message().find("no log of a kind that is read") != std::string::npos);
    QVERIFY(report->unread[1].error.message().find("no such file") != std::string::npos);
    QVERIFY(report->cluster && report->cluster->collectives.size() == 1);
    // Nothing could be read: the first reason is the answer. A broken profile is never passed over.
    QCOMPARE(read_hardware_files({path("prose.txt"), path("absent.log")}).error().code, ErrorCode::bad_input);
    std::ofstream(path("broken.json")) << R"({"format": "turnpoint/hardware-profile@1", "nodes": 0})";
    QVERIFY(!read_hardware_files({path("run.log"), path("broken.json")}).has_value());
  }

  // Of four stages on two nodes of eight, some sends cross and some do not: one mean tells of no link.
  void galvatron_sends_by_level() {
    const char* const text = R"({"pp_size_2": 11.5, "pp_size_4": 30.25, "pp_size_16": 14.75})";
    const ClusterPtr base = *open_hardware("a100-80gb-2x8");
    const auto build = [&](const char* path) {
      std::vector<std::string> notes;
      return *build_profile({log_of_text(text, path)}, base, notes);
    };
    const ClusterPtr two = build("p2p_bandwidth_2nodes_8gpus_per_node.json");
    QCOMPARE(two->links[kIntraNode].bandwidth, base->links[kIntraNode].bandwidth);
    QVERIFY(near_to(two->links[kInterNode].bandwidth, 11.5e9));
    const MeasuredLog log = log_of_text(text, "p2p_bandwidth_2nodes_8gpus_per_node.json");
    QCOMPARE(log.figures.size(), std::size_t(1));
    QVERIFY2(told(log).find("pp_size_16: some of its sends cross nodes and some do not") != std::string::npos,
             told(log).c_str());
    // On one node all of them stay inside.
    const ClusterPtr one = build("p2p_bandwidth_1nodes_8gpus_per_node.json");
    QVERIFY(near_to(one->links[kIntraNode].bandwidth, 14.75e9));
    QCOMPARE(one->links[kInterNode].bandwidth, base->links[kInterNode].bandwidth);
    QVERIFY(told(log_of_text(text, "bandwidth.json")).find("its name does not tell the nodes") != std::string::npos);
  }

  void data_sheets_are_whole_or_refused() {
    const auto sheet = [](const char* name, const char* rest) {
      return fmt::format(R"({{"name": "{}", "mem_per_GPU_in_GB": 80, "hbm_bandwidth_in_GB_per_sec": 2500,
        "peak_fp16_TFLOPS": 300 {}}})",
                         name, rest);
    };
    std::vector<std::string> notes;
    const ClusterPtr base = *open_hardware("h100-80gb-1x8");
    const auto with = [&](const std::string& text) {
      notes.clear();
      return *build_profile({log_of_text(text, "sheet.json")}, base, notes);
    };
    // The base's own device: all that the sheet says, memory included.
    const ClusterPtr same = with(sheet("h100-sxm-80gb", ""));
    QCOMPARE(same->device.memory_bytes, std::int64_t(80) << 30);
    QCOMPARE(same->device.memory_bandwidth, 2500e9);
    QCOMPARE(same->device.peak_bf16, 300e12);
    QCOMPARE(same->device.peak_fp32, base->device.peak_fp32);
    // Another device without an fp32 peak is not taken, and said.
    const ClusterPtr other = with(sheet("a100-sxm-80gb", ""));
    QCOMPARE(write_hardware_profile(*other), write_hardware_profile(*base));
    QVERIFY2(notes.at(0).find("describes 'a100-sxm-80gb', the profile is for H100-80GB, and the sheet lacks "
                              "peak_fp32_TFLOPS: it is not taken") != std::string::npos,
             notes.at(0).c_str());
    // A whole one replaces the device, name included, and nothing of the base's device stays.
    const ClusterPtr whole = with(sheet("Abacus 9", R"(, "peak_fp32_TFLOPS": 40)"));
    QCOMPARE(whole->device.name, std::string("Abacus 9"));
    QCOMPARE(whole->name, std::string("abacus-9-1x8"));
    QCOMPARE(whole->device.memory_bytes, std::int64_t(80) << 30);
    QCOMPARE(whole->device.memory_bandwidth, 2500e9);
    QCOMPARE(whole->device.peak_bf16, 300e12);
    QCOMPARE(whole->device.peak_fp32, 40e12);
    QCOMPARE(whole->links[kIntraNode].bandwidth, base->links[kIntraNode].bandwidth);
    QVERIFY(parse_hardware_profile(write_hardware_profile(*whole), "p.json").has_value());
    // A sheet that contradicts itself is not half believed.
    const ClusterPtr torn = with(sheet("h100-sxm-96gb", ""));
    QCOMPARE(write_hardware_profile(*torn), write_hardware_profile(*base));
    QVERIFY2(notes.at(0).find("the memory contradicts the name") != std::string::npos, notes.at(0).c_str());
  }

  // Unequal cells: every pair reaches the smallest bandwidth and answers within the largest latency.
  void nvbandwidth_takes_the_slowest_cell() {
    const MeasuredLog log = log_of_text(
        "nvbandwidth Version: v0.6\n"
        "Device 0: NVIDIA H100 80GB HBM3 (00000000:01:00)\nDevice 1: NVIDIA H100 80GB HBM3 (00000000:02:00)\n"
        "Running device_to_device_latency_sm.\nDevice to Device Latency SM GPU(row) <-> GPU(column) (ns)\n"
        "           0         1\n 0       N/A    610.25\n 1    905.75       N/A\n\n"
        "SUM device_to_device_latency_sm 1516.00\n"
        "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
        "           0         1\n 0       N/A    276.50\n 1    140.25       N/A\n\n"
        "SUM device_to_device_memcpy_read_ce 416.75\n",
        "nvbandwidth.log");
    QCOMPARE(log.figures.size(), std::size_t(2));
    QCOMPARE(log.figures[0].figure, Figure::link_latency);
    QVERIFY(near_to(log.figures[0].value, 905.75e-9));
    QCOMPARE(log.figures[1].figure, Figure::device_to_device);
    QVERIFY(near_to(log.figures[1].value, 140.25e9));
    QVERIFY2(told(log).find("cells differ from 140.25 to 276.50; the smallest counts") != std::string::npos,
             told(log).c_str());
  }
};

QTEST_APPLESS_MAIN(LogContradictionsTest)
#include "log_contradictions_test.moc"
