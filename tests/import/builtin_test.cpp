// SPDX-License-Identifier: Apache-2.0
#include <QTest>
#include <cmath>
#include <map>
#include <set>

#include "core/import/source/model_source.h"

using namespace turnpoint;

namespace {

ModelPtr build(const std::string& specification, ModelBinding binding = {}) {
  const auto source = open_builtin(specification);
  if (!source) {
    qWarning("%s", source.error().message().c_str());
    return nullptr;
  }
  const auto model = (*source)->bind(binding);
  if (!model) {
    qWarning("%s", model.error().message().c_str());
    return nullptr;
  }
  return *model;
}

double gib(std::int64_t bytes) { return double(bytes) / 1073741824.0; }

/// Everything a planner relies on: accesses agree with shapes, producers and uses agree with each other.
bool consistent(const Model& model) {
  std::set<std::string> names;
  for (std::size_t o = 0; o < model.operators.size(); ++o) {
    const auto& op = model.operators[OperatorId(o)];
    if (!names.insert(op.name).second) return false;
    for (const auto* accesses : {&op.inputs, &op.outputs}) {
      for (const auto& access : *accesses) {
        const auto& tensor = model.tensors[access.tensor];
        if (access.walks.size() != tensor.shape.size()) return false;
        for (std::size_t d = 0; d < access.walks.size(); ++d) {
          if (access.walks[d].empty()) continue;
          std::int64_t size = 1;
          bool window = false;  // a stride makes the input a multiple of the positions that walk it
          for (const auto loop : access.walks[d]) {
            size *= op.dims.at(loop).size;
            window = window || op.dims.at(loop).role == DimRole::window;
          }
          if (window ? tensor.shape[d] % size != 0 : tensor.shape[d] != size) return false;
        }
      }
    }
    for (const auto& access : op.inputs) {
      const auto producer = model.tensors[access.tensor].producer;
      if (producer.valid() && producer.index >= o) return false;  // topological order
    }
    for (const auto& access : op.outputs)
      if (model.tensors[access.tensor].producer.index != o) return false;
  }
  return true;
}

}  // namespace

class BuiltinTest : public QObject {
  Q_OBJECT

 private slots:
  void published_counts_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<qint64>("parameters");
    // torchvision's counts; Hugging Face's for the language models; Keras' trainable ones for NASNet, the pretrained
    // models of the PyTorch zoos for PNASNet; MLPerf's logs for NCF and GNMT. LeNet, the LSTM and Transformer-big by
    // layer formulas.
    const std::map<const char*, qint64> counts = {{"resnet18", 11689512},
                                                  {"resnet34", 21797672},
                                                  {"resnet50", 25557032},
                                                  {"vgg11", 132863336},
                                                  {"vgg13", 133047848},
                                                  {"vgg16", 138357544},
                                                  {"vgg19", 143667240},
                                                  {"alexnet", 61100840},
                                                  {"lenet", 61706},
                                                  {"gpt2", 124439808},
                                                  {"bert-large", 335141888},
                                                  {"llama-2-7b", 6738415616},
                                                  {"lstm-lm", 66034000},
                                                  {"inception-v3", 23834568},
                                                  {"llama-2-70b", 68976648192},
                                                  {"mixtral-8x7b", 46702792704},
                                                  {"nasnet-large", 88753150},
                                                  {"pnasnet-large", 86057668},
                                                  {"ncf", 31832577},
                                                  {"gnmt", 160671297},
                                                  {"transformer-big", 210804736}};
    for (const auto& [name, count] : counts) QTest::newRow(name) << name << count;
  }
  void published_counts() {
    QFETCH(QString, name);
    QFETCH(qint64, parameters);
    const auto model = build(name.toStdString());
    QVERIFY(model);
    QCOMPARE(model->parameters, std::int64_t(parameters));
    QCOMPARE(model->batch, std::int64_t(256));
  }

  // Table of the ParDNN study: billions of parameters, to the digits printed there. TRN's 1.97 is cut, not rounded; the
  // study does not say how many cells E3D has.
  void pardnn_models_have_the_study_sizes_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<double>("printed");
    QTest::addColumn<double>("tolerance");
    QTest::newRow("word-rnn") << "word-rnn" << 0.44 << 0.005;
    QTest::newRow("word-rnn-2") << "word-rnn-2" << 1.28 << 0.005;
    QTest::newRow("char-crn") << "char-crn" << 0.23 << 0.005;
    QTest::newRow("char-crn-2") << "char-crn-2" << 1.09 << 0.005;
    QTest::newRow("wrn") << "wrn" << 1.91 << 0.005;
    QTest::newRow("wrn-2") << "wrn-2" << 3.77 << 0.007;
    QTest::newRow("trn") << "trn" << 1.97 << 0.01;
    QTest::newRow("trn-2") << "trn-2" << 5.1 << 0.05;
    QTest::newRow("e3d") << "e3d" << 0.95 << 0.027;
    QTest::newRow("e3d-2") << "e3d-2" << 2.4 << 0.05;
  }
  void pardnn_models_have_the_study_sizes() {
    QFETCH(QString, name);
    QFETCH(double, printed);
    QFETCH(double, tolerance);
    const double billions = double(build(name.toStdString(), {2, 0})->parameters) / 1e9;
    QVERIFY2(std::abs(billions - printed) <= tolerance, qPrintable(QString::number(billions)));
  }

  // Convolutions the study counts in WRN, and what its names stand for.
  void pardnn_models_have_the_study_depths() {
    const auto count = [](const char* name, OperatorKind kind) {
      const auto model = build(name, {2, 0});
      return std::count_if(model->operators.begin(), model->operators.end(),
                           [&](const Operator& op) { return op.kind == kind; });
    };
    QCOMPARE(count("wrn", OperatorKind::convolution), 610);
    QCOMPARE(count("wrn-2", OperatorKind::convolution), 304);
    QCOMPARE(count("word-rnn", OperatorKind::recurrent), 10);
    QCOMPARE(count("char-crn-2", OperatorKind::recurrent), 32);
    QCOMPARE(count("e3d", OperatorKind::recurrent), 11);
  }

  // Layer formulas, written down apart from the graphs.
  void counts_follow_the_layer_formulas() {
    const std::int64_t h = 64, words = 32000, lstm = 8 * h * h + 8 * h;
    const std::int64_t attention = 2 * h * h + 2 * h + 1;
    QCOMPARE(build("nmt-2?hidden=64", {2, 0})->parameters,
             words * h + 3 * lstm + (lstm + 4 * h * h) + attention + words * h + words);
    QCOMPARE(build("ncf?hidden=8&width=32&layers=2", {2, 0})->parameters,
             (138493 + 26744) * (8 + 16) + (32 * 32 + 32) + (32 * 16 + 16) + (8 + 16 + 1));
    // Four products of attention without biases, twice in the decoder, an MLP with biases, norms before each branch and
    // after each stack; the words once.
    for (const std::int64_t layers : {1, 3}) {
      const std::int64_t d = 128, inner = 512, mlp = 2 * d * inner + inner + d, norm = 2 * d;
      const std::int64_t encoder = 4 * d * d + mlp + 2 * norm, decoder = 8 * d * d + mlp + 3 * norm;
      const auto model = build("transformer-big?hidden=128&layers=" + std::to_string(layers), {2, 0});
      QCOMPARE(model->parameters, 33708 * d + layers * (encoder + decoder) + 2 * norm);
    }
    const std::int64_t c = 32, k = 2 * 25;
    const std::int64_t cell = 17 * k * c * c + 2 * c * c, first = 10 * k * c * c + 7 * k * c * 16 + 2 * c * c;
    QCOMPARE(build("e3d?hidden=32&layers=3", {2, 0})->parameters, first + 2 * cell + 16 * c);
    const auto mixtral = build("mixtral-8x7b?layers=2", {2, 0});
    QCOMPARE(mixtral->parameters - mixtral->active_parameters, std::int64_t(2) * 6 * 3 * 4096 * 14336);
    QCOMPARE(build("mixtral-8x7b", {1, 0})->active_parameters, std::int64_t(12879925248));
    QCOMPARE(build("trn?layers=1&hidden=64&width=128", {2, 0})->parameters,
             32000 * h + 9 * (h * h + h) + 2 * (2 * 64 * 128 + 128 + 64) + 5 * 2 * h);
  }

  // Wu et al. 2016: residual connections start with the third layer from the bottom, in encoder and decoder.
  void translation_adds_from_the_third_layer_on() {
    for (const char* name : {"gnmt?hidden=64&layers=5", "nmt-2?hidden=64&layers=5"}) {
      const auto model = build(name, {2, 0});
      QVERIFY2(model, name);
      std::set<std::string> sums;
      for (const auto& op : model->operators)
        if (op.detail == "Add") sums.insert(op.name);
      QVERIFY2((sums == std::set<std::string>{"encoder/layer2/add", "encoder/layer3/add", "encoder/layer4/add",
                                              "decoder/layer2/add", "decoder/layer3/add", "decoder/layer4/add"}),
               name);
    }
  }

  void cells_multiply_as_published() {
    // imgclsmob's list: 23,976 M and 25,141 M, which count poolings and norms too.
    QVERIFY(std::abs(summarise(*build("nasnet-large", {1, 0})).macs_forward / 23976.44e6 - 1) < 0.012);
    QVERIFY(std::abs(summarise(*build("pnasnet-large", {1, 0})).macs_forward / 25140.77e6 - 1) < 0.012);
  }

  // One step of the E3D cell, by hand: products at every position and the recall of all states before.
  void e3d_macs_follow_the_closed_formula() {
    const double n = 3, t = 5, c = 32, positions = 512, k = 50;
    const auto summary = summarise(*build("e3d?hidden=32&layers=1&sequence=5", {3, 0}));
    const double products = n * t * positions * (10 * k * c * c + 7 * k * c * 16 + 2 * c * c + c * 16);
    const double recall = n * (1 + 2 + 3 + 4 + 5) * 2 * positions * positions * c;
    QCOMPARE(summary.macs_forward, products + recall);
    // Twice, but for the gradient of the frames, which nobody needs.
    QCOMPARE(summary.macs_backward, 2 * (products + recall) - n * t * positions * 7 * k * c * 16);
  }

  void every_model_is_consistent() {
    for (const auto& entry : builtin_models()) {
      const auto model = build(entry.name, {16, 0});
      QVERIFY2(model, entry.name.c_str());
      QVERIFY2(consistent(*model), entry.name.c_str());
      QCOMPARE(model->name, entry.name);
      QCOMPARE(model->source, "builtin:" + entry.name);
      QVERIFY(!entry.description.empty());
      for (const auto& tensor : model->tensors)
        QVERIFY2(tensor.role != TensorRole::parameter || tensor.requires_gradient, tensor.name.c_str());
      QCOMPARE(model->warnings.size(), std::size_t(0));
      // Every parameter is used, and all work scales with the batch.
      for (std::size_t t = 0; t < model->tensors.size(); ++t)
        if (model->tensors[TensorId(t)].role == TensorRole::parameter) QVERIFY(!model->uses[TensorId(t)].empty());
      const auto twice = build(entry.name, {32, 0});
      QCOMPARE(summarise(*twice).macs_forward, 2 * summarise(*model).macs_forward);
      QCOMPARE(twice->parameters, model->parameters);
    }
  }

  // Table 1 of the TensorOpt study: parameters in GiB of fp32, to the digits printed there.
  void study_models_have_the_study_sizes() {
    const auto size = [](const char* name) { return gib(summarise(*build(name, {256, 0})).parameter_bytes); };
    QVERIFY(std::abs(size("rnn") - 108) < 0.5);
    QVERIFY(std::abs(size("wide-resnet") - 7.3) < 0.05);
    QVERIFY(std::abs(size("transformer") - 9.7) < 0.05);
    QVERIFY(std::abs(size("transformer-s") - 4.8) < 0.05);
    QVERIFY(std::abs(size("vgg16") - 0.52) < 0.005);
  }

  // The same table's memory column: parameters and kept tensors at batch 256. Its VGG16 (30) keeps both sides of every
  // relu, which backward does not need; ours keeps one.
  void study_models_come_near_the_study_memory() {
    const auto total = [](const char* name) {
      const auto s = summarise(*build(name, {256, 0}));
      return gib(s.parameter_bytes) + gib(s.activation_bytes);
    };
    for (const char* name : {"rnn", "wide-resnet", "transformer", "vgg16"}) qInfo("%s: %.1f GiB", name, total(name));
    QVERIFY(std::abs(total("rnn") / 126 - 1) < 0.05);
    QVERIFY(std::abs(total("wide-resnet") / 83 - 1) < 0.05);
    QVERIFY(std::abs(total("transformer") / 74 - 1) < 0.05);
    QVERIFY(total("vgg16") > 13 && total("vgg16") < 30);
  }

  // Forward and backward multiply-accumulates measured on the reference implementations (G = 1e9), per sample.
  void measured_macs() {
    const auto check = [](const char* name, double forward, double backward) {
      const auto s = summarise(*build(name, {1, 0}));
      QVERIFY2(std::abs(s.macs_forward / 1e9 / forward - 1) < 0.001, name);
      QVERIFY2(std::abs(s.macs_backward / 1e9 / backward - 1) < 0.003, name);
    };
    check("resnet50", 4.0892, 8.0604);
    check("vgg16", 15.4703, 30.8538);
    check("alexnet", 0.7142, 1.3581);
  }

  // Inception v3 is usually quoted with 5.7 G multiply-accumulates.
  void macs_of_inception() {
    const auto s = summarise(*build("inception-v3", {1, 0}));
    QVERIFY2(std::abs(s.macs_forward / 1e9 - 5.71) < 0.01, qPrintable(QString::number(s.macs_forward)));
    QVERIFY(s.macs_backward < 2 * s.macs_forward);
  }

  // Closed formulas: 2-layer forms of the sums over weights times the positions that use them.
  void macs_of_language_models() {
    const double h = 768, s = 1024, layers = 12, vocabulary = 50257, batch = 4;
    const double forward = batch * s * (layers * (12 * h * h + 2 * s * h) + h * vocabulary);
    const auto gpt2 = summarise(*build("gpt2", {4, 0}));
    QCOMPARE(gpt2.macs_forward, forward);
    QCOMPARE(gpt2.macs_backward, 2 * forward);
    const double steps = 4 * 35, lstm = steps * (2 * 8 * 1500.0 * 1500 + 1500.0 * 10000);
    QCOMPARE(summarise(*build("lstm-lm", {4, 0})).macs_forward, lstm);
    // Llama's MLP has three matrices; with 8 key heads of 64, keys and values are an eighth.
    const double w = 8192, t = 512;
    const double llama = t * (80 * (2 * w * w + 2 * w * w / 8 + 3 * w * 28672 + 2 * t * w) + w * 32000);
    QCOMPARE(summarise(*build("llama-2-70b", {1, 512})).macs_forward, llama);
  }

  void parameters_change_the_network() {
    QCOMPARE(build("gpt2?layers=24&hidden=1024")->parameters,
             std::int64_t(354823168));  // GPT-2 medium's published count
    const auto model = build("transformer?batch=8&sequence=32");
    QCOMPARE(model->batch, std::int64_t(8));
    QCOMPARE(model->sequence, std::int64_t(32));
    // What is asked of bind wins over the name.
    QCOMPARE(build("transformer?batch=8", {16, 0})->batch, std::int64_t(16));
    QCOMPARE((*open_builtin("transformer?batch=8"))->chosen_batch(), std::int64_t(8));
    QCOMPARE((*open_builtin("transformer?sequence=8"))->chosen_batch(), std::int64_t(0));
    QCOMPARE(build("wide-resnet?layers=101&width=128")->parameters, std::int64_t(126886696));  // wide_resnet101_2
    QCOMPARE(build("resnet50?width=128")->parameters, std::int64_t(68883240));                 // wide_resnet50_2
    QVERIFY(build("llama-2-7b?hidden=5120&layers=40")->parameters == 13015864320);             // Llama 2 13B
    QCOMPARE(build("resnet50?layers=101")->parameters, std::int64_t(44549160));
    QCOMPARE(build("resnet18?layers=152")->parameters, std::int64_t(60192808));
    QCOMPARE(build("vgg11?layers=19")->parameters, std::int64_t(143667240));
    QCOMPARE(build("vgg16?hidden=1024&width=16", {1, 0})->parameters,
             build("vgg16", {1, 0})->parameters - std::int64_t(14714688) - (25088 * 4096 + 4096 * 4096 + 2 * 4096) -
                 4096 * 1000 + (920784 + (6272 * 1024 + 1024 * 1024 + 2 * 1024) + 1024 * 1000));
    const auto vision = build("vgg16", {1, 128});
    QCOMPARE(vision->warnings.size(), std::size_t(1));
  }

  void wrong_usage_data() {
    QTest::addColumn<QString>("specification");
    QTest::addColumn<QString>("message");
    const auto row = [](const char* specification, const char* message) {
      QTest::newRow(specification) << specification << message;
    };
    row("resnet5", "unknown built-in model 'resnet5' (did you mean 'builtin:resnet50'?)");
    row("", "unknown built-in model ''");
    row("gnmt-2", "unknown built-in model 'gnmt-2'");
    row("gnmt?layers=1", "layers must be at least 2, not 1");
    row("mixtral-8x7b?hidden=1152", "hidden 1152 is not a multiple of 8 key-value heads of 128 channels");
    row("mixtral-8x7b?experts=4", "unknown parameter 'experts'; mixtral-8x7b accepts layers, hidden, width, batch");
    row("nasnet-large?layers=17", "layers must be a multiple of 3, not 17");
    row("nasnet-large?width=30", "width must be a multiple of 4, not 30");
    row("pnasnet-large?layers=4", "layers must be a multiple of 3, not 4");
    row("ncf?width=33", "width 33 cannot be halved 3 times");
    row("ncf?layers=4096", "width 256 cannot be halved 4096 times");
    row("e3d?width=3", "unknown parameter 'width'; e3d accepts layers, hidden, batch, sequence");
    row("e3d?hidden=1048576&layers=4096&batch=16777216&sequence=16777216", "too large");
    row("gnmt?hidden=1048576&layers=4096&batch=16777216&sequence=16777216", "too large");
    row("char-crn?hidden=1048576&layers=4096&batch=16777216&sequence=16777216", "too large");
    row("resnet50?layers=51", "layers must be 18, 34, 50, 101 or 152, not 51");
    row("gpt2?layer=12",
        "unknown parameter 'layer'; gpt2 accepts layers, hidden, width, batch, sequence (did you mean 'layers'?)");
    row("vgg16?layers=3", "layers must be 11, 13, 16 or 19, not 3");
    row("inception-v3?layers=3", "unknown parameter 'layers'; inception-v3 accepts batch");
    row("gpt2?", "unknown parameter ''");
    row("gpt2?layers", "parameter layers must be a whole number between 1 and 4096, not ''");
    row("gpt2?layers=-1", "not '-1'");
    row("gpt2?layers=1e3", "not '1e3'");
    row("gpt2?layers=99999999999999999999", "must be a whole number between");
    row("gpt2?hidden=100", "hidden 100 is not a multiple of 64 channels a head");
    row("transformer?hidden=100", "hidden 100 is not a multiple of its 32 heads");
    row("gpt2?sequence=1025", "sequence 1025 is longer than the model's 1024 learned positions");
    row("wide-resnet?layers=18", "layers must be 50, 101 or 152, not 18");
    row("rnn?hidden=1048576&layers=4096&batch=16777216&sequence=16777216", "too large");
    row("llama-2-7b?batch=16777216&sequence=16777216", "too large");
  }
  void wrong_usage() {
    QFETCH(QString, specification);
    QFETCH(QString, message);
    const auto source = open_builtin(specification.toStdString());
    Error error;
    if (source) {
      const auto model = (*source)->bind({});
      QVERIFY(!model.has_value());
      error = model.error();
    } else {
      error = source.error();
    }
    QCOMPARE(error.code, ErrorCode::usage);
    QVERIFY2(error.message().find(message.toStdString()) != std::string::npos, error.message().c_str());
  }

  void bindings_out_of_range() {
    for (const ModelBinding binding : {ModelBinding{-1, 0}, ModelBinding{1, -5}, ModelBinding{std::int64_t(1) << 60, 0},
                                       ModelBinding{1, std::int64_t(1) << 60}})
      QCOMPARE((*open_builtin("transformer"))->bind(binding).error().code, ErrorCode::usage);
  }

  // The largest graph of all is built in a blink: the window rebuilds models while the user types.
  void building_is_fast() {
    QBENCHMARK_ONCE { QVERIFY(build("llama-2-70b", {256, 2048})); }
  }
};

QTEST_APPLESS_MAIN(BuiltinTest)
#include "builtin_test.moc"
