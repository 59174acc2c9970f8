// SPDX-License-Identifier: Apache-2.0
#include <QTest>
#include <cmath>
#include <map>
#include <set>

#include "core/import/model_source.h"

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
    // torchvision's counts; Hugging Face's for the language models; LeNet and the LSTM by their layer formulas.
    const std::map<const char*, qint64> counts = {
        {"resnet18", 11689512}, {"resnet34", 21797672},     {"resnet50", 25557032},      {"vgg11", 132863336},
        {"vgg13", 133047848},   {"vgg16", 138357544},       {"vgg19", 143667240},        {"alexnet", 61100840},
        {"lenet", 61706},       {"gpt2", 124439808},        {"bert-large", 335141888},   {"llama-2-7b", 6738415616},
        {"lstm-lm", 66034000},  {"inception-v3", 23834568}, {"llama-2-70b", 68976648192}};
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
    row("gnmt", "'gnmt' is not built yet");
    row("mixtral-8x7b?batch=3", "not built yet");
    row("gpt2?layer=12",
        "unknown parameter 'layer'; gpt2 accepts layers, hidden, width, batch, sequence (did you mean 'layers'?)");
    row("vgg16?layers=3", "unknown parameter 'layers'; vgg16 accepts batch");
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
