// SPDX-License-Identifier: Apache-2.0
// oneDNN beside its plain twin on random shapes, where it is installed; which kernels a probe takes, with and without
// it.
#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <random>
#include <thread>

#include "gpu_probe/cpu/blas.h"
#include "gpu_probe/cpu/convolve.h"
#include "gpu_probe/cpu/onednn_library.h"

#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#define TURNPOINT_HAVE_DNNL_HEADER 1
#endif

using namespace turnpoint;
using namespace turnpoint::probe;

namespace {

using Floats = std::vector<float>;

Floats random_floats(std::int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats numbers(static_cast<std::size_t>(count));
  for (auto& x : numbers) x = uniform(random);
  return numbers;
}

/// Largest difference as a share of the largest number.
double difference(const Floats& a, const Floats& b) {
  double most = 0, scale = 1e-6;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    most = std::isnan(d) ? 1e9 : std::max(most, d);
    scale = std::max(scale, std::abs(static_cast<double>(a[i])));
  }
  return most / scale;
}

/// Sizes of every kind: groups, strides, dilations, paddings, windows that do not reach the end.
ConvolutionSizes random_sizes(std::mt19937& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  while (true) {
    const std::int64_t groups = pick(0, 3) == 0 ? pick(2, 4) : 1;
    ProbeCall call;
    auto& z = call.size;
    z[0] = pick(1, 3), z[1] = groups * pick(1, 20), z[2] = pick(1, 20), z[3] = pick(1, 20), z[4] = groups * pick(1, 20);
    z[5] = pick(1, 5), z[6] = pick(1, 5), z[9] = pick(1, 3), z[10] = pick(1, 3);
    z[11] = pick(0, z[5] - 1), z[12] = pick(0, z[6] - 1), z[13] = pick(1, 2), z[14] = pick(1, 2), z[15] = groups;
    const auto out = [&](std::size_t in, std::size_t kernel, std::size_t stride, std::size_t pad,
                         std::size_t dilation) {
      const std::int64_t room = z[in] + 2 * z[pad] - (z[kernel] - 1) * z[dilation] - 1;
      return room < 0 ? 0 : room / z[stride] + 1;
    };
    z[7] = out(2, 5, 9, 11, 13), z[8] = out(3, 6, 10, 12, 14);
    if (z[7] > 0 && z[8] > 0) return ConvolutionSizes(call);
  }
}

struct Case {
  ConvolutionPhase phase;
  const char* name;
};
constexpr Case kPhases[] = {
    {ConvolutionPhase::forward, "forward"}, {ConvolutionPhase::data, "data"}, {ConvolutionPhase::filter, "filter"}};

/// Both results of one convolution on the same random numbers; false where the library has none.
bool both(ConvolutionPhase phase, const ConvolutionSizes& z, std::mt19937& random, Floats& plain, Floats& fast) {
  const auto x = random_floats(z.n * z.c * z.h * z.w, random);
  const auto w = random_floats(z.k * (z.c / z.groups) * z.r * z.s, random);
  const auto y = random_floats(z.n * z.k * z.p * z.q, random);
  Floats columns(static_cast<std::size_t>(z.c / z.groups * z.r * z.s * z.p * z.q));
  const bool f = phase == ConvolutionPhase::forward, d = phase == ConvolutionPhase::data;
  const auto &a = d ? w : x, &b = f ? w : y;
  plain = f ? y : d ? x : w;
  fast.assign(plain.size(), std::nanf(""));
  (f   ? convolution_forward
   : d ? convolution_data
       : convolution_filter)(z, gemm, a.data(), b.data(), plain.data(), columns.data());
  const auto* made = OnednnConvolution::find(phase, z);
  if (!made) return false;
  Floats scratch(static_cast<std::size_t>(made->scratch()));
  return made->run(a.data(), b.data(), fast.data(), scratch.data());
}

/// What the probe says of a job of one matrix product.
QList<QJsonObject> run_probe_with(const char* kernels, const QStringList& environment = {}) {
  QProcess process;
  process.setEnvironment(QProcess::systemEnvironment() + environment);
  process.start(TURNPOINT_BINARY_DIR "/turnpoint-probe", {"--job", "-"});
  ProbeJob job;
  job.backend = ProbeBackend::cpu;
  job.item_s = 0.002;
  job.cpu_kernels = *parse_cpu_kernels(kernels);
  ProbeOperator op;
  op.kind = "matmul";
  op.dims = {8, 8, 8};
  ProbeCall call;
  call.kind = CallKind::matmul;
  call.size = {1, 8, 8, 8, 0, 0};
  op.calls = {call};
  job.operators = {op};
  const std::string text = write_probe_job(job);
  process.write(text.c_str(), static_cast<qint64>(text.size()));
  process.closeWriteChannel();
  QList<QJsonObject> lines;
  if (!process.waitForFinished(60000)) return lines;
  for (const auto& line : process.readAllStandardOutput().split('\n'))
    if (!line.isEmpty()) lines.append(QJsonDocument::fromJson(line).object());
  return lines;
}

QString implementation(const QList<QJsonObject>& lines) {
  for (const auto& line : lines)
    if (line["type"] == "item") return line["implementation"].toString();
  return {};
}

}  // namespace

class OnednnTest : public QObject {
  Q_OBJECT

 private slots:
  void convolutions_equal_their_plain_twin() {
    if (!onednn()) QSKIP("oneDNN is not installed");
    std::mt19937 random(5);
    int compared = 0;
    for (int round = 0; round < 60; ++round) {
      const ConvolutionSizes z = random_sizes(random);
      for (const auto& [phase, name] : kPhases) {
        Floats plain, fast;
        if (!both(phase, z, random, plain, fast)) continue;
        ++compared;
        QVERIFY2(difference(plain, fast) < 2e-5,
                 qPrintable(QString("%1 round %2: %3").arg(name).arg(round).arg(difference(plain, fast))));
      }
    }
    QVERIFY2(compared > 150, qPrintable(QString::number(compared)));
  }

  void products_equal_their_plain_twin() {
    if (!onednn()) QSKIP("oneDNN is not installed");
    std::mt19937 random(6);
    for (int round = 0; round < 200; ++round) {
      const auto pick = [&] { return std::uniform_int_distribution<std::int64_t>(1, 70)(random); };
      GemmShape s{pick(), pick(), pick(), random() % 2 == 0, random() % 2 == 0};
      s.stored_c = s.n + static_cast<std::int64_t>(random() % 3);
      const auto a = random_floats(s.m * s.k, random), b = random_floats(s.k * s.n, random);
      auto plain = random_floats(s.m * s.stored_c, random), fast = plain;
      const float beta = random() % 2 == 0 ? 0.0f : 1.0f;
      gemm(s, a.data(), b.data(), beta, plain.data());
      onednn_gemm(s, a.data(), b.data(), beta, fast.data());
      QVERIFY(difference(plain, fast) < 2e-5);
    }
  }

  void threads_do_not_share() {
    if (!onednn()) QSKIP("oneDNN is not installed");
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(t), sizes(1);  // the same sizes, other numbers
        for (int round = 0; round < 10; ++round) {
          const ConvolutionSizes z = random_sizes(sizes);
          Floats plain, fast;
          if (both(ConvolutionPhase::forward, z, random, plain, fast) && difference(plain, fast) > 2e-5) ++wrong;
        }
      });
    for (auto& thread : threads) thread.join();
    QCOMPARE(wrong.load(), 0);
  }

  void convolve_is_right_whatever_it_takes() {
    std::mt19937 random(7);
    for (int round = 0; round < 40; ++round) {
      const ConvolutionSizes z = random_sizes(random);
      const auto x = random_floats(z.n * z.c * z.h * z.w, random), y = random_floats(z.n * z.k * z.p * z.q, random),
                 w = random_floats(z.k * (z.c / z.groups) * z.r * z.s, random);
      for (const auto& [phase, name] : kPhases) {
        const bool f = phase == ConvolutionPhase::forward, d = phase == ConvolutionPhase::data;
        const auto &a = d ? w : x, &b = f ? w : y;
        auto plain = f ? y : d ? x : w, best = plain;
        Floats columns(static_cast<std::size_t>(z.c / z.groups * z.r * z.s * z.p * z.q));
        (f   ? convolution_forward
         : d ? convolution_data
             : convolution_filter)(z, gemm, a.data(), b.data(), plain.data(), columns.data());
        Floats scratch(static_cast<std::size_t>(convolution_scratch(phase, z)));
        convolve(phase, z, a.data(), b.data(), best.data(), scratch.data());
        QVERIFY2(difference(plain, best) < 2e-5, name);
      }
    }
  }

  void a_library_that_is_none_is_said() {
    QTemporaryDir folder;
    const std::string absent = folder.filePath("libdnnl.so.3").toStdString();
    const Onednn none(absent);
    QVERIFY(!none.loaded());
    QCOMPARE(none.missing, std::vector<std::string>{absent + ": not found"});
    QFile garbage(QString::fromStdString(absent));
    QVERIFY(garbage.open(QIODevice::WriteOnly) && garbage.write("no library") > 0);
    garbage.close();
    const Onednn broken(absent);
    QVERIFY(!broken.loaded());
    QVERIFY2(broken.missing.at(0).find("not found") == std::string::npos, broken.missing[0].c_str());
    const Onednn other("libc.so.6");
    QVERIFY(!other.loaded());
    QCOMPARE(other.missing, std::vector<std::string>{"libc.so.6: has no dnnl_version"});
  }

  void kernels_are_chosen_and_said() {
    const QString own = implementation(run_probe_with("own"));
    QCOMPARE(own, QString("built-in loops"));
    const auto wanted = run_probe_with("onednn"), automatic = run_probe_with("auto");
    if (onednn()) {
      QVERIFY2(implementation(wanted).startsWith("oneDNN "), qPrintable(implementation(wanted)));
      QCOMPARE(implementation(automatic), implementation(wanted));
      QCOMPARE(wanted.front()["libraries"].toArray()[0].toObject()["name"].toString(), QString("oneDNN"));
    } else {
      QVERIFY(!wanted.isEmpty());
      QCOMPARE(wanted.last()["type"].toString(), QString("error"));
      QVERIFY(wanted.last()["what"].toString().startsWith("oneDNN is not there"));
      QVERIFY(!implementation(automatic).isEmpty());
    }
  }

  void the_declarations_are_those_of_the_header() {
#ifdef TURNPOINT_HAVE_DNNL_HEADER
    QCOMPARE(dnnl::kF32, static_cast<int>(dnnl_f32));
    QCOMPARE(dnnl::kAnyLayout, static_cast<int>(dnnl_format_tag_any));
    QCOMPARE(dnnl::kCpu, static_cast<int>(dnnl_cpu));
    QCOMPARE(dnnl::kInOrder, static_cast<int>(dnnl_stream_in_order));
    QCOMPARE(dnnl::kForwardTraining, static_cast<int>(dnnl_forward_training));
    QCOMPARE(dnnl::kDirect, static_cast<int>(dnnl_convolution_direct));
    QCOMPARE(dnnl::kQuerySource, static_cast<int>(dnnl_query_src_md));
    QCOMPARE(dnnl::kQuerySourceGradient, static_cast<int>(dnnl_query_diff_src_md));
    QCOMPARE(dnnl::kQueryWeights, static_cast<int>(dnnl_query_weights_md));
    QCOMPARE(dnnl::kQueryWeightsGradient, static_cast<int>(dnnl_query_diff_weights_md));
    QCOMPARE(dnnl::kQueryResult, static_cast<int>(dnnl_query_dst_md));
    QCOMPARE(dnnl::kQueryResultGradient, static_cast<int>(dnnl_query_diff_dst_md));
    QCOMPARE(dnnl::kQueryScratch, static_cast<int>(dnnl_query_scratchpad_md));
    QCOMPARE(dnnl::kQueryName, static_cast<int>(dnnl_query_impl_info_str));
    QCOMPARE(dnnl::kSource, DNNL_ARG_SRC);
    QCOMPARE(dnnl::kResult, DNNL_ARG_DST);
    QCOMPARE(dnnl::kWeights, DNNL_ARG_WEIGHTS);
    QCOMPARE(dnnl::kScratch, DNNL_ARG_SCRATCHPAD);
    QCOMPARE(dnnl::kSourceGradient, DNNL_ARG_DIFF_SRC);
    QCOMPARE(dnnl::kResultGradient, DNNL_ARG_DIFF_DST);
    QCOMPARE(dnnl::kWeightsGradient, DNNL_ARG_DIFF_WEIGHTS);
    QCOMPARE(dnnl::kScratchOfUser, static_cast<int>(dnnl_scratchpad_mode_user));
    QCOMPARE(dnnl::kMostDims, DNNL_MAX_NDIMS);
    QCOMPARE(sizeof(dnnl::Argument), sizeof(dnnl_exec_arg_t));
    QCOMPARE(offsetof(dnnl::Argument, memory), offsetof(dnnl_exec_arg_t, memory));
#if DNNL_VERSION_MAJOR == 2
    QVERIFY(dnnl::kDescriptionRoom >= sizeof(dnnl_memory_desc_t));
    QVERIFY(dnnl::kOperationRoom >= sizeof(dnnl_convolution_desc_t));
#endif
#else
    QSKIP("oneDNN's header is not installed");
#endif
  }
};

QTEST_GUILESS_MAIN(OnednnTest)
#include "onednn_test.moc"
