// SPDX-License-Identifier: Apache-2.0
// What the probe is asked to measure is what the cost model looks up: the same signatures, the same work, and kernels
// that do the operator's arithmetic.
#include <fmt/format.h>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/cost/calibration.h"
#include "core/hardware/cache_misses.h"
#include "core/import/source/model_source.h"
#include "core/probe/measure_machine.h"
#include "core/probe/probe_items.h"
#include "core/probe/probe_profile.h"

using namespace turnpoint;

namespace {

ModelPtr model_of(const std::string& name, std::int64_t batch, std::int64_t sequence = 0) {
  auto source = open_model(name);
  if (!source) return nullptr;
  auto model = (*source)->bind({batch, sequence});
  return model ? *model : nullptr;
}

std::vector<std::int64_t> whole(const Operator& op) {
  std::vector<std::int64_t> local;
  for (const auto& dim : op.dims) local.push_back(dim.size);
  return local;
}

bool multiplies(const Operator& op) { return op.kind == OperatorKind::matmul || op.kind == OperatorKind::convolution; }

std::string item_line(int n, const char* precision, double flop, double bytes, double time) {
  return fmt::format(
      R"({{"type":"item","index":0,"phase":"forward","kind":"matmul","fit":"matmul","dims":[{0},{0},{0}],)"
      R"("precision":"{1}","flop":{2},"bytes":{3},"time_s":{4}}})",
      n, precision, flop, bytes, time);
}

/// Everything but launch 10 us, 500 TFLOP/s, no bytes, which is exactly what fits can say.
std::vector<std::string> made_up_messages() {
  std::vector<std::string> lines{
      R"({"type":"hello","program":"turnpoint-probe","protocol":1,"backend":"cuda","ranks":1,"device":0,"cold":true,)"
      R"("devices":[{"name":"NVIDIA H200","kind":"cuda","memory_bytes":150000000000}]})"};
  for (const int n : {1024, 2048, 4096, 8192}) {
    const double flop = 2.0 * n * n * n;
    lines.push_back(item_line(n, "bf16", flop, 6.0 * n * n, 10e-6 + flop / 500e12));
  }
  lines.push_back(item_line(4096, "tf32", 2.0 * 4096 * 4096 * 4096, 2e8, 1e-3));
  lines.emplace_back(R"({"type":"item","index":9,"kind":"launch","dims":[],"time_s":2e-6})");
  lines.emplace_back(R"({"type":"item","index":10,"kind":"host-to-device","dims":[100000000],"time_s":2e-3})");
  lines.emplace_back(R"({"type":"item","index":11,"kind":"convolution","dims":[1],"not_measured":"no cuDNN"})");
  lines.emplace_back(R"({"type":"result","measured":7,"not_measured":1,"skipped":0})");
  return lines;
}

}  // namespace

class ProbeItemsTest : public QObject {
  Q_OBJECT

 private slots:
  void models_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("sequence");
    QTest::newRow("gpt2") << "builtin:gpt2" << 64;
    QTest::newRow("resnet50") << "builtin:resnet50" << 0;
    QTest::newRow("inception") << "builtin:inception-v3" << 0;
    QTest::newRow("rnn") << "builtin:rnn" << 0;
    QTest::newRow("vgg11") << "builtin:vgg11" << 0;
  }

  // FLOP and bytes are those of the cost model, under every configuration of the first operators.
  void work_is_that_of_the_cost_model_data() { models_data(); }
  void work_is_that_of_the_cost_model() {
    QFETCH(QString, name);
    QFETCH(int, sequence);
    const auto model = model_of(name.toStdString(), 16, sequence);
    QVERIFY(model != nullptr);
    for (const auto precision : {Precision::fp32, Precision::bf16}) {
      Settings settings;
      settings.batch = 16;
      settings.sequence = sequence;
      settings.precision = precision;
      settings.loss = LossPrecision::as_activations;  // as the kernels that are timed have it
      settings.attention = Attention::unfused;
      const auto scenario = make_scenario(model, *cluster_preset("v100-16gb-1x4"), "v100-16gb-1x4", settings);
      QVERIFY(scenario.has_value());
      const Mesh mesh = make_mesh(*(*scenario)->cluster);
      const ReshardingModel resharding(mesh, CollectiveModel(*(*scenario)->cluster, {}), 1e11);
      const TensorUses uses = analyse_tensor_uses(*model);
      const OperatorCostModel costs(**scenario, uses, resharding);
      int compared = 0;
      for (const auto& op : model->operators) {
        // Nothing split, and both axes on the first dimension that can be.
        for (std::size_t d = 0; d <= op.dims.size(); ++d) {
          Configuration configuration;
          auto local = whole(op);
          if (d < op.dims.size()) {
            if (!op.dims[d].splittable || op.dims[d].size % mesh.axes[0].size != 0) continue;
            configuration.axis[0] = static_cast<std::int8_t>(d);
            local[d] /= mesh.axes[0].size;
          }
          for (const bool backward : {false, true}) {
            const PhaseWork wanted = costs.work(op, configuration, backward),
                            got = local_work(*model, op, local, precision, backward);
            QVERIFY2(std::abs(wanted.flop - got.flop) <= 1e-9 * wanted.flop, op.name.c_str());
            QVERIFY2(std::abs(wanted.bytes - got.bytes) <= 1e-9 * wanted.bytes, op.name.c_str());
            QCOMPARE(got.launches, wanted.launches);
            QCOMPARE(wanted.launches > 1, op.kind == OperatorKind::recurrent);
            ++compared;
          }
        }
      }
      QVERIFY(compared > 50);
    }
  }

  // The products of a call list are the operator's multiply-accumulates, forward and backward.
  void kernels_do_the_arithmetic_data() { models_data(); }
  void kernels_do_the_arithmetic() {
    QFETCH(QString, name);
    QFETCH(int, sequence);
    const auto model = model_of(name.toStdString(), 8, sequence);
    QVERIFY(model != nullptr);
    int compared = 0;
    for (const auto& op : model->operators) {
      if (!multiplies(op)) continue;
      for (const bool backward : {false, true}) {
        const auto calls = probe_calls(*model, op, whole(op), backward);
        QVERIFY2(calls.has_value(), calls ? "" : (op.name + ": " + calls.error().message()).c_str());
        double flop = 0;
        for (const auto& call : *calls) flop += call_flop(call) * static_cast<double>(call.count);
        const double wanted = 2 * (backward ? op.backward_macs : op.forward_macs);
        QVERIFY2(std::abs(flop - wanted) <= 1e-9 * wanted, (op.name + (backward ? " backward" : " forward")).c_str());
        ++compared;
      }
    }
    QVERIFY(compared > 0 || name.contains("rnn"));
  }

  // Jobs survive being written and read, and no item is refused.
  void lists_are_valid_jobs() {
    const auto model = model_of("builtin:resnet50", 32);
    const ProbePrecision precisions[] = {ProbePrecision::fp32, ProbePrecision::bf16};
    for (const bool large : {false, true}) {
      ProbeJob job;
      job.ranks = 4;
      job.operators = standard_items(large, precisions).operators;
      const auto of_model = model_items(*model, 4, precisions);
      job.operators.insert(job.operators.end(), of_model.operators.begin(), of_model.operators.end());
      job.collectives = standard_collectives(4, 64, 1 << 20);
      const std::string text = write_probe_job(job);
      const auto read = parse_probe_job(text, "job");
      QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
      QCOMPARE(write_probe_job(*read), text);
      QVERIFY(read->items() > 300);
      QCOMPARE(read->operators.size(), job.operators.size());
      int recurrent = 0;
      for (std::size_t i = 0; i < job.operators.size(); ++i) {
        QCOMPARE(read->operators[i].launches, job.operators[i].launches);
        QCOMPARE(job.operators[i].launches > 1, job.operators[i].kind == "recurrent");
        recurrent += job.operators[i].kind == "recurrent";
      }
      QVERIFY(recurrent >= 2 * kSizesOfFit);  // of both phases, so that each has a fit
    }
    // A short budget leaves some of both kinds.
    ProbeJob few;
    few.operators.resize(6);
    few.collectives.resize(3);
    QCOMPARE(run_order(few), (std::vector<std::size_t>{0, 6, 1, 2, 7, 3, 4, 8, 5}));
    few.operators.clear();
    QCOMPARE(run_order(few), (std::vector<std::size_t>{0, 1, 2}));
    // Both ends first, then the middle: what a short budget leaves reaches over the whole curve.
    const auto list = standard_collectives(2, 64, 4096);
    QCOMPARE(list.size(), std::size_t(7 * 6));
    std::vector<std::int64_t> sizes;
    for (const ProbeCollective& item : list)
      if (sizes.empty() || sizes.back() != item.bytes) sizes.push_back(item.bytes);
    QCOMPARE(sizes, (std::vector<std::int64_t>{64, 4096, 512, 128, 1024, 256, 2048}));
  }

  // A third of the list is enough for small and large sizes of a kind, and no kind is left for the end.
  void a_short_budget_leaves_every_kind() {
    const ProbePrecision precisions[] = {ProbePrecision::fp32, ProbePrecision::bf16};
    const auto items = standard_items(true, precisions).operators;
    std::map<std::string, double> all, first, largest, largest_first;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].fit.empty()) continue;
      all[items[i].kind] += 1;
      largest[items[i].kind] = std::max(largest[items[i].kind], items[i].bytes);
      if (i >= items.size() / 3) continue;
      first[items[i].kind] += 1;
      largest_first[items[i].kind] = std::max(largest_first[items[i].kind], items[i].bytes);
    }
    QVERIFY(all.size() >= 9);
    for (const auto& [kind, count] : all) {
      QVERIFY2(first[kind] >= std::min(count, 8.0), kind.c_str());  // two shapes, each in two formats and both ways
      QVERIFY2(largest_first[kind] >= 0.2 * largest[kind], kind.c_str());
    }
    // In 16 bits, products with rows of every kind, each often enough for a fit.
    for (const char* kind : {"matmul, odd rows", "matmul, even rows"})
      QVERIFY(std::count_if(items.begin(), items.end(), [&](const ProbeOperator& item) {
                return item.fit == kind && item.precision == ProbePrecision::bf16 && !item.backward;
              }) >= 4);
  }

  // A profile of made-up times: rates, signatures and fits come back out.
  void profiles_hold_what_was_measured() {
    ProbeMessages messages;
    for (const auto& line : made_up_messages()) {
      const auto taken = messages.take(line);
      QVERIFY2(taken.has_value(), taken ? "" : taken.error().message().c_str());
    }
    const auto made = measured_profile(messages, nullptr, false);
    QVERIFY2(made.has_value(), made ? "" : made.error().message().c_str());
    const Cluster& cluster = *made->cluster;
    QCOMPARE(cluster.name, std::string("h200-141gb-1x1"));
    QCOMPARE(cluster.device.memory_bytes, std::int64_t(150000000000));
    QCOMPARE(cluster.device.launch_s, 2e-6);
    QCOMPARE(cluster.host_link_bandwidth, 5e10);
    QCOMPARE(cluster.operators.size(), std::size_t(4));
    QVERIFY(std::abs(cluster.device.flop_efficiency_16bit - 0.5) < 0.01);
    QCOMPARE(cluster.device.flop_efficiency, DeviceType().flop_efficiency);  // no fp32 product was measured
    QCOMPARE(cluster.fits.size(), std::size_t(1));
    QVERIFY2(std::abs(cluster.fits[0].s_per_flop * 500e12 - 1) < 0.02,
             std::to_string(cluster.fits[0].s_per_flop * 500e12).c_str());
    const auto with_tf32 = measured_profile(messages, nullptr, true);
    QVERIFY(with_tf32.has_value());
    QCOMPARE(with_tf32->cluster->operators.size(), std::size_t(5));
    // Written and read again.
    const auto read = parse_hardware_profile(write_hardware_profile(cluster), "profile");
    QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
  }

  // CPU ranks: a product of a made-up core takes what was measured and, in a step, the launch beside it; a kernel of a
  // size that no fit names is priced by the fit of all convolutions.
  void operators_of_a_core_have_the_launch_in_them() {
    constexpr double kLaunch = 2e-6, kPerFlop = 1e-11;
    ProbeMessages messages;
    std::vector<std::string> lines{
        R"({"type":"hello","program":"turnpoint-probe","protocol":1,"backend":"cpu","ranks":2,"device":0,"cold":true,)"
        R"("statistic":"q1","devices":[{"name":"a core","kind":"cpu","memory_bytes":15000000000}]})",
        fmt::format(R"({{"type":"item","index":0,"kind":"launch","dims":[],"time_s":{}}})", kLaunch)};
    for (const int n : {16, 64, 256, 1024}) {
      const double flop = 2.0 * n * n * n;
      lines.push_back(item_line(n, "fp32", flop, 0, kPerFlop * flop));
      lines.push_back(fmt::format(
          R"({{"type":"item","index":1,"phase":"forward","kind":"convolution","fit":"convolution 3x3","dims":[{}],)"
          R"("precision":"fp32","flop":{},"bytes":0,"time_s":{}}})",
          n, flop, 2 * kPerFlop * flop));
    }
    lines.emplace_back(R"({"type":"result","measured":9,"not_measured":0,"skipped":0})");
    for (const auto& line : lines) {
      const auto taken = messages.take(line);
      QVERIFY2(taken.has_value(), taken ? "" : taken.error().message().c_str());
    }
    const auto made = measured_profile(messages, nullptr, false);
    QVERIFY2(made.has_value(), made ? "" : made.error().message().c_str());
    QCOMPARE(made->cluster->device.launch_s, kLaunch);
    int products = 0;
    for (const OperatorSample& sample : made->cluster->operators) {
      if (sample.kind != "matmul") continue;
      ++products;
      const double n = double(sample.dims.front());
      QCOMPARE(sample.time_s, kPerFlop * 2 * n * n * n + kLaunch);
    }
    QCOMPARE(products, 4);
    std::map<std::string, OperatorFit> fits;
    for (const OperatorFit& fit : made->cluster->fits) fits[fit.kind] = fit;
    for (const char* kind : {"convolution", "convolution 3x3"}) {
      QCOMPARE(fits.count(kind), std::size_t(1));
      QVERIFY(std::abs(fits[kind].launch_s / kLaunch - 1) < 0.01);
      QVERIFY(std::abs(fits[kind].s_per_flop / (2 * kPerFlop) - 1) < 0.01);
    }
  }

  // CPU ranks: caches of 16 MiB are found in passes that go round and round through rising numbers of bytes. Times with
  // the numbers in them stand beside the others, and fits of them are made of items that leave half of the caches free.
  void caches_are_found_and_used() {
    constexpr double kCache = 16 << 20, kWarm = 1e-11, kCold = 4e-11, kLaunch = 2e-6;
    std::vector<std::string> lines{
        R"({"type":"hello","program":"turnpoint-probe","protocol":1,"backend":"cpu","ranks":2,"device":0,"cold":true,)"
        R"("statistic":"q1","devices":[{"name":"a core","kind":"cpu","memory_bytes":15000000000}]})",
        fmt::format(R"({{"type":"item","index":0,"kind":"launch","dims":[],"time_s":{}}})", kLaunch)};
    const ProbePrecision precisions[] = {ProbePrecision::fp32};
    for (const ProbeOperator& item : standard_items(false, precisions).operators) {
      if (item.kind != kCachePass) continue;
      const double bytes = double(item.dims.at(0) * kCachePassBytes);
      QCOMPARE(call_elements(item.calls.at(0)) * 4, bytes);
      lines.push_back(fmt::format(
          R"({{"type":"item","index":1,"kind":"{}","dims":[{}],"precision":"fp32","time_s":{},"hot_s":{}}})",
          kCachePass, item.dims[0], bytes * kCold, bytes * (kWarm + miss_share(bytes, kCache) * (kCold - kWarm))));
    }
    QVERIFY(lines.size() > 12);
    for (const double mib : {0.5, 1.0, 2.0, 4.0, 7.0, 12.0, 24.0}) {  // the last two leave less than half
      const double bytes = mib * (1 << 20), warm = mib < 8 ? kWarm : 9 * kWarm;
      lines.push_back(fmt::format(
          R"({{"type":"item","index":2,"phase":"forward","kind":"elementwise","fit":"elementwise","dims":[{}],)"
          R"("precision":"fp32","flop":0,"bytes":{},"time_s":{},"hot_s":{}}})",
          std::int64_t(bytes / 8), bytes, bytes * kCold, bytes * warm));
    }
    lines.emplace_back(R"({"type":"result","measured":9,"not_measured":0,"skipped":0})");
    ProbeMessages messages;
    for (const auto& line : lines) {
      const auto taken = messages.take(line);
      QVERIFY2(taken.has_value(), taken ? "" : taken.error().message().c_str());
    }
    const auto made = measured_profile(messages, nullptr, false);
    QVERIFY2(made.has_value(), made ? "" : made.error().message().c_str());
    const Cluster& cluster = *made->cluster;
    QVERIFY(std::abs(double(cluster.device.cache_bytes) / kCache - 1) < 0.03);
    QVERIFY(std::abs(cluster.device.cache_bandwidth * kWarm - 1) < 0.01);
    QCOMPARE(cluster.operators.size(), std::size_t(7));
    for (const OperatorSample& sample : cluster.operators) {
      const double bytes = 8.0 * double(sample.dims[0]);
      QVERIFY(std::abs(sample.time_s - bytes * kCold - kLaunch) < 1e-9);
      QVERIFY(std::abs(sample.warm_s - bytes * (bytes < 8 << 20 ? kWarm : 9 * kWarm) - kLaunch) < 1e-9);
    }
    QCOMPARE(cluster.fits.size(), std::size_t(1));
    QCOMPARE(cluster.warm_fits.size(), std::size_t(1));
    QCOMPARE(cluster.warm_fits[0].samples, 5);
    QVERIFY(std::abs(cluster.fits[0].s_per_byte / kCold - 1) < 0.01);
    QVERIFY(std::abs(cluster.warm_fits[0].s_per_byte / kWarm - 1) < 0.01);
    // Without passes nothing is known of caches, and times in them serve for nothing.
    ProbeMessages without;
    for (const auto& line : lines)
      if (line.find(kCachePass) == std::string::npos) QVERIFY(without.take(line).has_value());
    const auto blind = measured_profile(without, nullptr, false);
    QVERIFY(blind && blind->cluster->device.cache_bytes == 0 && blind->cluster->warm_fits.empty());
    for (const OperatorSample& sample : blind->cluster->operators) QCOMPARE(sample.warm_s, 0.0);
  }

  // GPUs are asked for such times, CPU ranks always are.
  void passes_are_measured_where_caches_count() {
    std::vector<std::string> left_out;
    for (const bool hot : {false, true})
      for (const ProbeBackend backend : {ProbeBackend::cpu, ProbeBackend::cuda}) {
        MeasureOptions options;
        options.hot = hot;
        const ProbeJob job = measurement_job(options, backend, left_out);
        const bool wanted = hot || backend == ProbeBackend::cpu;
        QCOMPARE(job.hot, wanted);
        QCOMPARE(std::ranges::any_of(job.operators, [](const auto& op) { return op.kind == kCachePass; }), wanted);
      }
  }

  // A device without a data sheet, of which a short budget left no product and no copy: what stands in is named.
  void figures_that_were_not_measured_are_named() {
    ProbeMessages messages;
    for (std::string line : made_up_messages()) {
      const std::string known = "NVIDIA H200";
      if (const auto at = line.find(known); at != std::string::npos) line.replace(at, known.size(), "Some device");
      const auto taken = messages.take(line);
      QVERIFY2(taken.has_value(), taken ? "" : taken.error().message().c_str());
    }
    const auto made = measured_profile(messages, nullptr, false);
    QVERIFY2(made.has_value(), made ? "" : made.error().message().c_str());
    QCOMPARE(made->cluster->device.peak_fp32, 1e9);
    std::string notes;
    for (const auto& note : made->cluster->notes) notes += note + "; ";
    QVERIFY2(notes.find("1 GFLOP/s is assumed") != std::string::npos, notes.c_str());
    QVERIFY2(notes.find("1 GB/s is assumed") != std::string::npos, notes.c_str());
  }
};

QTEST_APPLESS_MAIN(ProbeItemsTest)
#include "probe_items_test.moc"
