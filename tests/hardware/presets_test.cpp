// SPDX-License-Identifier: Apache-2.0
// Presets of 2024 to 2026 against the figures of their data sheets, retyped here per device in the sheets' own units.
#include <QTest>
#include <cmath>

#include "core/hardware/cluster.h"

using namespace turnpoint;

namespace {

bool equal(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

}  // namespace

class PresetsTest : public QObject {
  Q_OBJECT

 private slots:
  void data_sheets_data() {
    QTest::addColumn<QByteArray>("name");
    QTest::addColumn<int>("nodes");
    QTest::addColumn<int>("per_node");
    QTest::addColumn<double>("gib");
    QTest::addColumn<double>("bf16_pflops");
    QTest::addColumn<double>("fp32_tflops");
    QTest::addColumn<double>("tb_per_s");
    const auto row = [](const char* name, int nodes, int per_node, double gib, double bf16, double fp32,
                        double memory) {
      QTest::newRow(name) << QByteArray(name) << nodes << per_node << gib << bf16 << fp32 << memory;
    };
    // Racks: the sheet's figures are of 72 devices, 16-bit ones with sparsity.
    row("gb200-186gb-1x72", 1, 72, 186, 360.0 / 2 / 72, 5760.0 / 72, 576.0 / 72);
    row("gb300-279gb-2x72", 2, 72, 279, 360.0 / 2 / 72, 80, 576.0 / 72);
    row("mi325x-256gb-1x8", 1, 8, 256, 1.307, 163.4, 6);
    row("mi355x-288gb-2x8", 2, 8, 288, 2.516, 157.3, 8);
    row("gaudi3-128gb-1x8", 1, 8, 128, 1.835, 14.3, 3.67);
    row("trainium2-96gb-4x16", 4, 16, 96, 0.667, 181, 2.9);
    row("tpu-v3-core-256x8", 256, 8, 32 / 2, 0.123 / 2, 4.0 / 2, 0.9 / 2);
    row("tpu-v4-16x4", 16, 4, 32, 0.275, 275.0 / 6, 1.2);
    row("tpu-v5e-2x8", 2, 8, 16, 0.197, 197.0 / 6, 0.819);
    row("tpu-v5p-4x4", 4, 4, 95, 0.459, 76.5, 2.765);
    row("tpu-v6e-8x8", 8, 8, 32, 0.918, 153, 1.638);
    row("tpu-v7-1x4", 1, 4, 192, 2.307, 384.5, 7.38);
  }
  void data_sheets() {
    QFETCH(QByteArray, name);
    QFETCH(int, nodes);
    QFETCH(int, per_node);
    QFETCH(double, gib);
    QFETCH(double, bf16_pflops);
    QFETCH(double, fp32_tflops);
    QFETCH(double, tb_per_s);
    const auto cluster = cluster_preset(name.toStdString());
    QVERIFY2(cluster.has_value(), cluster ? "" : cluster.error().message().c_str());
    const Cluster& c = **cluster;
    QCOMPARE(c.nodes, nodes);
    QCOMPARE(c.devices_per_node, per_node);
    QVERIFY(equal(static_cast<double>(c.device.memory_bytes), gib * (1 << 30)));
    QVERIFY(equal(c.device.peak_bf16, bf16_pflops * 1e15));
    QVERIFY(equal(c.device.peak_fp32, fp32_tflops * 1e12));
    QVERIFY(equal(c.device.memory_bandwidth, tb_per_s * 1e12));
    QCOMPARE(c.notes.size(), std::size_t(0));
    // It is listed in that shape, and written and read without loss.
    const auto& names = preset_names();
    QVERIFY(std::any_of(names.begin(), names.end(), [&](const PresetInfo& info) { return info.name == c.name; }));
    const auto again = parse_hardware_profile(write_hardware_profile(c), "again.json");
    QVERIFY(again.has_value());
    QCOMPARE(write_hardware_profile(**again), write_hardware_profile(c));
  }

  // A link in a node is never faster than its wire, one way.
  void links_stay_below_the_wire() {
    const auto link = [](const char* name) { return (*cluster_preset(name))->links[kIntraNode].bandwidth / 1e9; };
    QVERIFY(link("gb200-1x72") <= 900);                 // NVLink 5: 1.8 TB/s both ways
    QVERIFY(link("mi355x-1x8") <= 7 * 76.8);            // seven links of 153.6 GB/s both ways
    QVERIFY(equal(link("mi355x-1x2"), 57.6));           // one of them
    QVERIFY(link("mi325x-1x8") == link("mi300x-1x8"));  // the same links
    QVERIFY(link("gaudi3-1x8") <= 21 * 25);             // 21 ports of 200 Gb/s
    QVERIFY(equal(link("gaudi3-1x2"), 71.4));           // three of them, 75 on the wire
    QVERIFY(link("trainium2-1x16") <= 640);             // 1.28 TB/s both ways
    for (const char* name : {"tpu-v5e-1x8", "tpu-v4-1x4"}) QVERIFY(equal(link(name), 100));
    for (const char* name : {"tpu-v5p-1x4", "tpu-v6e-1x8", "tpu-v7-1x4"}) QVERIFY(equal(link(name), 200));
    QVERIFY(equal(link("tpu-v3-core-1x8"), 2 * 656.0 / 8));  // two links of a chip, one each way round
    // Between nodes: 72 cards of 400 and of 800 Gb/s, eight of 400, 24 ports of 200, 3.2 Tb/s.
    const auto network = [](const char* name) { return (*cluster_preset(name))->links[kInterNode].bandwidth / 1e9; };
    QVERIFY(equal(network("gb200-2x72"), 3600) && equal(network("gb300-2x72"), 7200));
    QVERIFY(equal(network("mi325x-2x8"), 400) && equal(network("gaudi3-2x8"), 600));
    QVERIFY(equal(network("trainium2-2x16"), 400));
    QVERIFY(equal(network("tpu-v3-core-4x8"), 4 * 656.0 / 8));  // two links to either side of a board
  }

  // A figure that nobody measured is called an estimate where the preset is listed, and none that was measured is.
  void estimates_are_called_so_data() {
    QTest::addColumn<QString>("preset");
    QTest::addColumn<bool>("estimated");
    for (const char* name :
         {"mi355x-288gb-1x8", "gaudi3-128gb-1x8", "trainium2-96gb-1x16", "tpu-v7-1x4", "l40s-48gb-1x8"})
      QTest::newRow(name) << QString(name) << true;
    for (const char* name : {"v100-16gb-1x8", "a100-80gb-1x8", "h100-80gb-2x8", "b200-180gb-1x8", "mi300x-192gb-1x8"})
      QTest::newRow(name) << QString(name) << false;
  }
  void estimates_are_called_so() {
    QFETCH(QString, preset);
    QFETCH(bool, estimated);
    for (const auto& info : preset_names()) {
      if (info.name != preset.toStdString()) continue;
      QCOMPARE(info.note.find("GB/s (estimated)") != std::string::npos, estimated);
      return;
    }
    QFAIL("is not listed");
  }

  // What drivers and logs call these devices; "GB200" is no B200.
  void names_of_drivers() {
    QCOMPARE(preset_key_of("NVIDIA GB200"), std::string("gb200-186gb"));
    QCOMPARE(preset_key_of("NVIDIA GB300"), std::string("gb300-279gb"));
    QCOMPARE(preset_key_of("NVIDIA B200"), std::string("b200-180gb"));
    QCOMPARE(preset_key_of("AMD Instinct MI325X OAM"), std::string("mi325x-256gb"));
    QCOMPARE(preset_key_of("AMD Instinct MI355X"), std::string("mi355x-288gb"));
    QCOMPARE(preset_key_of("TPU-v3-core"), std::string("tpu-v3-core"));
    QCOMPARE(preset_key_of("TPU-v3-board"), std::string("tpu-v3"));
    QCOMPARE(preset_key_of("TPU v5e"), std::string("tpu-v5e"));
    QCOMPARE(preset_key_of("TPU v5p chip"), std::string("tpu-v5p"));
    QCOMPARE(preset_key_of("AWS Trainium2"), std::string("trainium2-96gb"));
    QCOMPARE(preset_key_of("Intel Gaudi 3"), std::string("gaudi3-128gb"));
    QCOMPARE(preset_key_of("NVIDIA GH200 480GB"), std::string());
    QCOMPARE((*cluster_preset("gb200-1x72"))->name, std::string("gb200-186gb-1x72"));
  }

  void a_preset_has_other_shapes() {
    QCOMPARE(preset_of_shape("v100-16gb-2x8", 64, 4), std::optional<std::string>("v100-16gb-64x4"));
    QCOMPARE(preset_of_shape("H200-1x8", 2, 8), std::optional<std::string>("H200-2x8"));
    for (const char* other : {"local", "tpu-v2-4x2+tpu-v3-4x2", "/a/profile-2x8.json", "as-file", "v100-16gb", ""})
      QVERIFY2(!preset_of_shape(other, 2, 8), other);
  }
};

QTEST_APPLESS_MAIN(PresetsTest)
#include "presets_test.moc"
