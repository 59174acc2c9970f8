// SPDX-License-Identifier: Apache-2.0
// Real TensorFlow files against EXPECTED.csv (what they hold) and against counts by hand (what they mean).
#include <QtTest>
#include <fstream>
#include <map>

#include "core/import/source/mapped_file.h"
#include "core/import/source/model_source.h"
#include "core/import/tensorflow/tensorflow_source.h"
#include "processor_clock.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

std::map<std::string, std::map<std::string, std::size_t>> expected_counts(const std::filesystem::path& folder) {
  std::map<std::string, std::map<std::string, std::size_t>> result;
  std::ifstream in(folder / "EXPECTED.csv");
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(','), second = line.find(',', first + 1), third = line.find(',', second + 1);
    if (line.rfind("tf/", 0) != 0 || third == std::string::npos) continue;
    result[line.substr(0, first)][line.substr(first + 1, second - first - 1)] =
        std::stoul(line.substr(second + 1, third - second - 1));
  }
  return result;
}

}  // namespace

class TensorflowExpectedTest : public QObject {
  Q_OBJECT
 private slots:
  void counts() {
    REQUIRE_DATA(folder);
    const auto expected = expected_counts(folder);
    QCOMPARE(expected.size(), std::size_t{4});
    for (const auto& [file, metrics] : expected) {
      const auto path = (folder / file).string();
      const auto mapped = onnx::MappedFile::open(path);
      QVERIFY(mapped.has_value());
      const auto counts = count_tensorflow(mapped->bytes(), path);
      QVERIFY2(counts.has_value(), counts ? "" : counts.error().message().c_str());
      for (const auto& [metric, value] : metrics) {
        const auto found = metric == "nodes"                 ? counts->nodes
                           : metric == "inputs_incl_control" ? counts->inputs
                           : metric == "library_functions"   ? counts->library_functions
                                                             : std::size_t{0} - 1;
        QVERIFY2(found == value, (file + " " + metric + ": " + std::to_string(found)).c_str());
      }
    }
    const auto path = (folder / "tf/msra_quantize_train_graph.pbtxt").string();
    const auto mapped = onnx::MappedFile::open(path);
    QCOMPARE(count_tensorflow(mapped->bytes(), path)->library_functions, std::size_t{2});
  }

  // An unrolled LSTM of 28 steps: kernel [28 + 128, 512] and bias, then [128, 10] and bias.
  void unrolled_lstm() {
    REQUIRE_DATA(folder);
    const auto source = open_model((folder / "tf/lstm_frozen.pb").string());
    QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
    const auto model = (*source)->bind({5, 0});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const auto summary = summarise(**model);
    QCOMPARE(summary.parameters, std::int64_t{156 * 512 + 512 + 128 * 10 + 10});
    QCOMPARE(summary.macs_forward, 5.0 * (28 * 156 * 512 + 1280));
    QCOMPARE((*model)->tensors[(*model)->results.at(0)].shape, (std::vector<std::int64_t>{5, 10}));
    const auto& ops = (*model)->operators;
    QCOMPARE(std::count_if(ops.begin(), ops.end(), [](const auto& op) { return op.kind == OperatorKind::recurrent; }),
             1);
    QVERIFY((*model)->warnings.size() == 1 && (*model)->warnings[0].find("keep_prob") != std::string::npos);
  }

  // Keyword spotting: six convolutions over time, one of them dilated by way of SpaceToBatchND; 40 features per frame.
  void keyword_spotting() {
    REQUIRE_DATA(folder);
    const auto source = open_model((folder / "tf/hey_snips_3.pb").string());
    QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
    const auto model = (*source)->bind({1, 100});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const std::int64_t weights[] = {5 * 40 * 128, 5 * 128 * 128, 3 * 128 * 128, 128 * 128, 128 * 128, 128 * 5};
    // 100 frames: 96 after the first five taps, 92 after the second, 66 after three taps 13 frames apart.
    const std::int64_t frames[] = {96, 92, 66, 66, 66, 66};
    std::int64_t parameters = 5 * 128 + 5, macs = 0;
    for (int k = 0; k < 6; ++k) {
      parameters += weights[k];
      macs += weights[k] * frames[k];
    }
    const auto summary = summarise(**model);
    QCOMPARE(summary.parameters, parameters);
    QCOMPARE(summary.macs_forward, static_cast<double>(macs));
    QCOMPARE((*model)->tensors[(*model)->results.at(0)].shape, (std::vector<std::int64_t>{66, 5}));
  }

  // A training graph: gradients, Adam, assignments and summaries are no part of the network.
  void training_graph() {
    REQUIRE_DATA(folder);
    const turnpoint::test::ProcessorClock timer;
    const auto source = open_model((folder / "tf/msra_quantize_train_graph.pbtxt").string());
    QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
    qInfo("training graph of 4 MB opened in %lld ms", static_cast<long long>(timer.elapsed()));
    QVERIFY(timer.elapsed() < 5000);
    const auto model = (*source)->bind({64, 0});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const auto summary = summarise(**model);
    QCOMPARE(summary.parameters, std::int64_t{256 * 128 + 128 + 128 * 16 + 16});
    QCOMPARE(summary.macs_forward, 64.0 * (256 * 128 + 128 * 16));
    QCOMPARE(summary.macs_backward, 64.0 * (256 * 128 + 2 * 128 * 16));
    QCOMPARE((*model)->symbolic_dimensions, std::vector<std::string>{"batch"});
    std::size_t dropouts = 0;
    for (const auto& op : (*model)->operators) {
      QVERIFY2(op.name.find("gradients") == std::string::npos && op.name.find("Assign") == std::string::npos,
               op.name.c_str());
      dropouts += op.detail == "Dropout" ? 1 : 0;
    }
    QCOMPARE(dropouts, std::size_t{1});
  }

  void weights_elsewhere() {
    REQUIRE_DATA(folder);
    const auto source = open_model((folder / "tf/opencv_ssd_text.pbtxt").string());
    QVERIFY(!source.has_value());
    const auto message = source.error().message();
    QVERIFY2(message.find("406 inputs name tensors that the file does not hold") != std::string::npos, message.c_str());
    QCOMPARE(source.error().code, ErrorCode::bad_input);
  }
};

QTEST_APPLESS_MAIN(TensorflowExpectedTest)
#include "tensorflow_expected_test.moc"
