// SPDX-License-Identifier: Apache-2.0
// What the probe tells of the GPUs of a host, over a driver and an NVML that are made up: links between GPUs, to
// switches, PCIe alone; old libraries, errors, and what the kernel tells in NVML's place.
#include <dlfcn.h>
#include <fmt/format.h>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/hardware/probe_client.h"
#include "core/probe/probe_profile.h"
#include "gpu_probe/cuda/nvml.h"
#include "plan_io/schema_check.h"

using namespace turnpoint;
using nlohmann::json;

namespace {

/// The NVLinks of a V100 server of eight: a cube with some edges doubled, six links each.
constexpr const char* kCube =
    "gpus=8,version=2,speed=25781,link=0-1x1,link=0-2x1,link=0-3x2,link=0-4x2,link=1-2x2,link=1-3x1,link=1-5x2,"
    "link=2-3x2,link=2-6x1,link=3-7x1,link=4-5x1,link=4-6x1,link=4-7x2,link=5-6x2,link=5-7x1,link=6-7x2";
constexpr const char* kCubeCells[8] = {"X   NV1 NV1 NV2 NV2 SYS SYS SYS", "NV1 X   NV2 NV1 SYS NV2 SYS SYS",
                                       "NV1 NV2 X   NV2 SYS SYS NV1 SYS", "NV2 NV1 NV2 X   SYS SYS SYS NV1",
                                       "NV2 SYS SYS SYS X   NV1 NV1 NV2", "SYS NV2 SYS SYS NV1 X   NV2 NV1",
                                       "SYS SYS NV1 SYS NV1 NV2 X   NV2", "SYS SYS SYS NV1 NV2 NV1 NV2 X"};

std::string cells_of(const HostTopology& host, int row) {
  std::string text;
  for (int k = 0; k < static_cast<int>(host.gpus.size()); ++k) text += topology_cell(host, row, k) + " ";
  return text;
}

bool notes(const HostTopology& host, const std::string& text) {
  return std::any_of(host.notes.begin(), host.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

}  // namespace

class TopologyTest : public QObject {
  Q_OBJECT
  test::SchemaCheck schemas_{TURNPOINT_SOURCE_DIR "/resources/schemas"};
  QByteArray path_;
  json hello_;

  /// As the real probe tells it. `nvml`: the library's folder.
  HostTopology told(int gpus, const QByteArray& description, const char* nvml = TURNPOINT_EMULATED_NVML_DIR) {
    qputenv("LD_LIBRARY_PATH", QByteArray(TURNPOINT_FAKE_CUDA_DIR ":") + nvml + ":" + no_compiler_.path().toUtf8());
    qputenv("TURNPOINT_FAKE_CUDA", "devices:" + QByteArray::number(gpus));
    qputenv("TURNPOINT_EMULATED_NVML", description);
    ProbeJob job;
    job.backend = ProbeBackend::cuda;
    job.budget_s = 10;
    job.item_s = 0.001;
    ProbeOperator copy;
    copy.kind = "copy";
    copy.dims = {1024};
    copy.bytes = 8192;
    ProbeCall call;
    call.kind = CallKind::copy;
    call.size[0] = 1024;
    copy.calls = {call};
    job.operators = {copy};
    ProbeLaunch launch;
    launch.program = TURNPOINT_BINARY_DIR "/turnpoint-probe";
    std::string wrong;
    launch.on_line = [&](const std::string& line) {
      const json message = json::parse(line);
      if (wrong.empty()) wrong = schemas_.check("probe-message@1", message);
      if (message["type"] == "hello") hello_ = message;
    };
    const auto messages = run_probe(launch, job, {});
    if (!messages || !wrong.empty()) {
      QTest::qFail((messages ? wrong : messages.error().message()).c_str(), __FILE__, __LINE__);
      return {};
    }
    measured_ = *messages;
    return messages->hello()->topology;
  }
  ProbeMessages measured_;
  QTemporaryDir no_compiler_;  ///< kernels do nothing here: they need not be compiled

 private slots:
  void initTestCase() {
    path_ = qgetenv("LD_LIBRARY_PATH");
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
      QVERIFY(QFile(no_compiler_.filePath(name)).open(QIODevice::WriteOnly));
  }
  void cleanup() {
    qputenv("LD_LIBRARY_PATH", path_);
    qunsetenv("TURNPOINT_FAKE_CUDA");
    qunsetenv("TURNPOINT_EMULATED_NVML");
  }

  void a_cube_of_links() {
    const HostTopology host = told(8, kCube);
    QCOMPARE(host.gpus.size(), std::size_t(8));
    QCOMPARE(host.pairs.size(), std::size_t(28));
    for (int i = 0; i < 8; ++i) {
      QCOMPARE(QString::fromStdString(cells_of(host, i)).simplified(), QString(kCubeCells[i]).simplified());
      QCOMPARE(host.gpus[std::size_t(i)].nvlinks, 6);
      QCOMPARE(host.gpus[std::size_t(i)].switch_links, 0);
      QCOMPARE(host.gpus[std::size_t(i)].nvlink_version, std::string("2.0"));
      QCOMPARE(host.gpus[std::size_t(i)].nvlink_rate, 25.781e9);
      QCOMPARE(host.gpus[std::size_t(i)].pci, fmt::format("7e57:{:02x}:00.0", i));
      QCOMPARE(host.gpus[std::size_t(i)].name, std::string("Fake H200"));
    }
    for (const auto& pair : host.pairs) {
      QCOMPARE(pair.nvlink_version, std::string(pair.nvlinks > 0 ? "2.0" : ""));
      QVERIFY(pair.read == "ok" && pair.write == "ok" && pair.pcie == "SYS" && pair.switch_links == 0);
    }
    // The chosen device's own figures stand beside it; versions are told in words.
    QCOMPARE(hello_["topology"]["nvlinks"], 6);
    QCOMPARE(hello_["topology"]["nvlink_version"], "2.0");
    QCOMPARE(hello_["topology"]["pcie_width"], 16);
  }

  void behind_a_switch() {
    const HostTopology host = told(4, "switch=0x18,switch=1x18,switch=2x12,version=6");
    for (const auto& pair : host.pairs)
      QCOMPARE(topology_cell(host, pair.first, pair.second), std::string(pair.second < 3 ? "NVS" : "SYS"));
    QCOMPARE(host.pairs[0].switch_links, 18);
    QCOMPARE(host.pairs[1].switch_links, 12);
    QVERIFY(host.gpus[2].switch_links == 12 && host.gpus[2].nvlinks == 12 && host.gpus[2].nvlink_version == "4.0");
    QVERIFY(host.gpus[3].nvlinks == 0 && host.gpus[3].nvlink_version.empty() && host.gpus[3].nvlink_rate == 0);
    QCOMPARE(pair_text(host, 0, 2).substr(0, 18), std::string("NVS: NVLinks of bo"));
    QVERIFY(pair_text(host, 0, 2).find("(12 NVLinks each), version 4.0, 318.7 GB/s each way") != std::string::npos);
  }

  void over_pcie_alone() {
    const HostTopology host = told(
        4,
        "path=0-1:10,path=0-2:20,path=0-3:30,path=1-2:40,path=1-3:50,path=2-3:0,peer=3-1:1:1,peer=1-2:0:3,node=0:0,"
        "node=1:1,node=2:1,node=2:2,cores=0:f00f,cores=1:1,cores=2:8000000000000000");
    QCOMPARE(QString::fromStdString(cells_of(host, 0)).simplified(), QString("X PIX PXB PHB"));
    QCOMPARE(QString::fromStdString(cells_of(host, 1)).simplified(), QString("PIX X NODE SYS"));
    QCOMPARE(QString::fromStdString(cells_of(host, 2)).simplified(), QString("PXB NODE X PSB"));
    // Access may be refused one way only.
    QVERIFY(host.pairs[4].first == 1 && host.pairs[4].second == 3 && host.pairs[4].read == "ok");
    QCOMPARE(host.pairs[4].write, std::string("the chipset does not support it"));
    QCOMPARE(host.pairs[3].read, std::string("not between these host bridges"));
    QCOMPARE(host.gpus[0].cores, std::string("0-3,12-15"));
    QCOMPARE(host.gpus[1].cores, std::string("0"));
    QCOMPARE(host.gpus[2].cores, std::string("63"));
    QVERIFY(host.gpus[0].numa_nodes == "0" && host.gpus[1].numa_nodes == "1" && host.gpus[2].numa_nodes == "1-2");
    QVERIFY(host.gpus[3].numa_nodes.empty() && host.gpus[3].cores.empty());
    QVERIFY(notes(host,
                  "which NUMA node is near a GPU is not known: neither nvmlDeviceGetMemoryAffinity nor "
                  "/sys/bus/pci/devices/7e57:03:00.0 tells"));
    QVERIFY(notes(host, "which CPU cores are near a GPU is not known"));
    QCOMPARE(host.notes.size(), std::size_t(2));
  }

  void links_that_are_off_or_end_elsewhere() {
    // Two that are off, one to a GPU that CUDA hides, one to a CPU.
    const HostTopology host = told(2,
                                   "gpus=3,link=0-0x2,link=0-1x1,link=0-2x1,npu=1x1,node=0:0,node=1:0,cores=0:1,"
                                   "cores=1:1");
    QVERIFY(host.gpus[0].nvlinks == 2 && host.gpus[1].nvlinks == 2);
    QCOMPARE(topology_cell(host, 0, 1), std::string("NV1"));
    QVERIFY(notes(host, "1 of the NVLinks of GPU0 end at none of these GPUs and at no switch"));
    QVERIFY(notes(host, "1 of the NVLinks of GPU1 end at none"));
    QVERIFY(notes(host, "the host has 3 GPUs; the driver shows 2 of them here"));
    QCOMPARE(host.notes.size(), std::size_t(3));
  }

  // As in virtual machines: the links are there, and where they go is not told.
  void a_hidden_switch() {
    const HostTopology host = told(4, "hidden=0x12,hidden=1x12,hidden=2x12,peer=0-2:2:5");
    QCOMPARE(topology_cell(host, 0, 1), std::string("NVS"));
    QCOMPARE(topology_cell(host, 1, 2), std::string("NVS"));
    QCOMPARE(topology_cell(host, 0, 2), std::string("SYS"));  // whose NVLinks do not reach each other
    QCOMPARE(topology_cell(host, 0, 3), std::string("SYS"));
    QCOMPARE(host.gpus[0].switch_links, 0);
    QVERIFY(
        notes(host, "where NVLinks end is not known: nvmlDeviceGetNvLinkRemotePciInfo_v2: Not Supported (error 3)"));
    QVERIFY(notes(host, "are taken to be joined by switches"));
  }

  // One function after the other fails: only what it tells is missing, and a note says so.
  void errors_data() {
    QTest::addColumn<QByteArray>("function");
    QTest::addColumn<QByteArray>("note");
    QTest::newRow("ends") << QByteArray("nvmlDeviceGetNvLinkRemotePciInfo_v2") << QByteArray("where NVLinks end");
    QTest::newRow("kinds") << QByteArray("nvmlDeviceGetNvLinkRemoteDeviceType") << QByteArray();
    QTest::newRow("ancestor") << QByteArray("nvmlDeviceGetTopologyCommonAncestor")
                              << QByteArray("how pairs of GPUs lie");
    QTest::newRow("peers") << QByteArray("nvmlDeviceGetP2PStatus") << QByteArray("peer-to-peer access between GPUs");
    QTest::newRow("node") << QByteArray("nvmlDeviceGetMemoryAffinity") << QByteArray("which NUMA node is near");
    QTest::newRow("cores") << QByteArray("nvmlDeviceGetCpuAffinity") << QByteArray("which CPU cores are near");
    QTest::newRow("rate") << QByteArray("nvmlDeviceGetFieldValues") << QByteArray("the rate of NVLinks");
    QTest::newRow("version") << QByteArray("nvmlDeviceGetNvLinkVersion") << QByteArray("the version of NVLinks");
    QTest::newRow("count") << QByteArray("nvmlDeviceGetCount_v2") << QByteArray();
  }
  void errors() {
    QFETCH(QByteArray, function);
    QFETCH(QByteArray, note);
    const QByteArray whole = "gpus=2,link=0-1x4,version=5,path=0-1:10,node=0:0,node=1:0,cores=0:3,cores=1:3";
    HostTopology wanted = told(2, whole);
    QVERIFY(wanted.notes.empty());
    const HostTopology host = told(2, whole + ",fail=" + function + ":15");
    const bool ends = note.startsWith("where");  // then a switch is assumed, as a second note says
    QCOMPARE(host.notes.size(), std::size_t(note.isEmpty() ? 0 : ends ? 2 : 1));
    if (!note.isEmpty()) {
      QVERIFY2(host.notes[0].starts_with(note.toStdString()), host.notes[0].c_str());
      const bool kernel = note.startsWith("which");  // is asked as well
      const std::string reason = kernel ? function.toStdString() : "GPU is lost (error 15)";
      QVERIFY2(host.notes[0].find(reason) != std::string::npos, host.notes[0].c_str());
    }
    for (auto& gpu : wanted.gpus) {
      if (note.startsWith("which NUMA")) gpu.numa_nodes.clear();
      if (note.startsWith("which CPU")) gpu.cores.clear();
      if (note.startsWith("the rate")) gpu.nvlink_rate = 0;
      if (note.startsWith("the version")) gpu.nvlink_version.clear();
    }
    GpuPair& pair = wanted.pairs[0];
    if (ends) pair.nvlinks = 0, pair.switch_links = 4;  // as behind a hidden switch
    if (note.startsWith("how")) pair.pcie.clear();
    if (note.startsWith("peer")) pair.read.clear(), pair.write.clear();
    if (note.startsWith("the version")) pair.nvlink_version.clear();
    wanted.notes = host.notes;
    QVERIFY(host == wanted);
  }

  void an_old_library() {
    const HostTopology host = told(2, "gpus=2,link=0-1x4,version=4", TURNPOINT_EMULATED_NVML_DIR "_old");
    QCOMPARE(topology_cell(host, 0, 1), std::string("?"));
    QVERIFY(host.pairs.empty() && host.gpus[0].nvlinks == 4 && host.gpus[0].nvlink_version == "3.0");
    for (const char* function : {"nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetP2PStatus",
                                 "nvmlDeviceGetFieldValues", "nvmlDeviceGetNvLinkRemotePciInfo_v2"})
      QVERIFY2(notes(host, std::string("libnvidia-ml.so.1 has no function ") + function), function);
    QVERIFY(notes(host, "nvmlDeviceGetMemoryAffinity") && notes(host, "nvmlDeviceGetCpuAffinity"));
    // What every library has still works.
    QVERIFY(hello_["topology"]["pcie_generation"] == 5);
  }

  void nvml_that_does_not_start_or_does_not_know_a_device() {
    const HostTopology host = told(2, "gpus=2,link=0-1x4,fail=nvmlInit_v2:9");
    QVERIFY(host.gpus.size() == 2 && host.pairs.empty() && host.gpus[0].nvlinks == 0);
    QVERIFY(notes(host, "what joins the GPUs is not known: libnvidia-ml.so.1 does not start (error 9)"));
    const HostTopology other = told(3, "gpus=2,link=0-1x4");
    QCOMPARE(topology_cell(other, 0, 1), std::string("NV4"));
    QCOMPARE(topology_cell(other, 0, 2), std::string("?"));
    QVERIFY(notes(other, "what joins GPU2 to others is not known: NVML does not know a device at 7e57:02:00.0"));
    QVERIFY(measured_.hello()->devices.size() == 3);
  }

  // NVML in this process, and files as the kernel writes them.
  void the_kernel_tells_what_nvml_does_not() {
    if (!dlopen(TURNPOINT_EMULATED_NVML_DIR "/libnvidia-ml.so.1", RTLD_NOW | RTLD_GLOBAL)) QFAIL(dlerror());
    QTemporaryDir folder;
    const std::filesystem::path system = folder.path().toStdString();
    const auto write = [&](const char* device, const char* file, const char* text) {
      std::filesystem::create_directories(system / "bus/pci/devices" / device);
      std::ofstream(system / "bus/pci/devices" / device / file) << text << "\n";
    };
    write("7e57:00:00.0", "numa_node", "1");
    write("7e57:00:00.0", "local_cpulist", "8-15");
    write("7e57:01:00.0", "numa_node", "-1");
    write("7e57:01:00.0", "local_cpulist", "0-15");
    // The bridges that the emulated switches are; without the kind of an end, their class tells.
    for (const char* bus : {"c0", "c1", "c2", "c3"})
      write(fmt::format("7e57:{}:00.0", bus).c_str(), "class", "0x068000");
    qputenv("TURNPOINT_EMULATED_NVML", "gpus=2,switch=0x4,switch=1x4,fail=nvmlDeviceGetNvLinkRemoteDeviceType:13");
    const probe::cuda::Nvml nvml;
    QVERIFY2(nvml.problem().empty(), nvml.problem().c_str());
    HostGpu first, second;
    first.pci = "7e57:00:00.0", second.pci = "7e57:01:00.0";
    const HostTopology host = nvml.topology({first, second}, system);
    QVERIFY(host.gpus[0].numa_nodes == "1" && host.gpus[0].cores == "8-15");
    QVERIFY(host.gpus[1].numa_nodes.empty() && host.gpus[1].cores == "0-15");
    QVERIFY(host.gpus[0].switch_links == 4 && topology_cell(host, 0, 1) == "NVS");
    QCOMPARE(host.notes.size(), std::size_t(1));
    QVERIFY(notes(host, "which NUMA node is near a GPU is not known"));
    // NVML's word counts before the kernel's.
    qputenv("TURNPOINT_EMULATED_NVML", "gpus=2,node=0:0,cores=0:1");
    const HostTopology told_by_nvml = nvml.topology({first}, system);
    QVERIFY(told_by_nvml.gpus[0].numa_nodes == "0" && told_by_nvml.gpus[0].cores == "0");
  }

  void versions() {
    using probe::cuda::nvlink_version;
    QVERIFY(nvlink_version(0).empty() && nvlink_version(99).empty());
    QVERIFY(nvlink_version(1) == "1.0" && nvlink_version(5) == "3.1" && nvlink_version(7) == "5.0");
  }

  void profiles_hold_it() {
    const HostTopology host = told(2, "gpus=2,link=0-1x4,path=0-1:10,node=0:0,node=1:0,cores=0:3,cores=1:3");
    ProbeMessages messages;
    QVERIFY(messages.take(hello_.dump()).has_value());
    const json item = {{"type", "item"},    {"index", 0},          {"kind", "copy"}, {"fit", "copy"},
                       {"dims", {1 << 20}}, {"precision", "fp32"}, {"bytes", 8e6},   {"time_s", 1e-5}};
    QVERIFY(messages.take(item.dump()).has_value());
    const auto profile = measured_profile(messages, nullptr, false);
    QVERIFY2(profile.has_value(), profile ? "" : profile.error().message().c_str());
    QVERIFY(profile->cluster->topology == host);
    const std::string text = write_hardware_profile(*profile->cluster);
    const auto read = parse_hardware_profile(text, "p.json");
    QVERIFY(read && (*read)->topology == host);
    QCOMPARE(QString::fromStdString(schemas_.check("hardware-profile@1", json::parse(text))), QString());
  }
};

QTEST_GUILESS_MAIN(TopologyTest)
#include "topology_test.moc"
