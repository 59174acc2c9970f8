// SPDX-License-Identifier: Apache-2.0
// Profiles out of measured logs: what is merged, fitted, filled in and flagged.
#include <fmt/format.h>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <fstream>

#include "core/hardware/collective_model.h"
#include "core/hardware/measured/profile_builder.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

bool close(double a, double b, double tolerance = 1e-9) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

MeasuredLog log_of(std::vector<MeasuredCurve> curves, std::string path = "a.log", std::string device = {}) {
  MeasuredLog log;
  log.path = std::move(path);
  log.curves = std::move(curves);
  log.device_name = std::move(device);
  return log;
}

MeasuredCurve curve(Collective kind, DeviceGroup group, std::vector<std::pair<double, double>> points,
                    std::string variant = {}) {
  MeasuredCurve result{kind, group, std::move(variant), {}, "a.log"};
  for (const auto& [bytes, time] : points) result.points.push_back({bytes, time, {}, 1, 1});
  return result;
}

ClusterPtr build(const std::vector<MeasuredLog>& logs, const char* base = "a100-80gb-2x8") {
  std::vector<std::string> notes;
  const auto cluster = build_profile(logs, base ? *open_hardware(base) : nullptr, notes);
  return cluster ? *cluster : nullptr;
}

const CoverageItem* item(const std::vector<CoverageItem>& items, const std::string& name, int nodes, int per_node) {
  for (const auto& found : items)
    if (found.name == name && found.group.nodes == nodes && found.group.per_node == per_node) return &found;
  return nullptr;
}

}  // namespace

class ProfileBuilderTest : public QObject {
  Q_OBJECT

 private slots:
  /// Those of before had one launch for the layer: they are left out, and a note says so once.
  void fits_of_recurrent_layers_have_a_launch_for_every_step() {
    Cluster made = **open_hardware("a100-80gb-2x8");
    made.fits = {{"recurrent", "forward", Precision::fp32, 1e-5, 2e-12, 3e-11, 8},
                 {"recurrent", "backward", Precision::fp32, 2e-5, 2e-12, 3e-11, 8},
                 {"matmul", "forward", Precision::fp32, 1e-5, 2e-12, 3e-11, 8}};
    std::string text = write_hardware_profile(made);
    const auto whole = parse_hardware_profile(text, "now.json");
    QVERIFY2(whole, whole ? "" : whole.error().message().c_str());
    QCOMPARE((*whole)->fits.size(), std::size_t(3));
    QCOMPARE(write_hardware_profile(**whole), text);
    for (std::size_t at; (at = text.find("\"launched\"")) != std::string::npos;) text.replace(at, 10, "\"before\"");
    const auto older = parse_hardware_profile(text, "before.json");
    QVERIFY2(older, older ? "" : older.error().message().c_str());
    QCOMPARE((*older)->fits.size(), std::size_t(1));
    QCOMPARE((*older)->fits.front().kind, std::string("matmul"));
    QCOMPARE(std::ranges::count_if(
                 (*older)->notes, [](const std::string& note) { return note.starts_with("fits of recurrent layers"); }),
             1);
  }

  void nothing_measured_is_the_preset() {
    const auto cluster = build({});
    QCOMPARE(write_hardware_profile(*cluster), write_hardware_profile(**open_hardware("a100-80gb-2x8")));
    for (const auto& entry : coverage(*cluster)) QCOMPARE(entry.origin, Origin::modelled);
  }

  // What the library charges for the largest group is what was measured at both ends of its curve.
  void links_are_calibrated() {
    const double gib = 1 << 30;
    const auto cluster = build(
        {log_of({curve(Collective::all_reduce, {8, 1, 8, 1}, {{1024, 42e-6}, {gib, 1.75 * gib / 200e9}}),
                 curve(Collective::all_reduce, {4, 1, 4, 1}, {{1024, 1e-6}, {gib, 1.0}}),
                 curve(Collective::all_gather, {16, 2, 8, 1}, {{1 << 20, 1e-3}, {gib, 15.0 / 16 * gib / 50e9}})})});
    Cluster formulas = *cluster;
    formulas.collectives.clear();
    const CollectiveModel library(formulas, {});
    const auto within = [](double a, double b) { return std::abs(a - b) <= 1e-6 * b; };
    QVERIFY(within(library.time(Collective::all_reduce, {8, 1, 8, 1}, 1024).value, 42e-6));
    QVERIFY(within(library.time(Collective::all_reduce, {8, 1, 8, 1}, gib).value, 1.75 * gib / 200e9));
    QVERIFY(within(library.time(Collective::all_gather, {16, 2, 8, 1}, gib).value, 15.0 / 16 * gib / 50e9));
    QVERIFY(std::abs(cluster->links[kIntraNode].bandwidth - 200e9) < 4e9);
    QVERIFY(std::abs(cluster->links[kInterNode].bandwidth - 50e9 / 0.85) < 1e9);  // of the wire
    // Beyond 6.6 us and 14 hops of 0.6, which NCCL knows of.
    QVERIFY(std::abs(cluster->links[kIntraNode].launch_s - 27e-6) < 0.1e-6);
    QCOMPARE(cluster->links[kIntraNode].latency_s, 3.4e-6);
    QCOMPARE(cluster->links[kInterNode].launch_s, 0.0);
    QCOMPARE(cluster->links[kInterNode].latency_s,
             (*open_hardware("a100-80gb-2x8"))->links[kInterNode].latency_s);  // 1 MiB is no latency
    QCOMPARE(cluster->links[kIntraNode].origin, Origin::calibrated);
    const auto items = coverage(*cluster);
    QCOMPARE(item(items, "all_reduce", 1, 8)->origin, Origin::measured);
    QCOMPARE(item(items, "all_reduce", 1, 8)->samples, std::size_t(2));
    QCOMPARE(item(items, "all_reduce", 1, 2)->origin, Origin::calibrated);
    QCOMPARE(item(items, "all_gather", 2, 8)->origin, Origin::measured);
    QCOMPARE(item(items, "all_to_all", 2, 1)->origin, Origin::calibrated);
    QCOMPARE(items.back().name, std::string("all operators"));
    QCOMPARE(items.back().origin, Origin::modelled);
    // What the model then says is what coverage claims.
    const CollectiveModel model(*cluster, {});
    QVERIFY(close(model.time(Collective::all_reduce, {8, 1, 8, 1}, gib).value, 1.75 * gib / 200e9));
    // Half an all-reduce, of which a pair passes two thirds of what four devices do.
    QVERIFY(std::abs(model.time(Collective::reduce_scatter, {2, 1, 2, 1}, gib).value - 1.0 / 3) < 1e-4);
  }

  // Only one level measured: the other stays modelled, and so does what crosses it.
  void uncalibrated_levels_stay_modelled() {
    const auto items = coverage(*build({log_of({curve(Collective::all_reduce, {8, 1, 8, 1}, {{1 << 26, 1e-3}})})}));
    QCOMPARE(item(items, "all_gather", 1, 4)->origin, Origin::calibrated);
    QCOMPARE(item(items, "all_gather", 2, 4)->origin, Origin::modelled);
    QCOMPARE(item(items, "all_gather", 2, 1)->origin, Origin::modelled);
  }

  void files_are_merged() {
    const DeviceGroup eight{8, 1, 8, 1};
    const auto cluster = build({log_of({curve(Collective::all_reduce, eight, {{1e6, 1e-4}, {2e6, 2e-4}}),
                                        curve(Collective::all_reduce, eight, {{1e6, 9.0}}, "in-place")}),
                                log_of({curve(Collective::all_reduce, eight, {{1e6, 3e-4}, {4e6, 4e-4}})}, "b.log"),
                                log_of({curve(Collective::all_gather, eight, {{1e6, 5e-4}}, "in-place")}, "c.log")});
    QCOMPARE(cluster->collectives.size(), std::size_t(4));
    const auto curves = curves_of(*cluster);
    QCOMPARE(curves.size(), std::size_t(2));
    QCOMPARE(curves[0].points.size(), std::size_t(3));
    QVERIFY(
        close(curves[0].points[0].time_s, 2e-4));  // the median of 1e-4 and 3e-4; the in-place time is another variant
    QVERIFY(close(curves[0].points[0].spread.q1_s, 1.5e-4) && close(curves[0].points[0].spread.q3_s, 2.5e-4));
    QVERIFY(close(curves[1].points[0].time_s, 5e-4));  // in place where there is nothing else
    QCOMPARE(cluster->name, std::string("a100-80gb-measured-2x8"));
    const auto again = parse_hardware_profile(write_hardware_profile(*cluster), "again.json");
    QVERIFY(again.has_value());
    QCOMPARE((*again)->collectives.size(), std::size_t(4));
    QVERIFY(close((*again)->collectives[0].q3_s, 2.5e-4));
    // Measuring again replaces a profile's curve instead of mixing with it.
    std::vector<std::string> notes;
    const auto newer = *build_profile({log_of({curve(Collective::all_reduce, eight, {{1e6, 7e-4}})})}, *again, notes);
    QCOMPARE(newer->collectives.size(), std::size_t(2));
    QCOMPARE(newer->name, cluster->name);
  }

  void figures_without_sizes() {
    MeasuredLog log = log_of({});
    log.figures = {{Figure::bus_bandwidth, 138e9, Collective::all_reduce, {2, 1, 2, 1}, "", 0},
                   {Figure::bus_bandwidth, 154e9, Collective::all_reduce, {8, 1, 8, 1}, "", 0},
                   {Figure::host_to_device, 25e9, {}, {}, "", 0},
                   {Figure::device_to_host, 22e9, {}, {}, "", 0},
                   {Figure::overlap_slowdown, 1.17, {}, {}, "", 0},
                   {Figure::overlap_slowdown, 30, {}, {}, "", 0}};
    const auto cluster = build({log});
    QVERIFY(close(cluster->links[kIntraNode].bandwidth, 154e9));
    QVERIFY(close(cluster->host_link_bandwidth, 22e9));
    QCOMPARE(cluster->overlap_slowdown, 1.17);
    // Sends between two are the last resort.
    const auto sends = build({log_of({curve(Collective::send, {2, 2, 1, 1}, {{1 << 20, 1e-3}, {1 << 30, 0.2}})})});
    QVERIFY(close(sends->links[kInterNode].bandwidth, (1 << 30) / 0.2));
    QCOMPARE(sends->links[kIntraNode].origin, Origin::modelled);
  }

  // Found by fuzzing: a broken log fitted a link that no profile can hold.
  void absurd_measurements_fit_no_link() {
    const auto preset = *open_hardware("a100-80gb-2x8");
    const auto sends = build({log_of({curve(Collective::send, {2, 1, 2, 1}, {{2 << 20, 1e-12}})})});
    QCOMPARE(sends->links[kIntraNode].bandwidth, preset->links[kIntraNode].bandwidth);
    QCOMPARE(sends->links[kIntraNode].origin, Origin::modelled);
    const auto rings = build({log_of({curve(Collective::all_gather, {8, 1, 8, 1}, {{1024, 1e6}, {1 << 30, 1e-9}})})});
    QCOMPARE(rings->links[kIntraNode].bandwidth, preset->links[kIntraNode].bandwidth);
    for (const auto& cluster : {sends, rings})
      QVERIFY(parse_hardware_profile(write_hardware_profile(*cluster), "p.json").has_value());
    const auto wide = parse_measured_log(
        ",time_stats.all_reduce.min,time_stats.all_reduce.max,time_stats.all_reduce.median,num_workers,size,collective,"
        "devices_per_node\n"
        "0,0.01,0.03,0.02,65536,2048,all_reduce,1\n",
        "wide.csv");
    QVERIFY(!wide.has_value());
  }

  void topologies_shape_the_links() {
    const auto with = [](int devices, int nvlinks, const char* link, const char* base) {
      MeasuredLog log = log_of({});
      log.topology = Topology{devices,
                              {},
                              std::vector<std::vector<std::string>>(
                                  std::size_t(devices), std::vector<std::string>(std::size_t(devices), link)),
                              nvlinks};
      return build({log}, base)->links[kIntraNode];
    };
    QVERIFY(close(with(8, 6, "NV2", "v100-16gb-1x8").bandwidth, 120e9));
    QVERIFY(close(with(2, 2, "NV2", "v100-16gb-1x2").bandwidth, 40e9));
    QVERIFY(close(with(2, 0, "PHB", "v100-16gb-1x2").bandwidth, 9e9));
    QCOMPARE(with(2, 0, "PHB", "v100-16gb-1x2").name, std::string("PCIe"));
    QVERIFY(close(with(8, 0, "", "v100-16gb-1x8").bandwidth, 120e9));  // a file that tells nothing about links
    QVERIFY(close(with(8, 0, "xGMI", "mi300x-1x8").bandwidth, 313e9));
  }

  void the_device_comes_from_the_log() {
    std::vector<std::string> notes;
    MeasuredLog log =
        log_of({curve(Collective::all_reduce, {8, 1, 8, 1}, {{1e6, 1e-4}})}, "a.log", "NVIDIA H100 80GB HBM3");
    log.nodes = 2;
    log.devices_per_node = 8;
    const auto cluster = build_profile({log}, nullptr, notes);
    QVERIFY(cluster.has_value());
    QCOMPARE((*cluster)->name, std::string("h100-80gb-measured-2x8"));
    QCOMPARE((*cluster)->device.peak_bf16, 989e12);
    QCOMPARE((*cluster)->notes, std::vector<std::string>{notes.at(0)});
    QVERIFY(notes.at(0).find("comes from the preset h100-80gb-2x8") != std::string::npos);
    const auto unknown = build_profile({log_of({}, "x.log", "Abacus 9")}, nullptr, notes);
    QCOMPARE(unknown.error().code, ErrorCode::usage);
    QVERIFY(unknown.error().message().find("give --base PRESET") != std::string::npos);
    const auto both = build_profile({log, log_of({}, "b.log", "Tesla V100-SXM2-16GB")}, nullptr, notes);
    QVERIFY(both.error().message().find("different devices") != std::string::npos);
  }

  // DeepBench's products without transposes are matmul signatures [samples, inputs, outputs]: C (M x N) = A (M x K) B.
  void operators_become_signatures() {
    const auto log = parse_measured_log(
        "M,N,K,a_t,b_t,time_ms,tflops\n1760,16,1024,N,N,0.04,1.44\n1760,16,1024,T,N,0.05,1.153\n", "fp32.csv");
    QVERIFY(log.has_value());
    const auto cluster = build({*log}, "v100-16gb-1x1");
    QCOMPARE(cluster->operators.size(), std::size_t(1));
    QVERIFY((cluster->operators[0].dims == std::vector<std::int64_t>{16, 1024, 1760}));
    QVERIFY(close(cluster->operators[0].time_s, 4e-5));
    const auto items = coverage(*cluster);
    QCOMPARE(items.at(items.size() - 2).name, std::string("matmul"));
    QCOMPARE(items.at(items.size() - 2).origin, Origin::measured);
    QCOMPARE(items.back().name, std::string("other operators"));
    auto calibrated = *cluster;
    calibrated.fits = {{"convolution", "forward", Precision::fp32, 1e-5, 0, 0, 3}};
    QCOMPARE(coverage(calibrated).at(items.size() - 1).origin, Origin::calibrated);
  }

  void files_in_and_out() {
    QTemporaryDir folder;
    const auto path = [&](const char* name) { return folder.filePath(name).toStdString(); };
    std::ofstream(path("profile.json")) << write_hardware_profile(**open_hardware("v100-16gb-2x8"));
    std::ofstream(path("intra_4.json")) << R"({"all gather": [[1, 64], [1e-4, 1e-3]]})";
    const auto report = read_hardware_files({path("intra_4.json"), path("profile.json")});
    QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
    QCOMPARE(report->logs.size(), std::size_t(1));
    QCOMPARE(report->cluster->device.name, std::string("V100-16GB"));
    QCOMPARE(item(report->coverage, "all_gather", 1, 4)->origin, Origin::measured);
    const auto lacking = read_hardware_files({path("intra_4.json")});
    QVERIFY(lacking.has_value() && !lacking->cluster && !lacking->no_cluster.empty());
    QCOMPARE(read_hardware_files({path("profile.json"), path("profile.json")}).error().code, ErrorCode::usage);
    QCOMPARE(read_hardware_files({path("absent.json")}).error().code, ErrorCode::bad_input);
    // As one hardware of a search: profiles, logs that name their device, and a clear word for others.
    QVERIFY(open_hardware(path("profile.json")).has_value());
    std::ofstream(path("bom.json")) << "\xef\xbb\xbf" << write_hardware_profile(**open_hardware("v100-16gb-2x8"));
    QVERIFY(open_hardware(path("bom.json")).has_value());
    const auto refused = open_hardware(path("intra_4.json"));
    QVERIFY(refused.error().message().find("does not say on which device it was measured ('turnpoint-cli hardware") !=
            std::string::npos);
    std::ofstream(path("broken.json")) << R"({"format": "turnpoint/hardware-profile@1", "nodes": 0})";
    QVERIFY(open_hardware(path("broken.json")).error().message().find("nodes: must be between 1") != std::string::npos);
  }

  // All measured V100 files of one study on its preset: NVLink as measured by its all-reduce of eight.
  void aceso_makes_a_v100_profile() {
    REQUIRE_DATA(data);
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(data / "hardware/aceso_v100"))
      paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    const auto report = read_hardware_files(paths, *open_hardware("v100-32gb-4x8"));
    QVERIFY2(report.has_value() && report->cluster,
             report ? report->no_cluster.c_str() : report.error().message().c_str());
    const Cluster& cluster = *report->cluster;
    // What rings have at the largest sizes, but for their latency and ramp: all-reduce 130.0, all-gather 91.8,
    // reduce-scatter 61.6 GB/s; the median.
    QVERIFY(close(cluster.links[kIntraNode].bandwidth, 7.0 / 8 * 4096 * 1048576 / (41.21e-3 - 7 * 13e-6), 2e-3));
    // Between nodes only sends of one pair were measured: 5.44 GiB/s.
    QVERIFY(close(cluster.links[kInterNode].bandwidth, 5.44 * (1 << 30), 1e-6));
    for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
      for (const int per_node : {2, 4, 8})
        QCOMPARE(item(report->coverage, kind, 1, per_node)->origin, Origin::measured);
    QCOMPARE(item(report->coverage, "send", 1, 8)->origin, Origin::measured);
    QCOMPARE(item(report->coverage, "broadcast", 1, 8)->origin, Origin::calibrated);
  }
};

QTEST_APPLESS_MAIN(ProfileBuilderTest)
#include "profile_builder_test.moc"
