// SPDX-License-Identifier: Apache-2.0
// Models with another hidden size: as built-in networks and config files say it themselves.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "core/import/huggingface/huggingface.h"
#include "core/import/source/hidden_size.h"

using namespace turnpoint;

namespace {

std::int64_t parameters_of(const Expected<ModelSourcePtr>& source) {
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto model = (*source)->bind({2, 16});
  if (!model) qFatal("%s", model.error().message().c_str());
  return (*model)->parameters;
}

constexpr const char* kGpt2 = R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 100})";
constexpr const char* kGpt2Wide =
    R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 96, "n_head": 4, "vocab_size": 100})";
constexpr const char* kNested = R"({"model_type": "llava", "text_config": {"model_type": "llama", "hidden_size": 64,
  "intermediate_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100}})";

}  // namespace

class HiddenSizeTest : public QObject {
  Q_OBJECT

 private slots:
  void a_built_in_network_is_named_anew() {
    const auto name = [](const char* model, std::int64_t channels) {
      return (*hidden_size_of(**open_model(model)))->with_hidden(channels);
    };
    QCOMPARE(name("builtin:gpt2", 1024), std::string("builtin:gpt2?hidden=1024"));
    QCOMPARE(name("builtin:gpt2?hidden=256&layers=2", 128), std::string("builtin:gpt2?hidden=128&layers=2"));
    QCOMPARE(name("builtin:gpt2?layers=2&batch=4", 128), std::string("builtin:gpt2?hidden=128&layers=2&batch=4"));
    QCOMPARE((*hidden_size_of(**open_model("builtin:gpt2")))->hidden(), std::int64_t(768));
    QCOMPARE((*hidden_size_of(**open_model("builtin:gpt2?hidden=256")))->hidden(), std::int64_t(256));
    QVERIFY(!hidden_size_of(**open_model("builtin:resnet50")));
  }

  void a_config_is_read_with_another() {
    QTemporaryDir folder;
    const std::string path = folder.filePath("config.json").toStdString();
    std::ofstream(path) << kGpt2;
    const auto source = open_model(path);
    QVERIFY(source);
    const auto sized = hidden_size_of(**source);
    QVERIFY(sized);
    QCOMPARE((*sized)->hidden(), std::int64_t(64));
    QCOMPARE((*sized)->with_hidden(96), path + "?hidden=96");
    const auto wide = open_model((*sized)->with_hidden(96));
    QCOMPARE(parameters_of(wide), parameters_of(parse_huggingface_config(kGpt2Wide, "c.json")));
    QCOMPARE((*wide)->source(), path + "?hidden=96");
    QCOMPARE((*wide)->name(), (*source)->name());
    QCOMPARE((*hidden_size_of(**wide))->with_hidden(64), path + "?hidden=64");
    // Together with a family, in either order.
    const auto forced = open_model(path + "?as=gpt2&hidden=96");
    QCOMPARE(parameters_of(forced), parameters_of(wide));
    QCOMPARE((*forced)->source(), path + "?hidden=96&as=gpt2");
  }

  void what_is_within_a_config_of_several_parts() {
    const auto source = parse_huggingface_config(kNested, "c.json");
    QVERIFY2(source, source ? "" : source.error().message().c_str());
    const auto wide = parse_huggingface_config(kNested, "c.json", {}, 96);
    QVERIFY2(wide, wide ? "" : wide.error().message().c_str());
    QCOMPARE((*hidden_size_of(**wide))->hidden(), std::int64_t(96));
    const auto by_hand = parse_huggingface_config(
        QByteArray(kNested).replace("\"hidden_size\": 64", "\"hidden_size\": 96").toStdString(), "c.json");
    QCOMPARE(parameters_of(wide), parameters_of(by_hand));
  }

  void what_cannot_be_is_said() {
    QTemporaryDir folder;
    const std::string path = folder.filePath("config.json").toStdString();
    std::ofstream(path) << kGpt2;
    for (const char* wrong : {"?hidden=0", "?hidden=many", "?hidden=", "?hidden=4194305",
                              "?as=", "?hidden=64&as=", "?hidden=64&hidden=64", "?as=gpt2&as=gpt2"})
      QCOMPARE(open_model(path + wrong).error().code, ErrorCode::usage);
    const auto uneven = open_model(path + "?hidden=98");  // four heads do not divide it
    QVERIFY(!uneven && uneven.error().what.find("98") != std::string::npos);
    QVERIFY(open_model(path + "?width=3").error().what.find("no such file") != std::string::npos);
    const std::string graph = TURNPOINT_SOURCE_DIR "/tests/data/task_graph/small.json";
    QCOMPARE(open_model(graph + "?hidden=64").error().what,
             std::string("only a config.json can be given another hidden size (?hidden=)"));
    QVERIFY(!hidden_size_of(**open_model(graph)));
  }
};

QTEST_APPLESS_MAIN(HiddenSizeTest)
#include "hidden_size_test.moc"
