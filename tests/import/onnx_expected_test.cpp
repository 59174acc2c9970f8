// SPDX-License-Identifier: Apache-2.0
// Real ONNX files against EXPECTED.csv: parameters and buffers exactly, multiply-accumulates within the stated bars.
#include <QtTest>
#include <cmath>
#include <fstream>
#include <map>

#include "core/import/source/model_source.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

/// file -> metric -> value, of the rows under onnx/.
std::map<std::string, std::map<std::string, double>> expected_values(const std::filesystem::path& folder) {
  std::map<std::string, std::map<std::string, double>> result;
  std::ifstream in(folder / "EXPECTED.csv");
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(','), second = line.find(',', first + 1), third = line.find(',', second + 1);
    if (line.rfind("onnx/", 0) != 0 || third == std::string::npos) continue;
    result[line.substr(0, first)][line.substr(first + 1, second - first - 1)] =
        std::atof(line.substr(second + 1, third - second - 1).c_str());
  }
  return result;
}

}  // namespace

class OnnxExpectedTest : public QObject {
  Q_OBJECT
 private slots:
  void real_files_bind() {
    REQUIRE_DATA(folder);
    // Branches, a local function, eight operator domains, unnamed nodes, opset 1.
    for (const char* name :
         {"silero_vad_16k_op15", "stream_swiglu_4096_4096_14336", "ultraface_rfb320", "burn_opset_01"}) {
      const auto source = open_onnx((folder / "onnx" / "real" / (std::string(name) + ".onnx")).string());
      QVERIFY2(source.has_value(), name);
      const auto model = (*source)->bind({4, 512});
      QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
      for (const auto& op : (*model)->operators)
        QVERIFY(op.kind != OperatorKind::opaque || op.detail == "TopK" || op.detail == "Gather" ||
                op.detail.find("Random") == 0);
    }
  }

  void files_data() {
    QTest::addColumn<QString>("file");
    const auto folder = test::data_folder();
    if (folder.empty()) {
      QTest::newRow("absent") << QString();
      return;
    }
    for (const auto& [file, metrics] : expected_values(folder)) {
      if (metrics.count("trainable_params")) QTest::newRow(file.c_str()) << QString::fromStdString(file);
    }
  }

  void files() {
    REQUIRE_DATA(folder);
    QFETCH(QString, file);
    const auto metrics = expected_values(folder)[file.toStdString()];
    const auto source = open_onnx((folder / file.toStdString()).string());
    QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
    const auto one = (*source)->bind({1, 0});
    QVERIFY2(one.has_value(), one ? "" : one.error().message().c_str());
    const auto many = (*source)->bind({32, 0});
    QVERIFY2(many.has_value(), many ? "" : many.error().message().c_str());
    const auto summary = summarise(**one), summary32 = summarise(**many);
    qInfo("%-42s operators %4lld parameters %10lld MACs %.4f G forward %.4f G backward, activations %.1f MB",
          qPrintable(file), static_cast<long long>(summary.operators), static_cast<long long>(summary.parameters),
          summary.macs_forward / 1e9, summary.macs_backward / 1e9, static_cast<double>(summary.activation_bytes) / 1e6);
    for (const auto& warning : (*one)->warnings) qInfo("  warning: %s", warning.c_str());
    QCOMPARE(summary.parameters, static_cast<std::int64_t>(metrics.at("trainable_params")));
    QCOMPARE(summary32.parameters, summary.parameters);
    if (metrics.count("bn_running_stats"))
      QCOMPARE(summary.buffers, static_cast<std::int64_t>(metrics.at("bn_running_stats")));
    if (metrics.count("fwd_GMAC_per_sample")) {
      const double forward = metrics.at("fwd_GMAC_per_sample") * 1e9;
      QVERIFY2(std::abs(summary.macs_forward / forward - 1) < 0.01,
               std::to_string(summary.macs_forward / forward).c_str());
    }
    if (metrics.count("bwd_GMAC_per_sample")) {
      const double backward = metrics.at("bwd_GMAC_per_sample") * 1e9;
      QVERIFY2(std::abs(summary.macs_backward / backward - 1) < 0.03,
               std::to_string(summary.macs_backward / backward).c_str());
    }
    // Per sample the work does not depend on the batch. (A model without a batch in its input has nothing to scale.)
    if (!QString(file).contains("swiglu"))
      QVERIFY(std::abs(summary32.macs_forward / (32 * summary.macs_forward) - 1) < 1e-12);
    const auto other = (*source)->bind({48, 0});
    QVERIFY(other.has_value() && (*other)->operators.size() == (*many)->operators.size());
    QCOMPARE((*many)->batch, std::int64_t{32});
  }
};

QTEST_APPLESS_MAIN(OnnxExpectedTest)
#include "onnx_expected_test.moc"
