// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/cluster.h"
#include "core/hardware/measured/profile_builder.h"

#include <fmt/format.h>
#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <fstream>

using namespace turnpoint;

namespace {

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

const char* const kProfile = R"({"format": "turnpoint/hardware-profile@1", "nodes": 2, "devices_per_node": 4,
  "device": {"name": "Card", "memory_bytes": 17179869184, "peak_flop_per_s": {"fp32": 15.7e12, "bf16": 125e12},
             "memory_bandwidth_bytes_per_s": 9e11, "price_per_hour": 2.5},
  "links": [{"level": "intra-node", "bandwidth_bytes_per_s": 1e11, "latency_s": 1e-6},
            {"level": "inter-node", "bandwidth_bytes_per_s": 1e10, "latency_s": 2e-6}],
  "collectives": [{"kind": "all_reduce", "group": {"size": 4, "nodes": 1, "per_node": 4, "concurrent": 2}, "bytes": 1048576, "time_s": 1e-4}],
  "operators": [{"kind": "matmul", "dims": [64, 64, 64], "precision": "bf16", "phase": "forward", "time_s": 1e-5}], "note": "unknown keys are ignored"})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  Q_ASSERT(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

class ClusterTest : public QObject {
  Q_OBJECT

 private slots:
  void presets() {
    const auto& names = preset_names();
    QCOMPARE(names.size(), std::size_t(14 * 5 + 2 * 3 + 2 * 4 + 3 + 3 * 3 + 2 * 3 + 2 + 1));
    for (const auto& info : names) {
      const auto cluster = open_hardware(info.name);
      QVERIFY2(cluster.has_value(), info.name.c_str());
      QCOMPARE((*cluster)->name, info.name);
      QCOMPARE((*cluster)->title, info.title);
      QVERIFY((*cluster)->device.memory_bytes > 0 && (*cluster)->device.peak_bf16 > (*cluster)->device.peak_fp32);
    }
    const auto v100 = *cluster_preset("v100-16gb-2x8");
    QCOMPARE(v100->devices(), 16);
    QCOMPARE(v100->device.memory_bytes, std::int64_t(16) << 30);
    QCOMPARE(v100->device.peak(Precision::fp32), 15.7e12);
    QCOMPARE(v100->device.peak(Precision::bf16), 125e12);
    QCOMPARE((*cluster_preset("h200-141gb-3x5"))->devices(), 15);
    for (const auto& [name, expected] : std::vector<std::pair<std::string, std::string>>{
             {"v100-16gb", "v100-16gb-2x8"},
             {"v100-16bg-2x8", "did you mean 'v100-16gb-2x8'"},
             {"v100-16gb-0x8", "with 1 to 8192 nodes of 1 to 1024 devices, "},
             {"v100-16gb-2x", "NODESxDEVICES"},
             {"v100-16gb--1x8", "unknown hardware"},
             {"v100-16gb-99999999999999999999x8", "NODESxDEVICES"},
             {"v100-16gb-8192x1024", "NODESxDEVICES"},
             {"zebra", "known devices: p100-16gb"},
             {"v100-16gb-2x8x2@", "NODESxDEVICES"}}) {
      const auto cluster = open_hardware(name);
      QVERIFY2(!cluster.has_value(), name.c_str());
      QCOMPARE(cluster.error().code, ErrorCode::usage);
      QVERIFY2(cluster.error().message().find(expected) != std::string::npos, cluster.error().message().c_str());
    }
    QCOMPARE(open_hardware("").error().code, ErrorCode::usage);
    QCOMPARE(open_hardware("absent/profile.json").error().code, ErrorCode::bad_input);
  }

  // This machine as last measured; before that, its cores with assumed figures and a note that says so.
  void local_is_this_machine() {
    QTemporaryDir home;
    qputenv("XDG_DATA_HOME", home.path().toUtf8());
    const auto assumed = open_hardware("local");
    QVERIFY2(assumed.has_value(), assumed ? "" : assumed.error().message().c_str());
    QVERIFY((*assumed)->devices() >= 1);
    QCOMPARE((*assumed)->notes.size(), std::size_t(1));
    QVERIFY((*assumed)->notes[0].find("not measured yet") != std::string::npos);
    const auto measured = std::make_shared<Cluster>(**cluster_preset("v100-16gb-1x2"));
    QVERIFY(QDir(home.path()).mkdir("turnpoint"));
    QFile file(home.filePath("turnpoint/local.json"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(write_hardware_profile(*measured).c_str());
    file.close();
    const auto found = open_hardware("local");
    QVERIFY(found.has_value());
    QCOMPARE((*found)->name, measured->name);
    // Some of its cores, slower ones beside them: joined as cores are.
    const auto some = open_hardware("local:3");
    QVERIFY(some && (*some)->devices() == 3 && (*some)->nodes == 1);
    QCOMPARE((*some)->device.peak_fp32, measured->device.peak_fp32);
    const auto unlike = open_hardware("local:1+local:2@0.25");
    QVERIFY2(unlike.has_value(), unlike ? "" : unlike.error().message().c_str());
    QCOMPARE((*unlike)->devices(), 3);
    const DeviceType &fast = device_of(**unlike, 0), &slow = device_of(**unlike, 2);
    QCOMPARE(slow.peak_fp32, fast.peak_fp32 / 4);
    QCOMPARE(slow.memory_bandwidth, fast.memory_bandwidth / 4);
    QCOMPARE(slow.launch_s, fast.launch_s * 4);
    QCOMPARE(slow.memory_bytes, fast.memory_bytes);
    QVERIFY(slow.name != fast.name);
    QCOMPARE((*unlike)->links[kInterNode].bandwidth, measured->links[kIntraNode].bandwidth);
    for (const char* name : {"local:", "local:0", "local:2@0", "local:2@1.5", "local:1@0.5@0.5", "local:x", "local:65"})
      QCOMPARE(open_hardware(name).error().code, ErrorCode::usage);
    QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
    file.write("{");
    file.close();
    QCOMPARE(open_hardware("local").error().code, ErrorCode::bad_input);
    qunsetenv("XDG_DATA_HOME");
  }

  void cutting_and_growing() {
    const auto base = *cluster_preset("v100-16gb-2x8");
    const auto check = [&](int devices, int nodes, int per_node, const char* name) {
      const auto cut = with_devices(base, devices);
      QVERIFY(cut.has_value());
      QCOMPARE((*cut)->nodes, nodes);
      QCOMPARE((*cut)->devices_per_node, per_node);
      QCOMPARE((*cut)->name, std::string(name));
    };
    check(1, 1, 1, "v100-16gb-1x1");
    check(3, 1, 3, "v100-16gb-1x3");
    check(8, 1, 8, "v100-16gb-1x8");
    check(16, 2, 8, "v100-16gb-2x8");
    check(64, 8, 8, "v100-16gb-8x8");
    QCOMPARE((*with_devices(base, 4))->title, std::string("1 \u00d7 4 V100-16GB"));
    for (const int devices : {0, -1, 9, 12, 65537, 1 << 30})
      QCOMPARE(with_devices(base, devices).error().code, ErrorCode::usage);
    QVERIFY(with_devices(base, 12).error().hint.find("take 8 or 16; 1 to 8 and whole nodes") != std::string::npos);
    // The window shows it, too.
    for (const int devices : {0, 12, 1 << 30})
      QVERIFY(with_devices(base, devices).error().message().find("--") == std::string::npos);
  }

  /// One device has no communicator and two have a small one, whether or not the preset named has more of them.
  void a_part_of_a_preset_reserves_what_its_own_preset_does() {
    constexpr std::int64_t kMiB = 1 << 20;
    const auto reserved = [](const char* preset, int devices) {
      const auto part = with_devices(*cluster_preset(preset), devices);
      return part ? (*part)->device.reserve_bytes : -1;
    };
    QCOMPARE(reserved("v100-32gb-1x16", 1), 512 * kMiB);
    QCOMPARE(reserved("v100-32gb-1x16", 2), (512 + 544) * kMiB);
    QCOMPARE(reserved("v100-32gb-1x16", 4), (512 + 688) * kMiB);
    QCOMPARE(reserved("v100-32gb-1x1", 16), (512 + 688) * kMiB);
    QCOMPARE(reserved("mi300x-192gb-1x8", 1), 512 * kMiB);
    QCOMPARE(reserved("mi300x-192gb-1x8", 2), (512 + 1024) * kMiB);
    for (const auto& info : preset_names()) {
      const auto whole = *open_hardware(info.name);
      if (whole->mixed()) continue;
      for (const int devices : {1, 2, whole->devices_per_node}) {
        const auto part = with_devices(whole, devices);
        QVERIFY2(part, part ? "" : part.error().message().c_str());
        if (const auto own = cluster_preset((*part)->name))
          QCOMPARE((*part)->device.reserve_bytes, (*own)->device.reserve_bytes);
      }
    }
    // A number that somebody wrote down is kept.
    Cluster written = **cluster_preset("v100-32gb-1x16");
    written.device.reserve_bytes = 3 * kMiB;
    QCOMPARE((*with_devices(std::make_shared<Cluster>(written), 1))->device.reserve_bytes, 3 * kMiB);
  }

  void profile_round_trip() {
    const auto cluster = parse_hardware_profile(kProfile, "card.json");
    QVERIFY2(cluster.has_value(), cluster ? "" : cluster.error().message().c_str());
    QCOMPARE((*cluster)->name, std::string("card"));
    QCOMPARE((*cluster)->device.price_per_hour.value(), 2.5);
    QCOMPARE((*cluster)->device.flop_efficiency, 0.8);
    QCOMPARE((*cluster)->links[kInterNode].bandwidth, 1e10);
    QCOMPARE((*cluster)->collectives.size(), std::size_t(1));
    const std::string text = write_hardware_profile(**cluster);
    const auto again = parse_hardware_profile(text, "again.json");
    QVERIFY(again.has_value());
    QCOMPARE(write_hardware_profile(**again), text);
    for (const auto& info : preset_names()) {
      const std::string preset = write_hardware_profile(**open_hardware(info.name));
      QCOMPARE(write_hardware_profile(**parse_hardware_profile(preset, "p")), preset);
    }
  }

  // The table of figures that the presets were taken from.
  void preset_figures() {
    struct Row {
      const char* name;
      double fp32, bf16, gib, terabytes;
    };
    for (const Row& row : std::initializer_list<Row>{{"p100-16gb-1x8", 10.6, 21.2, 16, 0.732},
                                                     {"v100-32gb-1x8", 15.7, 125, 32, 0.9},
                                                     {"a100-40gb-1x8", 19.5, 312, 40, 1.555},
                                                     {"a100-80gb-1x8", 19.5, 312, 80, 2.039},
                                                     {"h100-80gb-1x8", 67, 989, 80, 3.35},
                                                     {"h200-141gb-1x8", 67, 989, 141, 4.8},
                                                     {"b200-180gb-1x8", 80, 2250, 180, 8},
                                                     {"l40s-48gb-1x8", 91.6, 362, 48, 0.864},
                                                     {"rtx4090-24gb-1x8", 82.6, 165, 24, 1.008},
                                                     {"mi300x-192gb-1x8", 163, 1307, 192, 5.3},
                                                     {"tpu-v2-1x8", 12, 180, 64, 2.8},
                                                     {"tpu-v3-1x8", 16, 420, 128, 3.6}}) {
      const auto cluster = cluster_preset(row.name);
      QVERIFY2(cluster.has_value(), row.name);
      const DeviceType& device = (*cluster)->device;
      QVERIFY(close(device.peak_fp32, row.fp32 * 1e12) && close(device.peak_bf16, row.bf16 * 1e12));
      QCOMPARE(device.memory_bytes, std::int64_t(row.gib * (std::int64_t(1) << 30)));
      QVERIFY(close(device.memory_bandwidth, row.terabytes * 1e12));
    }
    // Pairs of MI300X have one of their seven links.
    QCOMPARE((*cluster_preset("mi300x-192gb-1x2"))->links[kIntraNode].bandwidth, 48e9);
    QCOMPARE((*cluster_preset("mi300x-192gb-2x8"))->links[kIntraNode].bandwidth, 313e9);
    // The memory need not be named where there is one size; of two, it must.
    QCOMPARE((*cluster_preset("h200-2x8"))->name, std::string("h200-141gb-2x8"));
    QVERIFY(!cluster_preset("a100-2x8").has_value());
    QCOMPARE((*cluster_preset("RTX-4090-1x2"))->name, std::string("rtx4090-24gb-1x2"));
    QCOMPARE((*cluster_preset("H100-80GB-1x8"))->name, std::string("h100-80gb-1x8"));
    for (const char* name : {"-1x8", "gb-1x8", "v-1x8", "--1x8"}) QVERIFY(!cluster_preset(name).has_value());
  }

  void names_of_devices() {
    for (const auto& [name, key] :
         std::vector<std::pair<std::string, std::string>>{{"A100-SXM4-40GB", "a100-40gb"},
                                                          {"NVIDIA A100-SXM4-80GB", "a100-80gb"},
                                                          {"NVIDIA H100 80GB HBM3", "h100-80gb"},
                                                          {"Tesla V100-SXM2-16GB", "v100-16gb"},
                                                          {"v100-sxm-32gb", "v100-32gb"},
                                                          {"NVIDIA H200", "h200-141gb"},
                                                          {"NVIDIA GeForce RTX 4090", "rtx4090-24gb"},
                                                          {"AMD Instinct MI300X", "mi300x-192gb"},
                                                          {"NVIDIA B200", "b200-180gb"},
                                                          {"NVIDIA L40S", "l40s-48gb"},
                                                          {"NVIDIA GH200 480GB", ""},
                                                          {"NVIDIA L40", ""},
                                                          {"", ""}})
      QCOMPARE(preset_key_of(name), key);
  }

  void mixed_clusters() {
    const auto mixed = open_hardware("tpu-v2-64x2+tpu-v3-64x2");
    QVERIFY2(mixed.has_value(), mixed ? "" : mixed.error().message().c_str());
    QCOMPARE((*mixed)->nodes, 128);
    QCOMPARE((*mixed)->devices(), 256);
    QVERIFY((*mixed)->mixed());
    QCOMPARE((*mixed)->groups.size(), std::size_t(2));
    QCOMPARE((*mixed)->groups[1].device.peak_bf16, 420e12);
    // What equal-device methods read is the weaker of both.
    QCOMPARE((*mixed)->device.peak_bf16, 180e12);
    QCOMPARE((*mixed)->device.memory_bytes, std::int64_t(64) << 30);
    QCOMPARE((*mixed)->links[kInterNode].bandwidth, 124e9);
    QCOMPARE((*mixed)->notes.size(), std::size_t(1));
    QVERIFY((*mixed)->notes[0].find("128 of TPU-v2-board, 128 of TPU-v3-board") != std::string::npos);
    // Weakest in every respect, also where no device is weaker throughout.
    const auto crossed = *open_hardware("h100-80gb-1x8+mi300x-192gb-2x8");
    QCOMPARE(crossed->nodes, 3);
    QCOMPARE(crossed->device.peak_fp32, 67e12);
    QCOMPARE(crossed->device.memory_bandwidth, 3350e9);
    QCOMPARE(crossed->device.memory_bytes, std::int64_t(80) << 30);
    QCOMPARE(crossed->links[kIntraNode].bandwidth, 313e9);
    // All devices or an error; written and read again.
    QCOMPARE((*with_devices(*mixed, 256))->devices(), 256);
    QCOMPARE(with_devices(*mixed, 128).error().code, ErrorCode::usage);
    QVERIFY(with_devices(*mixed, 128).error().hint.starts_with("take all 256 devices"));
    const std::string text = write_hardware_profile(*crossed);
    const auto again = parse_hardware_profile(text, "again.json");
    QVERIFY(again.has_value());
    QCOMPARE(write_hardware_profile(**again), text);
    for (const char* name : {"v100-16gb-1x8+", "+", "v100-16gb-1x8+zebra-1x8"})
      QCOMPARE(open_hardware(name).error().code, ErrorCode::usage);
    QCOMPARE(parse_hardware_profile(replaced(text, "\"nodes\": 3", "\"nodes\": 4"), "p.json").error().where,
             std::string("p.json: groups"));
  }

  // Nodes of eight and of four: methods for equal devices see three nodes of four, everything else each as it is.
  void nodes_of_unlike_size() {
    const auto joined = open_hardware("v100-16gb-1x8+a100-40gb-2x4");
    QVERIFY2(joined.has_value(), joined ? "" : joined.error().message().c_str());
    const Cluster& cluster = **joined;
    QCOMPARE(cluster.devices(), 16);
    QCOMPARE(cluster.nodes, 4);
    QCOMPARE(cluster.devices_per_node, 4);
    QVERIFY(cluster.notes.back().ends_with("slowest speed, memory and links, and with nodes of 4"));
    const auto nodes = real_nodes(cluster);
    QCOMPARE(nodes.size(), std::size_t(3));
    QCOMPARE(nodes[0].devices, 8);
    QCOMPARE(nodes[2].first_device, 12);
    QCOMPARE((*nodes[0].links)[kIntraNode].bandwidth, (*cluster_preset("v100-16gb-1x8"))->links[kIntraNode].bandwidth);
    QCOMPARE((*nodes[1].links)[kInterNode].bandwidth, (*cluster_preset("a100-40gb-2x4"))->links[kInterNode].bandwidth);
    QVERIFY((*nodes[1].links)[kInterNode].bandwidth > cluster.links[kInterNode].bandwidth);
    QCOMPARE(device_of(cluster, 7).name, nodes[0].device->name);
    QCOMPARE(device_of(cluster, 8).name, nodes[1].device->name);
    // Its price is the mean over devices, not over nodes.
    auto dear = *cluster_preset("v100-16gb-1x8"), cheap = *cluster_preset("a100-40gb-2x4");
    auto priced = [](ClusterPtr part, double price) {
      auto copy = std::make_shared<Cluster>(*part);
      copy->device.price_per_hour = price;
      return ClusterPtr(copy);
    };
    QCOMPARE((*join_clusters({priced(dear, 3), priced(cheap, 1)}))->device.price_per_hour, std::optional(2.0));
    const std::string text = write_hardware_profile(cluster);
    const auto again = parse_hardware_profile(text, "again.json");
    QVERIFY2(again.has_value(), again ? "" : again.error().message().c_str());
    QCOMPARE(write_hardware_profile(**again), text);
    QCOMPARE(parse_hardware_profile(replaced(text, "\"devices_per_node\": 8", "\"devices_per_node\": 6"), "p.json")
                 .error()
                 .message(),
             std::string("p.json: groups[0].devices_per_node: is no multiple of the cluster's 4"));
    // What was measured of one part is none of the whole's, and a note says so.
    auto measured = std::make_shared<Cluster>(**cluster_preset("v100-16gb-1x8"));
    measured->collectives = {{Collective::all_reduce, {8, 1, 8, 1}, 1e6, 1e-3}};
    measured->operators = {{"matmul", {64, 64, 64}, Precision::fp32, "forward", 1e-5}};
    measured->fits = {{"matmul", "forward", Precision::fp32, 1e-5, 1e-13, 0, 3}};
    measured->notes = {"measured on a Sunday"};
    for (const auto& parts : {std::vector<ClusterPtr>{measured, cheap}, {cheap, measured}}) {
      const ClusterPtr whole = *join_clusters(parts);
      QVERIFY(whole->collectives.empty() && whole->operators.empty() && whole->fits.empty());
      QCOMPARE(whole->notes.size(), std::size_t(3));
      QVERIFY(whole->notes[0] == "measured on a Sunday" && whole->notes[1].starts_with("of joined hardware"));
    }
    // Nothing joins a machine whose profile knows no network.
    auto alone = std::make_shared<Cluster>(**cluster_preset("v100-16gb-1x8"));
    alone->links[kInterNode] = {};
    QVERIFY(join_clusters({alone, cheap}).error().message().find("no link between nodes") != std::string::npos);
  }

  void pods() {
    const auto preset = cluster_preset("h100-80gb-4x32x8@0.5");
    QVERIFY2(preset.has_value(), preset ? "" : preset.error().message().c_str());
    const Cluster& cluster = **preset;
    QCOMPARE(cluster.nodes, 128);
    QCOMPARE(cluster.name, std::string("h100-80gb-4x32x8@0.5"));
    QCOMPARE(cluster.title, std::string("4 \u00d7 32 \u00d7 8 ") + cluster.device.name);
    QCOMPARE(cluster.pods.size(), std::size_t(1));
    QCOMPARE(cluster.pods[0].nodes, 32);
    QCOMPARE(cluster.pods[0].link.bandwidth, cluster.links[kInterNode].bandwidth / 2);
    QVERIFY(cluster.pods[0].link.latency_s > cluster.links[kInterNode].latency_s);
    // Named by its own name it is the same again.
    QCOMPARE(write_hardware_profile(**cluster_preset(cluster.name)), write_hardware_profile(cluster));
    // Inside one pod there are none; 48 nodes are no whole pods of 32: pods of 16 are taken.
    QVERIFY((*with_devices(*preset, 256))->pods.empty());
    QCOMPARE((*with_devices(*preset, 256))->name, std::string("h100-80gb-32x8"));
    QCOMPARE((*with_devices(*preset, 384))->pods[0].nodes, 16);
    // Pods of one node: what leaves the node leaves the pod.
    const auto odd = *with_devices(*preset, 33 * 8);
    QVERIFY(odd->pods.empty());
    QCOMPARE(odd->links[kInterNode].bandwidth, cluster.pods[0].link.bandwidth);
    const auto two = *cluster_preset("v100-16gb-2x3x4x2@0.25@0.5");
    QCOMPARE(two->nodes, 24);
    QCOMPARE(two->pods[0].nodes, 4);
    QCOMPARE(two->pods[1].nodes, 12);
    QCOMPARE(two->pods[0].link.bandwidth, two->links[kInterNode].bandwidth / 2);
    QCOMPARE(two->pods[1].link.bandwidth, two->links[kInterNode].bandwidth / 4);
    QVERIFY(pods_of(*two, 13) == (std::array<int, kMaxPodLevels>{4, 2, 1, 1}));
    // Beside others the slowest level stands for all.
    QCOMPARE((*open_hardware("v100-16gb-2x3x4x2@0.25@0.5+v100-16gb-1x2"))->links[kInterNode].bandwidth,
             two->pods[1].link.bandwidth);
    for (const char* bad : {"2x2x2@", "2x2x2@2", "2x2x2@0", "2x2x2@0.5@0.5", "2x2@0.5", "2x2x2x2x2x2x2", "0x2x2",
                            "99999x99x2", "4096x4096x2", "2x2x2@nan"})
      QCOMPARE(cluster_preset(std::string("v100-16gb-") + bad).error().code, ErrorCode::usage);
    // The groups that people are shown lie in pods as neighbouring nodes do.
    for (const CoverageItem& item : coverage(*two))
      if (item.what == CoverageItem::What::collective) QVERIFY(item.group.pods == pods_of(*two, item.group.nodes));
    const auto read = read_hardware_profile(TURNPOINT_SOURCE_DIR "/tests/data/hardware_profile/pods.json");
    QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
    QCOMPARE((*read)->pods.size(), std::size_t(2));
    const std::string text = write_hardware_profile(**read);
    QCOMPARE(write_hardware_profile(**parse_hardware_profile(text, "again.json")), text);
    QCOMPARE(parse_hardware_profile(replaced(text, "\"nodes\": 12", "\"nodes\": 10"), "p.json").error().message(),
             std::string("p.json: pods[1].nodes: is no multiple of the 4 of the pods before it"));
  }

  // A profile of one node says nothing about a network, so it cannot be grown over one.
  void single_nodes_do_not_grow() {
    const std::string text = R"({"format": "turnpoint/hardware-profile@1", "nodes": 1, "devices_per_node": 1,
      "device": {"memory_bytes": 1073741824, "peak_flop_per_s": {"fp32": 1e12}, "memory_bandwidth_bytes_per_s": 1e11}})";
    const auto cluster = parse_hardware_profile(text, "one.json");
    QVERIFY(cluster.has_value());
    QCOMPARE((*cluster)->device.peak_bf16, 1e12);
    QVERIFY(with_devices(*cluster, 1).has_value());
    QVERIFY(with_devices(*cluster, 2).error().message().find("describes no link between nodes") != std::string::npos);
    QVERIFY(parse_hardware_profile(write_hardware_profile(**cluster), "again.json").has_value());
  }

  void broken_profiles_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("message");
    const std::string good = kProfile;
    const auto row = [&](const char* name, const std::string& text, const char* message) {
      QTest::newRow(name) << QString::fromStdString(text) << message;
    };
    row("not json", "nodes: 2", "p.json: line 1: not valid JSON");
    row("empty", "", "not valid JSON");
    row("list", "[1]", "p.json: must be an object, not a list");
    row("deep", std::string(100000, '['), "nested deeper than");
    row("no format", replaced(good, "format", "fromat"), "p.json: format: is missing");
    row("other format", replaced(good, "profile@1", "profile@2"), "p.json: format: is 'turnpoint/hardware-profile@2'");
    row("negative", replaced(good, "17179869184", "-1"), "p.json: device.memory_bytes: must be between 1 and");
    row("huge", replaced(good, "17179869184", "1e30"), "device.memory_bytes: must be between");
    row("string", replaced(good, "17179869184", "\"16GiB\""),
        "device.memory_bytes: must be a whole number, not a string");
    row("nan", replaced(good, "9e11", "NaN"), "not valid JSON");
    row("infinite", replaced(good, "9e11", "1e999"), "");
    row("zero nodes", replaced(good, "\"nodes\": 2", "\"nodes\": 0"), "nodes: must be between 1 and");
    row("fraction", replaced(good, "\"nodes\": 2", "\"nodes\": 2.5"),
        "nodes: must be a whole number, not a number with a fraction");
    row("no link", replaced(good, "inter-node", "intra-node"), "p.json: links[1].level: 'intra-node' is given twice");
    row("level", replaced(good, "inter-node", "rack"),
        "links[1].level: must be 'inter-node' or 'intra-node', not 'rack'");
    row("collective", replaced(good, "all_reduce", "all_deduce"),
        "collectives[0].kind: unknown collective 'all_deduce'");
    row("group", replaced(good, "\"per_node\": 4", "\"per_node\": 3"),
        "collectives[0].group.size: is not nodes times per_node");
    row("negative time", replaced(good, "1e-4", "-1e-4"), "collectives[0].time_s: must be between");
    row("zero time", replaced(good, "1e-4", "0"), "collectives[0].time_s: must be between");
    row("dims", replaced(good, "[64, 64, 64]", "[64, -64, 64]"), "operators[0].dims: sizes must be whole numbers");
    row("device is a list", replaced(good, "\"device\": {", "\"device\": [], \"old\": {"),
        "p.json: device: must be an object, not a list");
    row("links is a number", replaced(good, "\"links\": [", "\"links\": 3, \"old\": ["),
        "p.json: links: must be a list, not a whole number");
    row("efficiency", replaced(good, "\"price_per_hour\": 2.5", "\"efficiency\": {\"flop\": 1.5}"),
        "device.efficiency.flop: must be between");
  }

  void broken_profiles() {
    QFETCH(QString, text);
    QFETCH(QString, message);
    const auto cluster = parse_hardware_profile(text.toStdString(), "p.json");
    QVERIFY(!cluster.has_value());
    QCOMPARE(cluster.error().code, ErrorCode::bad_input);
    QVERIFY2(cluster.error().message().find(message.toStdString()) != std::string::npos,
             cluster.error().message().c_str());
  }

  void duplicate_samples_are_refused() {
    const std::string sample =
        R"({"kind": "all_reduce", "group": {"size": 4, "nodes": 1, "per_node": 4, "concurrent": 2}, "bytes": 1048576, "time_s": 2e-4},)";
    const auto cluster =
        parse_hardware_profile(replaced(kProfile, "\"collectives\": [", "\"collectives\": [" + sample), "p.json");
    QVERIFY(!cluster.has_value());
    QVERIFY(cluster.error().message().find("collectives[1].bytes: this collective, group and size were given before") !=
            std::string::npos);
  }

  void libraries_of_profiles() {
    const auto with = [](const std::string& field) {
      return parse_hardware_profile(replaced(kProfile, "\"nodes\": 2,", "\"nodes\": 2, " + field), "p.json");
    };
    QCOMPARE((*with(""))->library, Library::ring);
    QCOMPARE((*with("\"library\": \"nccl-2.18\","))->library, Library::nccl_2_18);
    QVERIFY((*with("\"library\": \"nccl\","))->notes.empty());
    const auto unknown = with("\"library\": \"smoke signals\",");
    QVERIFY(unknown.has_value());
    QCOMPARE((*unknown)->library, Library::ring);
    QCOMPARE((*unknown)->notes.size(), std::size_t(1));
    QVERIFY((*unknown)->notes[0].find("'smoke signals' is not known, so collectives are priced as rings") !=
            std::string::npos);
    QCOMPARE(with("\"library\": 3,").error().code, ErrorCode::bad_input);
    QCOMPARE((*cluster_preset("h100-80gb-2x8"))->library, Library::nccl);
    QVERIFY((*cluster_preset("h100-80gb-2x8"))->links[kIntraNode].switch_reduces);
    QVERIFY(!(*cluster_preset("a100-80gb-2x8"))->links[kIntraNode].switch_reduces);
    QCOMPARE((*cluster_preset("mi300x-192gb-2x8"))->library, Library::rccl);
    QCOMPARE((*cluster_preset("tpu-v3-64x2"))->library, Library::torus);
    QCOMPARE((*open_hardware("a100-40gb-1x8+h100-80gb-1x8"))->library, Library::nccl);
    QVERIFY(!(*open_hardware("a100-40gb-1x8+h100-80gb-1x8"))->links[kIntraNode].switch_reduces);
    QCOMPARE((*open_hardware("mi300x-192gb-1x8+h100-80gb-1x8"))->library, Library::ring);
  }

  /// The profile's own, else what the library is known for; a profile says it where that would be another.
  void computing_beside_communication() {
    const auto with = [](const std::string& fields) {
      std::string text = write_hardware_profile(**cluster_preset("a100-40gb-1x8"));
      const std::size_t at = text.find("\"library\": \"nccl\",");
      return parse_hardware_profile(text.replace(at, 18, fields), "profile.json");
    };
    QCOMPARE((*with("\"library\": \"nccl\","))->overlap_slowdown, 1.126);
    QCOMPARE((*with("\"library\": \"torus\","))->overlap_slowdown, 1.0);
    QCOMPARE((*with(""))->overlap_slowdown, 1.0);
    for (const double slowdown : {1.0, 1.126, 1.3}) {
      const auto cluster = with("\"library\": \"nccl\", \"overlap_slowdown\": " + std::to_string(slowdown) + ",");
      QCOMPARE((*cluster)->overlap_slowdown, slowdown);
      const std::string text = write_hardware_profile(**cluster);
      QCOMPARE(text.find("overlap_slowdown") == std::string::npos, slowdown == 1.126);
      QCOMPARE((*parse_hardware_profile(text, "profile.json"))->overlap_slowdown, slowdown);
    }
    for (const char* wrong : {"0.9", "11", "\"fast\""})
      QVERIFY(with(std::string("\"overlap_slowdown\": ") + wrong + ",").error().message().find("overlap_slowdown") !=
              std::string::npos);
    QCOMPARE((*cluster_preset("mi300x-192gb-2x8"))->overlap_slowdown, 1.126);
    QCOMPARE((*cluster_preset("tpu-v3-64x2"))->overlap_slowdown, 1.0);
    QCOMPARE((*open_hardware("tpu-v3-4x2+h100-80gb-1x8"))->overlap_slowdown, 1.126);
  }
};

QTEST_APPLESS_MAIN(ClusterTest)
#include "cluster_test.moc"
