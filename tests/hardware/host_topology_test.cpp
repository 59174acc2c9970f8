// SPDX-License-Identifier: Apache-2.0
// The topology of a host in words and in files: cells and their meaning, the matrix read back by the reader of
// `nvidia-smi topo -m`, profiles there and back, and what is refused.
#include <fmt/format.h>
#include <QTest>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/hardware/cluster.h"
#include "core/hardware/logs/measured_log.h"

using namespace turnpoint;
using nlohmann::json;

namespace {

/// Two boards of two GPUs: links on a board, sockets between the boards; nothing is told of 1 and 2.
HostTopology four_gpus() {
  HostTopology host;
  for (int i = 0; i < 4; ++i)
    host.gpus.push_back({"Card", fmt::format("0000:{:02x}:00.0", 27 + i), 4, 0, "3.1", 25.781e9, i < 2 ? "0" : "1",
                         i < 2 ? "0-15" : "16-31"});
  host.pairs = {{0, 1, 4, "3.1", 0, "PIX", "ok", "ok"},
                {0, 2, 0, "", 0, "SYS", "ok", "not supported"},
                {0, 3, 0, "", 0, "NODE", "", ""},
                {1, 3, 0, "", 0, "PHB", "ok", "ok"},
                {2, 3, 4, "3.1", 0, "PXB", "ok", "ok"}};
  host.notes = {"a note"};
  return host;
}

std::string profile_with(const json& topology) {
  json profile = {
      {"format", "turnpoint/hardware-profile@1"},
      {"nodes", 1},
      {"devices_per_node", 1},
      {"device",
       {{"memory_bytes", 1 << 30}, {"peak_flop_per_s", {{"fp32", 1e12}}}, {"memory_bandwidth_bytes_per_s", 1e11}}},
      {"topology", topology}};
  return profile.dump();
}

}  // namespace

class HostTopologyTest : public QObject {
  Q_OBJECT

 private slots:
  void cells() {
    const HostTopology host = four_gpus();
    const char* const wanted[4][4] = {
        {"X", "NV4", "SYS", "NODE"}, {"NV4", "X", "?", "PHB"}, {"SYS", "?", "X", "NV4"}, {"NODE", "PHB", "NV4", "X"}};
    for (int row = 0; row < 4; ++row)
      for (int column = 0; column < 4; ++column) {
        QCOMPARE(topology_cell(host, row, column), std::string(wanted[row][column]));
        QVERIFY(!cell_meaning(wanted[row][column]).empty());
      }
    HostTopology switched = host;
    switched.pairs[1].switch_links = 4;
    QCOMPARE(topology_cell(switched, 2, 0), std::string("NVS"));
    QVERIFY(cell_meaning("NV1").starts_with("1 NVLink straight"));
    QVERIFY(cell_meaning("NV18").starts_with("18 NVLinks straight"));
    QVERIFY(cell_meaning("XYZ").empty());
    for (const char* way : {"PSB", "PIX", "PXB", "PHB", "NODE", "SYS", "NVS"}) QVERIFY(!cell_meaning(way).empty());
  }

  void words() {
    const HostTopology host = four_gpus();
    QCOMPARE(nvlinks_text(host.gpus[0]), std::string("4 of version 3.1, 103.1 GB/s each way"));
    QCOMPARE(nvlinks_text({}), std::string("none"));
    QCOMPARE(pair_text(host, 1, 0),
             std::string("NV4: 4 NVLinks straight from one GPU to the other, version 3.1, 103.1 GB/s each way; without "
                         "them over one PCIe switch; peer-to-peer read: ok, write: ok"));
    QCOMPARE(pair_text(host, 1, 2), std::string("?: the driver does not tell"));
    QCOMPARE(
        peer_text(host),
        std::string("no peer-to-peer access between GPU0 and GPU2 (writes: not supported) (told of 4 of 5 pairs)"));
    HostTopology cpu;
    QVERIFY(cpu.empty() && cores_text(cpu).empty() && topology_text(cpu).empty());
    cpu.sockets = 1, cpu.cores = 2, cpu.numa_nodes = {{"0-1", "10"}};
    QCOMPARE(topology_text(cpu), std::string("1 socket, 2 usable cores, 1 NUMA node (0-1)\n"));
  }

  // Who wrote that reader knew nothing of this writer.
  void the_matrix_reads_as_that_of_nvidia_smi() {
    HostTopology host = four_gpus();
    host.pairs.push_back({1, 2, 0, "", 0, "PXB", "", ""});
    const std::string text = topology_text(host);
    const auto log = parse_measured_log(text, "topo.txt");
    QVERIFY2(log.has_value(), log ? "" : log.error().message().c_str());
    QCOMPARE(log->kind, LogKind::smi_topology);
    QVERIFY(log->topology && log->topology->devices == 4 && log->problems.empty());
    QCOMPARE(log->topology->nvlinks_per_device, 4);
    for (int row = 0; row < 4; ++row)
      for (int column = 0; column < 4; ++column)
        QCOMPARE(log->topology->links[std::size_t(row)][std::size_t(column)], topology_cell(host, row, column));
    QVERIFY(text.find("\nPHB: over a PCIe host bridge") != std::string::npos);
    QVERIFY(text.find("\nPIX: ") == std::string::npos);  // of no cell
    QVERIFY(text.ends_with("a note\n"));
    for (const auto line : split(text, '\n')) QVERIFY(!line.ends_with(' '));
  }

  void profiles_keep_it() {
    const auto read = parse_hardware_profile(profile_with(topology_json(four_gpus())), "p.json");
    QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
    QVERIFY((*read)->topology == four_gpus());
    const auto again = parse_hardware_profile(write_hardware_profile(**read), "p.json");
    QVERIFY(again && (*again)->topology == four_gpus());
    // Whoever knows nothing of it writes nothing.
    const auto preset = cluster_preset("v100-16gb-1x2");
    QVERIFY(preset && write_hardware_profile(**preset).find("topology") == std::string::npos);
    QVERIFY(topology_json({}).empty());
  }

  void broken_data() {
    QTest::addColumn<QByteArray>("topology");
    QTest::addColumn<QByteArray>("reason");
    const auto row = [](const char* name, const char* topology, const char* reason) {
      QTest::newRow(name) << QByteArray(topology) << QByteArray(reason);
    };
    row("no object", R"([])", "p.json: topology: must be an object");
    row("one GPU", R"({"gpus": [{"nvlinks": 0}], "pairs": [{"first": 0, "second": 1}]})", "is none of several GPUs");
    row("too high", R"({"gpus": [{"nvlinks": 0}, {"nvlinks": 0}], "pairs": [{"first": 0, "second": 2}]})",
        "topology.pairs[0].second");
    row("itself", R"({"gpus": [{"nvlinks": 0}, {"nvlinks": 0}, {"nvlinks": 0}], "pairs": [{"first": 1, "second": 1}]})",
        "must be above first");
    row("twice", R"({"gpus": [{"nvlinks": 0}, {"nvlinks": 0}],
                     "pairs": [{"first": 0, "second": 1}, {"first": 0, "second": 1}]})",
        "this pair was given before");
    row("way", R"({"gpus": [{"nvlinks": 0}, {"nvlinks": 0}], "pairs": [{"first": 0, "second": 1, "pcie": "ISA"}]})",
        "not 'ISA'");
    row("links", R"({"gpus": [{"nvlinks": 1, "switch_links": 2}]})", "are more than nvlinks");
    row("endless", R"({"gpus": [{"nvlinks": 1e30}]})", "topology.gpus[0].nvlinks");
    row("notes", R"({"notes": [1]})", "topology.notes");
  }
  void broken() {
    QFETCH(QByteArray, topology);
    QFETCH(QByteArray, reason);
    const auto read = parse_hardware_profile(profile_with(json::parse(topology.toStdString())), "p.json");
    QVERIFY(!read.has_value());
    QVERIFY2(read.error().message().find(reason.toStdString()) != std::string::npos, read.error().message().c_str());
  }
};

QTEST_APPLESS_MAIN(HostTopologyTest)
#include "host_topology_test.moc"
