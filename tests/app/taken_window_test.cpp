// SPDX-License-Identifier: Apache-2.0
// What the window takes from a model unasked is said, and given up where the user chooses; where nothing fits, a batch
// that does is offered; methods have variants.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QtTest>

#include "real_window.h"
#include "views/common/message_bar.h"
#include "views/scenario/method_settings.h"
#include "views/scenario/methods_list.h"
#include "views/scenario/scenario_panel.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

QString decoder(Real& real) {
  const QString path = real.folder.filePath(QStringLiteral("config.json"));
  std::ofstream(path.toStdString())
      << R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1,
             "num_attention_heads": 4, "vocab_size": 1000, "torch_dtype": "bfloat16",
             "max_position_embeddings": 512})";
  return path;
}

const views::Message* message_with(Real& real, const char* words) {
  const views::Message* message = real.window->voice().bar().current();
  return message && message->what.contains(QString::fromLatin1(words)) ? message : nullptr;
}

const Settings& settings_of(Real& real) { return real.window->work().document.scenario()->settings; }

}  // namespace

class TakenWindowTest : public QObject {
  Q_OBJECT

 private slots:
  void another_model_takes_its_own_and_says_so() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x2", 0);
    QVERIFY(real.settle());
    real.window->work().document.set_option("batch", 7, 0);
    QVERIFY(real.settle());
    auto* note = real.child<QLabel>("taken_note");
    QVERIFY(note->text().isEmpty());
    // The message leaves by itself, on a busy machine before all is settled.
    real.window->opener().open_path(decoder(real));
    QVERIFY(QTest::qWaitFor(
        [&] {
          return message_with(real, "precision bf16 (torch_dtype says bfloat16), batch 256 (the default)") != nullptr;
        },
        60000));
    QVERIFY(real.settle());
    QCOMPARE(settings_of(real).precision, Precision::bf16);
    QCOMPARE(settings_of(real).batch, kDefaultBatch);
    QCOMPARE(note->text(), QStringLiteral("bf16, sequence 512: its own"));
    QVERIFY(note->toolTip().contains(QStringLiteral("torch_dtype says bfloat16")));
    // What the user chooses is the user's.
    real.window->work().document.set_option("precision", 0, 0);
    QVERIFY(real.settle());
    QCOMPARE(note->text(), QStringLiteral("sequence 512: its own"));
    real.window->work().document.set_option("batch", 32, 0);
    QVERIFY(real.settle());
    QCOMPARE(settings_of(real).precision, Precision::fp32);
    QCOMPARE(settings_of(real).batch, std::int64_t(32));
    QCOMPARE(note->text(), QStringLiteral("sequence 512: its own"));
    real.window->work().document.undo_stack().undo();
    real.window->work().document.undo_stack().undo();
    QVERIFY(real.settle());
    QCOMPARE(note->text(), QStringLiteral("bf16, sequence 512: its own"));
  }

  void a_batch_that_fits_is_offered_and_taken() {
    Real real;
    real.window->opener().open_scenario(decoder(real).toStdString(), "v100-16gb-1x2", 0);
    QVERIFY(real.settle());
    // In micro-batches nearly everything fits, whatever the batch.
    auto& runner = real.window->work().runner;
    QVERIFY(runner.add_split("ft:micro-batches=1").has_value());
    runner.set_enabled("ft", false);
    QVERIFY(real.settle());
    const std::int64_t least = runner.find("ft:micro-batches=1")->result->points.front().memory_bytes;
    real.window->work().document.set_option("memory-limit", double(least / 3), 0);
    QVERIFY(
        QTest::qWaitFor([&] { return message_with(real, "No plan of the checked methods fits") != nullptr; }, 60000));
    QVERIFY(real.settle());
    const views::Message* message = message_with(real, "No plan of the checked methods fits");
    QVERIFY(message && message->action.startsWith(QStringLiteral("Use batch ")));
    message->act();
    QVERIFY(QTest::qWaitFor([&] { return settings_of(real).batch < 256; }, 10000));
    QVERIFY(real.settle());
    QVERIFY(!message_with(real, "No plan of the checked methods fits"));
    bool fits = false;
    for (const auto& series : part<views::FrontierChart>(real.window)->data().series)
      fits = fits || (series.result && series.result->fastest_that_fits());
    QVERIFY(fits);
  }

  void settings_of_a_method_add_a_variant_beside_it() {
    Real real;
    real.window->opener().open_scenario(decoder(real).toStdString(), "v100-16gb-2x2", 0);
    QVERIFY(real.settle());
    auto* list = real.child<views::MethodsList>("methods_list");
    const auto index_of = [&](const QString& name) {
      for (int row = 0; row < list->model()->rowCount(); ++row)
        if (list->model()->index(row, 0).data(views::MethodsModel::kNameRole) == name)
          return list->model()->index(row, 0);
      return QModelIndex();
    };
    list->setCurrentIndex(index_of(QStringLiteral("fsdp")));
    QTest::keyClick(list, Qt::Key_Return);
    auto* settings = real.child<views::MethodSettings>("method_settings");
    QVERIFY(settings);
    settings->findChild<QComboBox*>(QStringLiteral("zero"))->setCurrentText(QStringLiteral("2"));
    settings->findChild<QPushButton*>(QStringLiteral("add_variant"))->click();
    QVERIFY(real.settle());
    const auto* run = real.window->work().runner.find("fsdp:zero=2");
    QVERIFY(run && run->result && run->enabled);
    QVERIFY(index_of(QStringLiteral("fsdp:zero=2")).isValid());
    QCOMPARE(real.window->work().runner.splits(), std::vector<std::string>{"fsdp:zero=2"});
    // Typed it is the same; changed it takes the place of what it was; removed it is gone.
    auto* line = real.child<QLineEdit>("split_line");
    QTest::keyClicks(line, QStringLiteral("fsdp group=node"));
    QTest::keyClick(line, Qt::Key_Return);
    QVERIFY(real.settle());
    QVERIFY(real.window->work().runner.find("fsdp:group=node"));
    list->setCurrentIndex(index_of(QStringLiteral("fsdp:group=node")));
    QTest::keyClick(list, Qt::Key_F2);
    QTRY_VERIFY(real.child<views::MethodSettings>("method_settings"));
    settings = real.child<views::MethodSettings>("method_settings");
    QCOMPARE(settings->findChild<QComboBox*>(QStringLiteral("group"))->currentText(), QStringLiteral("node"));
    settings->findChild<QComboBox*>(QStringLiteral("zero"))->setCurrentText(QStringLiteral("1"));
    settings->findChild<QPushButton*>(QStringLiteral("add_variant"))->click();
    QVERIFY(real.settle());
    QVERIFY(!real.window->work().runner.find("fsdp:group=node"));
    QVERIFY(real.window->work().runner.find("fsdp:zero=1:group=node"));
    emit list->remove_requested(QStringLiteral("fsdp:zero=2"));
    QVERIFY(real.settle());
    QVERIFY(!real.window->work().runner.find("fsdp:zero=2"));
    QTest::keyClicks(line, QStringLiteral("fsdp zero=9"));
    QTest::keyClick(line, Qt::Key_Return);
    QVERIFY(real.child<QLabel>("split_note")->text().contains(QStringLiteral("zero expects one of 1, 2, 3")));
  }

  void settings_of_update_sharding_choose_whose_splits() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-2x2", 0);
    QVERIFY(real.settle());
    auto* list = real.child<views::MethodsList>("methods_list");
    const auto ask = [&](const QString& name) -> views::MethodSettings* {
      for (int row = 0; row < list->model()->rowCount(); ++row)
        if (list->model()->index(row, 0).data(views::MethodsModel::kNameRole) == name)
          list->setCurrentIndex(list->model()->index(row, 0));
      QTest::keyClick(list, Qt::Key_F2);
      return real.child<views::MethodSettings>("method_settings");
    };
    auto* settings = ask(QStringLiteral("update-sharding"));
    QVERIFY(settings);
    auto* of = settings->findChild<QComboBox*>(QStringLiteral("of"));
    QVERIFY(of && of->currentText() == QLatin1String("none"));
    QVERIFY(of->findText(QStringLiteral("fsdp")) < 0 && of->findText(QStringLiteral("ft")) > 0);
    of->setCurrentText(QStringLiteral("manual"));
    auto* parts = settings->findChild<QSpinBox*>(QStringLiteral("tp"));
    QVERIFY(parts && parts->isVisible());
    of->setCurrentText(QStringLiteral("optcnn"));
    QVERIFY(!settings->findChild<QSpinBox*>(QStringLiteral("tp")));
    QCOMPARE(settings->parameters(), QStringLiteral("of=optcnn"));
    settings->findChild<QPushButton*>(QStringLiteral("add_variant"))->click();
    QVERIFY(real.settle());
    const auto& runner = real.window->work().runner;
    const auto* run = runner.find("update-sharding:of=optcnn");
    QVERIFY(run && run->enabled && run->result);
    QVERIFY(run->result->explanations.front().find("the fastest plan of 'optcnn'") != std::string::npos);
    // Changed it shows what it has, and the new one takes its place.
    settings = ask(QStringLiteral("update-sharding:of=optcnn"));
    QVERIFY(settings);
    QCOMPARE(settings->findChild<QComboBox*>(QStringLiteral("of"))->currentText(), QStringLiteral("optcnn"));
    auto* checkpoint = settings->findChild<QSpinBox*>(QStringLiteral("checkpoint"));
    QCOMPARE(checkpoint->text(), QStringLiteral("scenario"));
    checkpoint->setValue(10);
    QCOMPARE(checkpoint->text(), QStringLiteral("10 steps"));
    settings->findChild<QPushButton*>(QStringLiteral("add_variant"))->click();
    QVERIFY(real.settle());
    QVERIFY(!runner.find("update-sharding:of=optcnn"));
    run = runner.find("update-sharding:of=optcnn:checkpoint=10");
    QVERIFY(run && run->result);
    // With the other method's own parameters.
    settings = ask(QStringLiteral("update-sharding:of=optcnn:checkpoint=10"));
    settings->findChild<QComboBox*>(QStringLiteral("of"))->setCurrentText(QStringLiteral("manual"));
    settings->findChild<QSpinBox*>(QStringLiteral("micro-batches"))->setValue(4);
    settings->findChild<QPushButton*>(QStringLiteral("add_variant"))->click();
    QVERIFY(real.settle());
    run = runner.find("update-sharding:of=manual:checkpoint=10:micro-batches=4");
    QVERIFY(run && run->enabled && run->result);
    QCOMPARE(run->result->plans->sharding(0).micro_batches(), 4);
  }
};

QTEST_MAIN(TakenWindowTest)
#include "taken_window_test.moc"
