// SPDX-License-Identifier: Apache-2.0
// Files that are no models are named for what they are, with the way out; stored weights are counted.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "core/import/files/foreign_file.h"
#include "core/import/files/safetensors.h"
#include "core/import/source/model_source.h"

using namespace turnpoint;

namespace {

std::string stored(std::string header, std::size_t data = 0) {
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + std::string(data, '\0');
}

}  // namespace

class ForeignFileTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  std::string write(const char* name, const std::string& contents) {
    const std::string path = folder_.filePath(name).toStdString();
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }

 private slots:
  void kinds_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("words");
    const auto row = [](const char* name, QByteArray bytes, const char* words) {
      QTest::newRow(name) << bytes + QByteArray(64, '\1') << QString(words);
    };
    row("gguf", "GGUF\3", "is a GGUF file");
    row("pth", QByteArray("PK\3\4", 4) + "archive/data.pkl", "is a PyTorch checkpoint");
    row("torchscript", QByteArray("PK\3\4", 4) + "m/data.pkl m/code/__torch__.py", "is a TorchScript module");
    row("pt2", QByteArray("PK\3\4", 4) + "serialized_exported_program.json", "is a program of torch.export (.pt2) that is cut off");
    row("keras", QByteArray("PK\3\4", 4) + "metadata.json config.json", "is a Keras model");
    row("npz", QByteArray("PK\3\4", 4) + "w.npy", "is a NumPy archive");
    row("h5", "\x89HDF\r\n\x1a\n", "is an HDF5 file");
    row("tflite", QByteArray("\x1c\0\0\0TFL3", 8), "is a TensorFlow Lite model");
    row("tensorrt", "ftrt", "is a TensorRT engine");
    row("pickle", "\x80\4\x95", "is a Python pickle");
    row("mlir", "ML\xefR", "is MLIR bytecode");
    row("gzip", "\x1f\x8b\x08", "is compressed with gzip");
    row("lfs", "version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer");
    row("html", "\n<!DOCTYPE html><html>", "is a web page");
    QTest::newRow("stablehlo") << QByteArray("module @jit_f {\n func.func public @main() { stablehlo.add }\n}\n")
                               << "is a StableHLO program as text";
    QTest::newRow("lora") << QByteArray(R"({"peft_type": "LORA", "base_model_name_or_path": "org/base"})")
                          << "open the config.json of its base model, org/base";
    QTest::newRow("diffusers") << QByteArray(R"({"_class_name": "UNet2DConditionModel", "_diffusers_version": "0.30"})")
                               << "is a diffusers configuration (UNet2DConditionModel)";
    QTest::newRow("keras json") << QByteArray(R"({"class_name": "Functional", "config": {}})")
                                << "is a Keras architecture";
  }

  void kinds() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, words);
    // The name says nothing: people rename what they download.
    const auto source = open_model(write("model.onnx", bytes.toStdString()));
    QVERIFY(!source.has_value());
    QCOMPARE(source.error().code, ErrorCode::bad_input);
    const auto message = QString::fromStdString(source.error().message());
    QVERIFY2(message.contains(words), qPrintable(message));
    QVERIFY2(!message.contains("damaged"), qPrintable(message));
    QVERIFY2(!message.contains('\n'), qPrintable(message));
  }

  void models_are_not_foreign() {
    QVERIFY(!foreign_kind(R"({"model_type": "gpt2", "n_layer": 1, "transformers_version": "5", "eos_token_id": 1})"));
    QVERIFY(!foreign_kind(""));
    QVERIFY(!foreign_kind(std::string("\x08\x08\x12\x07pytorch", 11)));
  }

  void weights_alone_are_counted() {
    const auto path = write("alone/model.safetensors", stored(R"({"__metadata__": {"format": "pt"},
      "a.weight": {"dtype": "BF16", "shape": [3, 5], "data_offsets": [0, 30]},
      "a.running_mean": {"dtype": "F32", "shape": [7], "data_offsets": [30, 58]},
      "r.inv_freq": {"dtype": "F32", "shape": [4], "data_offsets": [58, 74]},
      "q": {"dtype": "I8", "shape": [11], "data_offsets": [74, 85]}})"));
    const auto source = open_model(path);
    QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
    const auto model = (*source)->bind({});
    QVERIFY(model.has_value());
    QCOMPARE((*model)->parameters, std::int64_t(15));
    QCOMPARE((*model)->buffers, std::int64_t(7));
    QCOMPARE(summarise(**model).parameters, std::int64_t(15));
    QVERIFY((*model)->warnings.at(0).find("weights have no graph") == 0);
    QCOMPARE((*model)->warnings.at(1), std::string("stored elements: 15 BF16, 11 F32, 11 I8"));
    QVERIFY((*model)->warnings.at(2).find("11 stored integers") == 0);
  }

  void a_config_beside_weights_is_the_graph() {
    write("beside/config.json",
          R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 64, "n_head": 2, "vocab_size": 100})");
    const auto config = (*open_model(folder_.filePath("beside/config.json").toStdString()))->bind({2, 16});
    const auto wanted = (*config)->parameters;
    const auto header = [](std::int64_t count) {
      return stored(R"({"w": {"dtype": "F32", "shape": [)" + std::to_string(count) + R"(], "data_offsets": [0, 0]}})");
    };
    for (const std::int64_t more : {0, 1}) {
      write("beside/part.safetensors", header(wanted + more));
      const auto index =
          write("beside/model.safetensors.index.json", R"({"metadata": {}, "weight_map": {"w": "part.safetensors"}})");
      const auto source = open_model(index);
      QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
      const auto model = (*source)->bind({2, 16});
      QVERIFY(!(*model)->operators.empty());
      const bool said = (*model)->warnings.front().find("the stored weights hold") == 0;
      QCOMPARE(said, more == 1);
    }
  }

  void hostile_headers_are_refused() {
    const auto refused = [&](const std::string& bytes, const char* part) {
      const auto source = open_model(write("bad.safetensors", bytes));
      QVERIFY(!source.has_value());
      QVERIFY2(source.error().message().find(part) != std::string::npos, source.error().message().c_str());
    };
    refused(stored(R"({"w": {"dtype": "F32", "shape": [-1]}})"), "impossible dimension");
    refused(stored(R"({"w": {"dtype": "F32", "shape": [9000000000, 9000000000]}})"), "more than 2^60");
    refused(stored(R"({"w": 3})"), "has no dtype and shape");
    refused(stored("{}"), "holds no tensors");
    refused(stored("{{"), "header");
    const auto index = open_model(write("x.index.json", R"({"weight_map": {"w": "../../etc/passwd"}})"));
    QVERIFY(index.error().message().find("outside its folder") != std::string::npos);
    const auto absent = open_model(write("y.index.json", R"({"weight_map": {"w": "nowhere.safetensors"}})"));
    QVERIFY(absent.error().message().find("the index beside it") != std::string::npos);
    const auto adapter =
        open_model(write("a.safetensors", stored(R"({"l.lora_A.weight": {"dtype": "F32", "shape": [8]}})")));
    QVERIFY(adapter.error().message().find("LoRA adapter") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(ForeignFileTest)
#include "foreign_file_test.moc"
