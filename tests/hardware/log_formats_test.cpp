// SPDX-License-Identifier: Apache-2.0
// What the data folder does not hold: other versions and columns, broken rows, and hostile files. Small texts, results
// worked out by hand.
#include <fmt/format.h>
#include <sys/resource.h>
#include <QTemporaryDir>
#include <QTest>
#include <chrono>
#include <cmath>
#include <fstream>

#include "core/hardware/logs/measured_log.h"
#include "core/hardware/logs/xml.h"
#include "processor_clock.h"
#include "sanitized.h"

using namespace turnpoint;

namespace {

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

std::string all_problems(const MeasuredLog& log) {
  std::string text;
  for (const auto& problem : log.problems) text += fmt::format("{}: {}\n", problem.line, problem.what);
  return text;
}

const char* const kHeading =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";

/// Four devices, one row: 1 MiB in 100 us is 10.49 GB/s, 15.73 on the ring.
std::string ranks(int count, const char* host = "node1") {
  std::string text = "# Using devices\n";
  for (int i = 0; i < count; ++i)
    text += fmt::format("#  Rank {:2} Group  0 Pid  100 on {} device {:2} [0000:{:02x}:00] NVIDIA H100 80GB HBM3\n", i,
                        host, i, i);
  return text;
}
const char* const kRow =
    "     1048576        262144     float     sum      -1    100.0   10.49   15.73      0    101.0   10.38   15.57     "
    " 0\n";

Expected<MeasuredLog> parse(const std::string& text, const char* path = "log.txt") {
  return parse_measured_log(text, path);
}

}  // namespace

class LogFormatsTest : public QObject {
  Q_OBJECT

  void read_as(const std::string& text, Collective kind, const DeviceGroup& group, double bytes, double time_s,
               const char* path = "log.txt") {
    const auto log = parse(text, path);
    if (!log) return QTest::qFail(log.error().message().c_str(), __FILE__, __LINE__);
    const auto& curve = log->curves.at(0);
    const bool good = curve.kind == kind && curve.group == group && close(curve.points.at(0).bytes, bytes) &&
                      close(curve.points.at(0).time_s, time_s);
    if (!good)
      QTest::qFail(fmt::format("{} of {} x {}: {} bytes, {} s\n{}", to_string(curve.kind), curve.group.nodes,
                               curve.group.per_node, curve.points[0].bytes, curve.points[0].time_s, all_problems(*log))
                       .c_str(),
                   __FILE__, __LINE__);
  }

 private slots:
  void nccl_collectives_and_their_sizes() {
    const auto text = [](const char* program, const char* row) {
      return "# Collective test starting: " + std::string(program) + "\n" + ranks(4) + kHeading + row;
    };
    const char* const ring =
        "     1048576        262144     float     sum      -1    100.0   10.49    7.86      0    101.0   10.38    7.79 "
        "     0\n";
    const char* const plain =
        "     1048576        262144     float    none       0    100.0   10.49   10.49      0    101.0   10.38   10.38 "
        "     0\n";
    read_as(text("all_reduce_perf", kRow), Collective::all_reduce, {4, 1, 4, 1}, 1048576, 1e-4);
    read_as(text("all_gather_perf", ring), Collective::all_gather, {4, 1, 4, 1}, 1048576, 1e-4);
    read_as(text("reduce_scatter_perf", ring), Collective::reduce_scatter, {4, 1, 4, 1}, 1048576, 1e-4);
    read_as(text("alltoall_perf", ring), Collective::all_to_all, {4, 1, 4, 1}, 4 * 1048576, 1e-4);  // four blocks
    read_as(text("broadcast_perf", plain), Collective::broadcast, {4, 1, 4, 1}, 1048576, 1e-4);
    read_as(text("sendrecv_perf", plain), Collective::send, {2, 1, 2, 2}, 1048576, 1e-4);
    const auto refused = parse(text("gather_perf", ring));
    QVERIFY(!refused);
    QVERIFY(refused.error().message().find("'gather_perf' measures nothing that a profile has a place for") !=
            std::string::npos);
  }

  void nccl_versions() {
    // Ranks on two hosts; a launcher's prefixes; a program named by the command line only; per-iteration columns.
    read_as(ranks(8, "a") + ranks(8, "b").substr(16) + kHeading +
                "     1048576        262144     float     sum      -1    100.0   10.49   19.66      0    101.0   10.38 "
                "  19.47      0\n",
            Collective::all_reduce, {16, 2, 8, 1}, 1048576, 1e-4);
    std::string prefixed;
    std::istringstream lines(ranks(4) + kHeading + kRow);
    for (std::string line; std::getline(lines, line);) prefixed += "[1,0]<stdout>:" + line + "\n";
    read_as(prefixed, Collective::all_reduce, {4, 1, 4, 1}, 1048576, 1e-4);
    read_as("$ ./build/all_gather_perf -b 1M -e 1M -g 4\n" + ranks(4) + kHeading +
                "     1048576        262144     float    none      -1    100.0   10.49    7.86      0    101.0   10.38 "
                "   7.79      0\n",
            Collective::all_gather, {4, 1, 4, 1}, 1048576, 1e-4);
    read_as(ranks(4) +
                "# size count type redop root time algbw busbw #wrong i_min i_max time algbw busbw #wrong i_min i_max\n"
                "# (B) (elements) (us) (GB/s) (GB/s) (us) (us) (us) (GB/s) (GB/s) (us) (us)\n"
                " 1048576 262144 float sum -1 100.0 10.49 15.73 0 99 103 101.0 10.38 15.57 0 99 102\n",
            Collective::all_reduce, {4, 1, 4, 1}, 1048576, 1e-4);
    const auto iterations = parse(
        ranks(4) +
            "# size count type redop root time algbw busbw #wrong i_min i_max time algbw busbw #wrong i_min i_max\n"
            "# (B) (elements) (us) (GB/s) (GB/s) (us) (us) (us) (GB/s) (GB/s) (us) (us)\n"
            " 1048576 262144 float sum -1 100.0 10.49 15.73 0 99 103 101.0 10.38 15.57 0 98 102\n",
        "all_reduce");
    QVERIFY2(iterations.has_value(), iterations ? "" : iterations.error().message().c_str());
    QVERIFY(close(iterations->curves.at(0).points.at(0).spread.min_s, 99e-6) &&
            close(iterations->curves.at(0).points.at(0).spread.max_s, 103e-6));
    QVERIFY(close(iterations->curves.at(1).points.at(0).spread.min_s, 98e-6));
    // No type, redop, root; N/A for the check; the file's name tells the collective, the bandwidths the ranks.
    read_as(
        "# size count time algbw busbw #wrong\n# (B) (elements) (ms) (GB/s) (GB/s)\n 1048576 262144 0.100 10.49 7.86 "
        "N/A\n",
        Collective::reduce_scatter, {4, 1, 4, 1}, 1048576, 1e-4, "reduce_scatter_perf.log");
    // Nothing was run in place.
    const auto once = parse("# Collective test starting: alltoall_perf\n" + ranks(4) + kHeading +
                            " 1048576 65536 float none -1 100.0 10.49 7.86 0 N/A N/A N/A N/A\n 2097152 131072 float "
                            "none -1 0.0 0.0 0.0 0 0.0 0.0 0.0 0\n");
    QVERIFY2(once.has_value(), once ? "" : once.error().message().c_str());
    QCOMPARE(once->curves.size(), std::size_t(1));
    QVERIFY(all_problems(*once).find("10: broken row: a time of 0") != std::string::npos);
    // Two sweeps in one file.
    const auto two = parse("# Collective test starting: all_reduce_perf\n" + ranks(4) + kHeading + kRow +
                           "# Collective test starting: all_reduce_perf\n" + ranks(2) + kHeading +
                           "     1048576        262144     float     sum      -1     80.0   13.11   13.11      0     "
                           "80.0   13.11   13.11      0\n");
    QVERIFY(two.has_value());
    QCOMPARE(two->curves.size(), std::size_t(4));  // both in place and out of place
    QCOMPARE(two->curves[0].group.size, 2);
    QCOMPARE(two->curves[2].group.size, 4);
  }

  void nccl_repeats_have_a_spread() {
    std::string text = ranks(4) + kHeading;
    for (const char* time : {"100.0", "104.0", "102.0", "108.0", "106.0"})
      text += fmt::format(" 1048576 262144 float sum -1 {} {:.2f} 15.00 0 100.0 10.49 15.73 0\n", time,
                          1048.576 / std::atof(time));
    const auto log = parse(text, "all_reduce.log");
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    const auto& point = log->curves.at(0).points.at(0);
    QCOMPARE(point.repeats, 5);
    QVERIFY(close(point.time_s, 104e-6) && close(point.spread.q1_s, 102e-6) && close(point.spread.q3_s, 106e-6));
    QVERIFY(close(point.spread.min_s, 100e-6) && close(point.spread.max_s, 108e-6));
  }

  void nccl_problems_are_shown() {
    const std::string text =
        "# Collective test starting: all_reduce_perf\n" + ranks(4) +
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n" +  // 7: no units
        kRow +                                                                              // 8
        "   2097152   524288 node1:42:42 [0] NCCL INFO comm 0x1 rank 0\n"                   // 9
        " float sum -1 150.0 13.98 20.97 0 150.0 13.98 20.97 0\n"                           // 10
        "   4194304  1048576 float sum -1 nan 20.97 31.46 0 200.0 20.97 31.46 0\n"          // 11
        "   8388608  2097152 float sum -1 -300.0 27.96 41.94 0 300.0 27.96 41.94 0\n"       // 12
        "  16777216  4194304 float sum -1 400.0 99.99 62.91 0 400.0 41.94 62.91 0\n"        // 13
        "  33554432  8388608 float sum -1 60.0 559.24 838.86 7 60.0 559.24 838.86 0\n"      // 14
        "  67108864 167772";                                                                // 15
    const auto log = parse(text);
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    const std::string problems = all_problems(*log);
    for (const char* expected :
         {"8: no unit of time is named", "9: broken row", "11: broken row: 'nan' is not a finite number",
          "12: broken row: -300.0 is negative", "13: size / time is 41.94 GB/s, but algbw says 99.99: row left out",
          "14: 7 wrong values", "14: all_reduce of 1 x 4 devices: not monotonic", "15: broken row"})
      QVERIFY2(problems.find(expected) != std::string::npos, (std::string(expected) + "\n" + problems).c_str());
    QCOMPARE(log->curves.at(0).points.size(), std::size_t(2));
    // Milliseconds under a heading that says microseconds.
    const auto ms = parse(
        ranks(4) + kHeading + " 1048576 262144 float sum -1 0.100 10.49 15.73 0 0.101 10.38 15.57 0\n", "all_reduce");
    QVERIFY(ms.has_value());
    QVERIFY(close(ms->curves.at(0).points.at(0).time_s, 1e-4));
    QVERIFY(all_problems(*ms).find("but sizes and bandwidths say 0.001 s") != std::string::npos);
  }

  void nccl_json() {
    const std::string text =
        R"({"version": 3, "nccl_version": 22809, "env": ["SECRET=1"], "args": ["./build/all_gather_perf", "-J", "f.json"],
      "config": {"nthreads": 1, "ngpus": 2, "devices": [{"rank": 0, "hostname": "a", "device_info": "NVIDIA H100 80GB HBM3"},
                                                          {"rank": 2, "hostname": "b", "device_info": "NVIDIA H100 80GB HBM3"}]},
      "results": [{"size": 0, "out_of_place": {"time": 30}, "in_place": {"time": 30}},
                  {"size": 1048576, "count": 65536, "type": "float", "root": "-1",
                   "out_of_place_per_iter": {"min_us": 90, "times_us": [100, 98, 104, 102, 96]},
                   "out_of_place": {"time": 100.0, "alg_bw": 10.49, "bus_bw": 7.86, "nwrong": "0"},
                   "in_place": {"time": "99.0", "alg_bw": 10.59, "bus_bw": 7.94, "nwrong": 0}},
                  {"size": 2097152, "out_of_place": {"time": "nan"}, "in_place": {"time": 200.0}}]})";
    read_as(text, Collective::all_gather, {4, 2, 2, 1}, 1048576, 1e-4);
    const auto log = parse(text);
    QCOMPARE(log->device_name, std::string("NVIDIA H100 80GB HBM3"));
    QVERIFY(all_problems(*log).find("results[2]: time 'nan' is not a finite number") != std::string::npos);
    QCOMPARE(log->curves.size(), std::size_t(2));
    QCOMPARE(log->curves[1].points.size(), std::size_t(2));
    const RepeatSpread& spread = log->curves[0].points[0].spread;
    QVERIFY(close(spread.min_s, 96e-6) && close(spread.q1_s, 98e-6) && close(spread.q3_s, 102e-6) &&
            close(spread.max_s, 104e-6));
    QVERIFY(!parse(text.substr(0, 600)).has_value());  // a failed run leaves half a file
  }

  void nvbandwidth_json() {
    const auto log = parse(
        R"json({"nvbandwidth": {"version": "v0.8", "GPU Device list": ["0: NVIDIA H100 80GB HBM3 (00000000:01:00)", "1: NVIDIA H100 80GB HBM3 (00000000:02:00)"],
      "testcases": [{"name": "device_to_device_memcpy_read_ce", "status": "Passed", "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
                     "bandwidth_matrix": [["N/A", "276.07"], ["274.50", "N/A"]], "sum": 550.57},
                    {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth",
                     "bandwidth_matrix": [["55.1", "-1"]], "sum": 110.0},
                    {"name": "device_to_device_bidirectional_memcpy_read_ce", "status": "Waived"}]}})json");
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    QCOMPARE(log->device_name, std::string("NVIDIA H100 80GB HBM3"));
    QCOMPARE(log->figures.size(), std::size_t(2));
    QVERIFY(close(log->figures[0].value, 274.5e9) && log->figures[0].figure == Figure::device_to_device);
    const std::string problems = all_problems(*log);
    for (const char* expected : {"its unit is not named, (GB/s) assumed", "cell -1 is negative",
                                 "adds up to 55.10, but SUM says 110.00", "1 tests were waived"})
      QVERIFY2(problems.find(expected) != std::string::npos, problems.c_str());
  }

  void topology_problems() {
    // Colours, as nvidia-smi writes them; links that differ by direction; a row that is cut.
    const auto log = parse(
        "$ nvidia-smi topo -m\n\t\x1b[4mGPU0\tGPU1\tGPU2\tCPU Affinity\x1b[0m\nGPU0\t X \tNV4\tSYS\t0-1\nGPU1\tNV2\t X "
        "\tWHAT\t0-1\nGPU2\tSYS\n");
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    QCOMPARE(log->topology->devices, 2);
    const std::string problems = all_problems(*log);
    for (const char* expected :
         {"link between GPU0 and GPU1 is NV4 one way and NV2 the other", "4: unknown link 'WHAT'",
          "5: broken row: 1 of 3 links", "3 devices in the heading, but 2 rows"})
      QVERIFY2(problems.find(expected) != std::string::npos, problems.c_str());
    // A NVIDIA dump with links.
    const auto dump = parse(
        "<?xml version=\"1.0\"?>\n<!-- dump --><system version='1'><cpu numaid=\"0\">\n<pci busid=\"0:1\" "
        "class=\"0x030200\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\">"
        "<gpu dev=\"0\" sm=\"70\" rank=\"0\"><nvlink target=\"0:2\" count=\"2\" tclass=\"0x030200\"/></gpu></pci>\n"
        "<pci busid=\"0:2\" class=\"0x030200\" link_speed=\"fast\" link_width=\"16\"><gpu dev=\"1\"><nvlink "
        "target=\"0:1\" count=\"-2\"/></gpu></pci></cpu></system>");
    QVERIFY2(dump.has_value(), dump ? "" : dump.error().message().c_str());
    QCOMPARE(dump->topology->links[0][1], std::string("NV2"));
    QCOMPARE(dump->topology->nvlinks_per_device, 2);
    QVERIFY(all_problems(*dump).find("4: nvlink count -2 is negative") != std::string::npos);
    QVERIFY(all_problems(*dump).find("4: link of device 0:2: 'fast' is not a number") != std::string::npos);
  }

  void xml_reader() {
    const auto root =
        logs::parse_xml("<a x='1 &lt; 2 &#65;'><!-- <b> --><![CDATA[<c>]]>text<b y=\"z\"/></a>\n", "x.xml");
    QVERIFY2(root.has_value(), root ? "" : root.error().message().c_str());
    QCOMPARE(root->attribute("x"), std::string("1 < 2 A"));
    QCOMPARE(root->children.size(), std::size_t(1));
    QCOMPARE(root->children[0].attribute("y"), std::string("z"));
    std::string deep;
    for (int i = 0; i < 100; ++i) deep += "<a>";
    for (const auto& [text, message] : std::vector<std::pair<std::string, const char*>>{
             {"<!DOCTYPE lolz [<!ENTITY a \"b\">]><system>&a;</system>",
              "x.xml: line 1: document types and entities are not read"},
             {"<?xml version=\"1.0\"?>\n<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>",
              "x.xml: line 2: document types"},
             {"<a b=\"&lol9;\"/>", "entity '&lol9' is not known"},
             {"<a b=\"&#99999999999;\"/>", "is not known"},
             {"<a><b></a></b>", "'</a>' where '</b>' is due"},
             {"<a", "the file ends inside element 'a'"},
             {"<a b", "attribute 'b' has no value"},
             {"<a b=c>", "is not quoted"},
             {"<a b=\"1\" b=\"2\"/>", "given twice"},
             {"<a/><b/>", "a second root element"},
             {"<a/>x", "something follows"},
             {"<a><!-- ", "the file ends inside a comment"},
             {"<a b=\"<\"/>", "holds a '<'"},
             {"", "holds no element"},
             {"< a/>", "a name is missing"},
             {deep, "nested deeper than 64 levels"}}) {
      const auto bad = logs::parse_xml(text, "x.xml");
      QVERIFY2(!bad.has_value(), text.substr(0, 80).c_str());
      QVERIFY2(bad.error().message().find(message) != std::string::npos, bad.error().message().c_str());
    }
  }

  void broken_tables() {
    const auto vidur = parse(
        ",time_stats.all_reduce.min,time_stats.all_reduce.max,time_stats.all_reduce.median,num_workers,size,collective,"
        "devices_per_node\n"
        "0,0.01,0.03,0.02,2,2048,all_reduce,2\n1,0.01,0.03\n2,0.01,0.03,inf,2,4096,all_reduce,2\n3,0.01,0.03,0.02,2,"
        "1e300,all_reduce,2\n"
        "4,0.01,0.03,0.02,3,2048,all_reduce,2\n5,0.01,0.03,0.05,2,8192,all_reduce,2\n6,0.01,0.03,0.02,2,"
        "9223372036854775808,all_reduce,2\n"
        "7,0.01,0.03,0.02,2.5,2048,all_reduce,2\n8,0.01,0.03,0.02,2,2048,all_dance,2\n9,0.01,0.03,0.02,2,2048,all_"
        "gather,2\n");
    QVERIFY2(vidur.has_value(), vidur ? "" : vidur.error().message().c_str());
    const std::string problems = all_problems(*vidur);
    for (const char* expected :
         {"3: broken row: 3 cells under 8 columns",
          "4: broken row: time_stats.all_reduce.median 'inf' is not a finite number",
          "5: broken row: size 1e300 is not between", "6: broken row: 3 devices are no multiple of 2",
          "7: broken row: the median lies outside", "8: broken row: size 9223372036854775808 is not between",
          "9: broken row: num_workers 2.5 is no whole number", "10: broken row: unknown collective 'all_dance'",
          "11: broken row: time_stats.all_gather.median is missing"})
      QVERIFY2(problems.find(expected) != std::string::npos, (std::string(expected) + "\n" + problems).c_str());
    QCOMPARE(vidur->curves.size(), std::size_t(1));
    QCOMPARE(vidur->curves[0].points.size(), std::size_t(1));
    const auto half = parse(
        "M,N,K,a_t,b_t,time_ms,tflops\n1760,16,1760,N,N,0.038,2.6085\n1760,16,1760,N,X,0.038,2.6\n1760,16,1760,T,N,0."
        "038,26\n",
        "half.csv");
    QVERIFY(half.has_value());
    QCOMPARE(half->operators.size(), std::size_t(2));
    QCOMPARE(half->operators[0].precision, Precision::bf16);
    QVERIFY(all_problems(*half).find("3: broken row: b_t is neither N nor T") != std::string::npos);
    QVERIFY(all_problems(*half).find("4: time says 2.61 TFLOP/s, the column 26.00") != std::string::npos);
    const auto nnscaler =
        parse(R"({"all gather": [[0.25, 0.5, "1"], [1e-4, -1, 2e-4, 3]], "all reduce": 7})", "intra_2.json");
    QVERIFY(nnscaler.has_value());
    QCOMPARE(nnscaler->curves.at(0).points.size(), std::size_t(1));
    QVERIFY(all_problems(*nnscaler).find("all gather: 3 sizes, but 4 times") != std::string::npos);
    const auto galvatron = parse(
        R"({"allreduce_size_2_consec_1": "fast", "allreduce_size_9999999999999999999_consec_1": 1, "overlap_coe": 1.1, "pp_size_2": -4})",
        "x.json");
    QVERIFY(galvatron.has_value());
    QCOMPARE(galvatron->figures.size(), std::size_t(1));
    QCOMPARE(galvatron->problems.size(), std::size_t(3));
  }

  void refused_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("path");
    QTest::addColumn<QByteArray>("message");
    const auto row = [](const char* name, const QByteArray& text, const char* message, const char* path = "bad.log") {
      QTest::newRow(name) << text << QByteArray(path) << QByteArray(message);
    };
    row("no ranks",
        "# size count type redop root time algbw busbw #wrong\n# (us)\n 8 2 float sum -1 10.0 0.00 0.00 0\n",
        "bad_allreduce.log: line 3: nccl-tests table without a usable row: the number of ranks is not known",
        "bad_allreduce.log");
    row("empty", "", "bad.log: is empty");
    row("blank", " \n\t\r\n", "bad.log: is empty");
    row("prose", "Dear reader,\nno numbers here.\n",
        "bad.log: is no hardware profile and no log of a kind that is read");
    row("binary", QByteArray("GPU0\0GPU1", 9), "bad.log: line 1: is not UTF-8 text");
    row("latin1", "# size count time busbw\n caf\xe9 ", "bad.log: line 2: is not UTF-8 text");
    row("cut utf8", "GPU0 \xe2\x82", "is not UTF-8 text");
    row("utf16", QByteArray("\xff\xfeG\0P\0", 6), "is UTF-16 text (save it as UTF-8)");
    row("half json", "{\"allreduce_size_2_consec_1\": 13", "bad.log: line 1: not valid JSON");
    row("list", "[1, 2]", "is no hardware profile and no log");
    row("other format", R"({"format": "turnpoint/plan@1"})", "is a 'turnpoint/plan@1', not a measured log");
    row("deep json", QByteArray(100000, '['), "nested deeper than");
    row("xml of others", "<svg><g/></svg>", "its root is 'svg', not NCCL's 'system'");
    row("entity bomb", "<!DOCTYPE a [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><system>&b;</system>",
        "bad.log: line 1: document types and entities are not read");
    row("no devices", "<system/>", "is an NCCL topology without devices");
    row("only broken rows", (std::string(kHeading) + " 1048576 1 float\n").c_str(),
        "bad.log: line 3: nccl-tests table without a usable row: broken row: 3 columns instead of 10 to 13");
    row("heading only", kHeading, "nccl-tests table without a measurement");
    row("one rank",
        (ranks(1) + kHeading + " 1048576 262144 float sum -1 10.0 104.86 0.00 0 10.0 104.86 0.00 0\n").c_str(),
        "without a usable row", "all_reduce.log");
    row("aceso without ranks", "data_size(MB),time(ms)\n1,2\n",
        "its name must tell the collective and the number of devices");
    row("aceso heading", "op_name,forward-compute,backward-compute\na,1,2\n",
        "line 2: Aceso table of operators without a usable row: broken row: input_size is missing",
        "gpt_350M_mbs1_tp1.csv");
    row("nnscaler name", R"({"all gather": [[1], [1]]})", "its name must end with the number of ranks");
    row("p2p name", "1,2\n3,4\n", "must tell whether the two devices share a node", "p2p.csv");
  }
  void refused() {
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, path);
    QFETCH(QByteArray, message);
    const auto log = parse(text.toStdString(), path.constData());
    QVERIFY(!log.has_value());
    QCOMPARE(log.error().code, ErrorCode::bad_input);
    QVERIFY2(log.error().message().find(message.toStdString()) != std::string::npos, log.error().message().c_str());
  }

  // Large and hostile files: an answer within 5 s and 500 MB.
  void hostile() {
    const turnpoint::test::ProcessorClock clock;
    QTemporaryDir folder;
    const auto refuse = [&](const std::string& text, const char* name) {
      const auto log = parse_measured_log(text, name);
      QVERIFY2(!log.has_value(), name);
      QVERIFY2(log.error().message().find(name) != std::string::npos, log.error().message().c_str());
      QVERIFY(log.error().message().size() < 600);
    };
    refuse(std::string(30u << 20, 'x'), "line.txt");
    refuse(std::string(33u << 20, '\n'), "long.txt");
    refuse("{\"all gather\": [[" + std::string(9u << 20, '1') + "]]}", "number_intra_2.json");
    refuse("op_name,forward-compute" + std::string(20u << 20, ',') + "\n", "commas.csv");
    refuse("<system " + std::string(20u << 20, 'a') + "=\"1\"/>", "attribute.xml");
    std::string elements = "<system>";
    for (int i = 0; i < 200000; ++i) elements += "<cpu/>";
    refuse(elements + "</system>", "elements.xml");
    std::string zeros = "{\"overlap_coe\": [";
    for (int i = 0; i < 3'900'000; ++i) zeros += "0,";
    refuse(zeros + "0]}", "zeros.json");
    std::string nested = "{\"format\": \"turnpoint/hardware-profile@1\", \"x\": [0";
    for (int i = 0; i < 400'000; ++i) nested += ",[[[[[[0]]]]]]";
    const auto profile = parse_hardware_profile(nested + "]}", "nested.json");
    QVERIFY(!profile.has_value() &&
            profile.error().message().find("nested.json: holds more than") != std::string::npos);
    // A million rows that are all broken: two hundred are shown, the others counted.
    std::string rows = std::string(kHeading) + kRow;
    for (int i = 0; i < 1'000'000; ++i) rows += " 8 2 float\n";
    const auto many = parse(ranks(4) + rows, "all_reduce.log");
    QVERIFY(many.has_value());
    QCOMPARE(many->problems.size(), kMaximumProblems);
    QCOMPARE(many->problems_left_out + many->problems.size(), std::size_t(1'000'000));
    const auto directory = read_measured_log(folder.path().toStdString());
    QVERIFY(!directory.has_value() && directory.error().message().find("is a folder, not a file") != std::string::npos);
    QVERIFY(!read_measured_log("absent.log").has_value());
    QVERIFY2(clock.elapsed() < 20000 * test::kSanitizerFactor, std::to_string(clock.elapsed()).c_str());
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    QVERIFY2(usage.ru_maxrss < 500 * 1024 * test::kSanitizerFactor, std::to_string(usage.ru_maxrss).c_str());
  }
};

QTEST_APPLESS_MAIN(LogFormatsTest)
#include "log_formats_test.moc"
