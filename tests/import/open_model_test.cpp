// SPDX-License-Identifier: Apache-2.0
#include <QTemporaryDir>
#include <QTest>
#include <fstream>

#include "core/import/source/model_source.h"
#include "test_data.h"

using namespace turnpoint;

class OpenModelTest : public QObject {
  Q_OBJECT

  std::string write(const QTemporaryDir& folder, const char* name, const std::string& contents) {
    const std::string path = folder.filePath(name).toStdString();
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }
  static constexpr const char* kConfig = R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 64, "n_head": 2})";

 private slots:
  void builtins_by_prefix() {
    QCOMPARE((*open_model("builtin:lenet"))->name(), std::string("lenet"));
    QCOMPARE(open_model("builtin:lenot").error().code, ErrorCode::usage);
    // Without the prefix it is a path, and the message helps.
    QCOMPARE(open_model("lenet").error().message(), std::string("lenet: no such file (did you mean 'builtin:lenet'?)"));
    QCOMPARE(open_model("").error().code, ErrorCode::usage);
  }

  // The name says nothing: a config called .onnx is still a config.
  void content_decides() {
    QTemporaryDir folder;
    for (const char* name : {"a.json", "b.onnx", "c"}) {
      const auto source = open_model(write(folder, name, kConfig));
      QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
    }
    QVERIFY(open_model(write(folder, "bom.json", std::string("\xef\xbb\xbf \n") + kConfig)).has_value());
    QVERIFY(open_model(write(folder, "empty.json", "")).error().message().find("the file is empty") !=
            std::string::npos);
    QVERIFY(open_model(write(folder, "notes.txt", "a model of mine\n")).error().message().find("is neither") !=
            std::string::npos);
    QCOMPARE(open_model(write(folder, "noise.onnx", std::string("\x01\xff\x02\x00\x80", 5))).error().code,
             ErrorCode::bad_input);
  }

  void folders() {
    QTemporaryDir folder;
    const std::string path = folder.path().toStdString();
    QVERIFY(open_model(path).error().message().find("holds neither") != std::string::npos);
    write(folder, "one.onnx", kConfig);
    QVERIFY(open_model(path).has_value());
    write(folder, "two.onnx", kConfig);
    QVERIFY(open_model(path).error().message().find("holds 2 .onnx files") != std::string::npos);
    write(folder, "config.json", kConfig);
    QCOMPARE((*open_model(path))->source(), path + "/config.json");
  }

  void real_files() {
    REQUIRE_DATA(data);
    QVERIFY(open_model((data / "hf_config/gpt2.json").string()).has_value());
    const auto onnx = open_model((data / "onnx/light/light_squeezenet.onnx").string());
    QVERIFY2(onnx.has_value(), onnx ? "" : onnx.error().message().c_str());
    const auto model = (*onnx)->bind({});
    QVERIFY(model.has_value());
    QCOMPARE((*model)->parameters, std::int64_t(1235496));
    QCOMPARE((*model)->batch, kDefaultBatch);
  }
};

QTEST_APPLESS_MAIN(OpenModelTest)
#include "open_model_test.moc"
