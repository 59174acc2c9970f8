// SPDX-License-Identifier: Apache-2.0
// The boxes of the Scenario dock that say what is open: nodes x devices, the list that typing filters, a method's
// settings.
#include <QAbstractItemView>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QtTest>

#include "core/hardware/cluster.h"
#include "core/scenario/scenario.h"
#include "core/search/registry.h"
#include "views/scenario/method_settings.h"
#include "views/scenario/scenario_panel.h"
#include "views/scenario/shape_boxes.h"
#include "views/scenario/specification_box.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

ScenarioView view_on(const ClusterPtr& whole, const char* specification, int devices) {
  auto scenario = std::make_shared<Scenario>();
  scenario->model = std::make_shared<Model>();
  scenario->cluster = *with_devices(whole, devices);
  scenario->hardware = specification;
  ScenarioView view;
  view.scenario = scenario;
  view.hardware_specification = QString::fromLatin1(specification);
  view.cluster_devices = whole->devices();
  view.cluster = whole;
  return view;
}

}  // namespace

class MachineBoxesTest : public QObject {
  Q_OBJECT

 private slots:
  void a_preset_takes_any_shape() {
    ShapeBoxes boxes;
    boxes.show_shape(view_on(*cluster_preset("h100-80gb-2x8"), "h100-80gb-2x8", 16));
    QCOMPARE(boxes.nodes()->value(), 2);
    QCOMPARE(boxes.devices()->value(), 8);
    QSignalSpy edited(&boxes, &ShapeBoxes::hardware_edited);
    boxes.nodes()->setValue(1024);
    QCOMPARE(edited.last()[0].toString(), QStringLiteral("h100-80gb-1024x8"));
    QVERIFY(cluster_preset(edited.last()[0].toString().toStdString()).has_value());
    boxes.show_shape(view_on(*cluster_preset("h100-80gb-1024x8"), "h100-80gb-1024x8", 8192));
    boxes.devices()->setValue(4);
    QCOMPARE(edited.last()[0].toString(), QStringLiteral("h100-80gb-1024x4"));
    // A part of a node, as of a session: its shape is the start of what is edited.
    boxes.show_shape(view_on(*cluster_preset("h100-80gb-2x8"), "h100-80gb-2x8", 4));
    QCOMPARE(boxes.nodes()->value(), 1);
    boxes.nodes()->setValue(3);
    QCOMPARE(edited.last()[0].toString(), QStringLiteral("h100-80gb-3x4"));
  }

  // Whoever aims at a box while the model or the hardware changes hits it.
  void rows_stay_where_they_are_whatever_is_open() {
    ScenarioPanel panel(scenario_options());
    panel.resize(panel.minimumWidth(), 700);
    panel.show();
    QVERIFY(QTest::qWaitForWindowExposed(&panel));
    struct Opened {
      const char* hardware;
      std::int64_t parameters;
      std::size_t operators;
      std::vector<TakenSetting> taken;
    };
    const Opened all[] = {
        {"v100-16gb-1x1", 61706, 9, {}},
        {"h100-80gb-2x8", 6738415616, 486, {}},
        {"gb200-186gb-1x72", 6738415616, 123456, {{"precision", "bf16", "as its file says", true}}},
        {"v100-16gb-2x8", 0, 1, {{"precision", "bf16", "", true}, {"sequence", "131072", "", true}}},
    };
    std::map<QString, QPoint> first;
    for (const Opened& one : all) {
      const auto whole = cluster_preset(one.hardware);
      QVERIFY2(whole, one.hardware);
      ScenarioView view = view_on(*whole, one.hardware, (*whole)->devices());
      auto scenario = std::make_shared<Scenario>(*view.scenario);
      auto model = std::make_shared<Model>();
      model->name = one.hardware;
      model->parameters = one.parameters;
      model->operators.resize(one.operators);
      scenario->model = model;
      scenario->taken = one.taken;
      view.scenario = scenario;
      panel.set_scenario(view);
      QTest::qWait(20);
      std::map<QString, QPoint> now;
      for (const char* name : {"hardware_box", "batch", "precision", "optimizer", "more_settings", "split_line"}) {
        auto* control = panel.findChild<QWidget*>(QString::fromLatin1(name));
        QVERIFY2(control, name);
        now[control->objectName()] = control->mapTo(panel.widget(), QPoint());
      }
      if (first.empty()) first = now;
      for (const auto& [name, at] : now)
        QVERIFY2(at == first[name], qPrintable(QStringLiteral("%1 on %2").arg(name, QLatin1String(one.hardware))));
      for (const char* name : {"model_note", "hardware_note"}) {
        const auto* caption = panel.findChild<QLabel*>(QString::fromLatin1(name));
        QCOMPARE(caption->toolTip(), caption->text());  // what is cut can be read
      }
    }
  }

  void measured_hardware_has_whole_nodes_or_a_part_of_one() {
    auto measured = std::make_shared<Cluster>(**cluster_preset("v100-16gb-2x8"));
    measured->name = "measured";
    ShapeBoxes boxes;
    QSignalSpy edited(&boxes, &ShapeBoxes::devices_edited), hardware(&boxes, &ShapeBoxes::hardware_edited);
    boxes.show_shape(view_on(measured, "/somewhere/profile.json", 16));
    QVERIFY(boxes.nodes()->isEnabled());
    QVERIFY(!boxes.devices()->isEnabled());
    QVERIFY(boxes.devices()->toolTip().contains(QStringLiteral("of 8 devices")));
    boxes.nodes()->setValue(4);
    QCOMPARE(edited.last()[0].toInt(), 32);
    boxes.show_shape(view_on(measured, "/somewhere/profile.json", 8));
    QVERIFY(boxes.devices()->isEnabled());
    QCOMPARE(boxes.devices()->maximum(), 8);
    boxes.devices()->setValue(3);
    QCOMPARE(edited.last()[0].toInt(), 3);
    QVERIFY(hardware.isEmpty());
  }

  void nodes_that_differ_are_taken_as_a_whole() {
    const auto mixed = open_hardware("tpu-v2-4x2+tpu-v3-4x2");
    QVERIFY(mixed.has_value());
    ShapeBoxes boxes;
    boxes.show_shape(view_on(*mixed, "tpu-v2-4x2+tpu-v3-4x2", 16));
    QVERIFY(!boxes.nodes()->isEnabled() && !boxes.devices()->isEnabled());
    QVERIFY(boxes.nodes()->toolTip().contains(QStringLiteral("differ")));
    // Three nodes of four would be a shape that nobody has.
    const char* const unlike = "v100-16gb-1x8+a100-40gb-1x4";
    boxes.show_shape(view_on(*open_hardware(unlike), unlike, 12));
    QVERIFY(boxes.nodes()->isHidden() && boxes.devices()->isHidden());
    QCOMPARE(boxes.findChild<QLabel*>(QStringLiteral("devices_total"))->text(),
             QStringLiteral("1 \u00d7 8 + 1 \u00d7 4 = 12"));
    boxes.show_shape(view_on(*cluster_preset("v100-16gb-1x8"), "v100-16gb-1x8", 8));
    QVERIFY(!boxes.nodes()->isHidden());
  }

  // Of a network of pods so many nodes are taken; another preset would have none.
  void pods_stay_those_of_the_hardware() {
    const char* const name = "h100-80gb-4x8x8@0.5";
    ShapeBoxes boxes;
    QSignalSpy hardware(&boxes, &ShapeBoxes::hardware_edited), devices(&boxes, &ShapeBoxes::devices_edited);
    boxes.show_shape(view_on(*cluster_preset(name), name, 256));
    boxes.nodes()->setValue(16);
    QCOMPARE(devices.last()[0].toInt(), 128);
    boxes.show_shape(view_on(*cluster_preset(name), name, 64));
    boxes.nodes()->setValue(32);
    QCOMPARE(devices.last()[0].toInt(), 256);
    QVERIFY(hardware.isEmpty());
  }

  void typing_filters_the_list_and_names_what_is_not_in_it() {
    SpecificationBox box(QStringLiteral("hardware_box"), nullptr);
    box.fill({{QStringLiteral("8 × V100-16GB"), QStringLiteral("v100-16gb-1x8"), {}},
              {QStringLiteral("8 × H100-80GB"), QStringLiteral("h100-80gb-1x8"), {}}},
             QStringLiteral("v100-16gb-1x8"), {});
    QCOMPARE(box.currentText(), QStringLiteral("8 × V100-16GB"));
    QCOMPARE(box.meant(QStringLiteral("h100")), QStringLiteral("h100-80gb-1x8"));
    QCOMPARE(box.meant(QStringLiteral("H100-80GB-1x8")), QStringLiteral("h100-80gb-1x8"));
    QCOMPARE(box.meant(QStringLiteral("h100-80gb-16x8")), QStringLiteral("h100-80gb-16x8"));
    QCOMPARE(box.meant(QStringLiteral("  ")), QString());
    QSignalSpy chosen(&box, &SpecificationBox::chosen), file(&box, &SpecificationBox::file_wanted);
    box.show();
    QVERIFY(QTest::qWaitForWindowExposed(&box));
    box.lineEdit()->selectAll();
    QTest::keyClicks(box.lineEdit(), QStringLiteral("h100-80gb-16x8"));
    QTest::keyClick(box.lineEdit(), Qt::Key_Return);
    QCOMPARE(chosen.size(), 1);
    QCOMPARE(chosen.last()[0].toString(), QStringLiteral("h100-80gb-16x8"));
    // It shows what is open until that has changed.
    QCOMPARE(box.currentText(), QStringLiteral("8 × V100-16GB"));
    box.lineEdit()->selectAll();
    QTest::keyClicks(box.lineEdit(), QStringLiteral("h10"));
    QTest::keyClick(box.lineEdit(), Qt::Key_Return);
    QCOMPARE(chosen.size(), 2);
    QCOMPARE(chosen.last()[0].toString(), QStringLiteral("h100-80gb-1x8"));
    // What is open already is not opened again, neither is nothing.
    QTest::keyClick(box.lineEdit(), Qt::Key_Return);
    box.lineEdit()->clear();
    QTest::keyClick(box.lineEdit(), Qt::Key_Return);
    QCOMPARE(chosen.size(), 2);
    QVERIFY(file.isEmpty());
    emit box.activated(box.count() - 1);
    QCOMPARE(file.size(), 1);
  }

  void settings_make_the_text_of_a_variant() {
    const Method& fsdp = **find_method("fsdp");
    auto* settings = new MethodSettings(QStringLiteral("Fully sharded"), fsdp.options, {}, false, nullptr);
    settings->show();
    auto* add = settings->findChild<QPushButton*>(QStringLiteral("add_variant"));
    QVERIFY(!add->isEnabled());
    settings->findChild<QComboBox*>(QStringLiteral("zero"))->setCurrentIndex(1);
    settings->findChild<QComboBox*>(QStringLiteral("group"))->setCurrentIndex(1);
    QVERIFY(add->isEnabled());
    QSignalSpy accepted(settings, &MethodSettings::accepted);
    QTest::keyClick(settings, Qt::Key_Return);
    QCOMPARE(accepted.size(), 1);
    QCOMPARE(accepted[0][0].toString(), QStringLiteral("zero=2:group=node"));
  }

  void settings_show_what_a_variant_has() {
    const Method& manual = **find_method("manual");
    MethodSettings settings(QStringLiteral("Split"), manual.options,
                            QStringLiteral("dp=4:tp=2:recompute:sequence-parallel"), true, nullptr);
    settings.setAttribute(Qt::WA_DeleteOnClose, false);
    QCOMPARE(settings.findChild<QSpinBox*>(QStringLiteral("dp"))->value(), 4);
    QCOMPARE(settings.findChild<QComboBox*>(QStringLiteral("recompute"))->currentText(), QStringLiteral("full"));
    QVERIFY(settings.findChild<QCheckBox*>(QStringLiteral("sequence-parallel"))->isChecked());
    settings.findChild<QSpinBox*>(QStringLiteral("dp"))->setValue(0);
    QCOMPARE(settings.parameters(), QStringLiteral("tp=2:recompute=full:sequence-parallel"));
  }

  // Parts that were moved by hand have no box, and are no reason to lose them.
  void settings_leave_alone_what_they_do_not_show() {
    const Method& accpar = **find_method("accpar");
    MethodSettings settings(QStringLiteral("AccPar"), accpar.options, QStringLiteral("by-hand=0@0.6:ratio=paper"), true,
                            nullptr);
    settings.setAttribute(Qt::WA_DeleteOnClose, false);
    auto* ratio = settings.findChild<QComboBox*>(QStringLiteral("ratio"));
    QCOMPARE(ratio->currentText(), QStringLiteral("paper"));
    ratio->setCurrentText(QStringLiteral("equal"));
    QCOMPARE(settings.parameters(), QStringLiteral("ratio=equal:by-hand=0@0.6"));
    ratio->setCurrentText(QStringLiteral("exact"));
    QCOMPARE(settings.parameters(), QStringLiteral("by-hand=0@0.6"));
  }

  // Behind the method that a box chooses its parameters have boxes, too.
  void settings_have_boxes_of_the_method_that_is_chosen() {
    const Method& sharding = **find_method("update-sharding");
    const auto options_of = [](std::string_view name) -> std::span<const OptionRecord> {
      const auto other = find_method(std::string(name));
      return other ? std::span<const OptionRecord>((*other)->options) : std::span<const OptionRecord>();
    };
    MethodSettings settings(QStringLiteral("Update sharding"), sharding.options,
                            QStringLiteral("of=manual:tp=2:pp=4:micro-batches=16:checkpoint=100"), true, nullptr,
                            {sharding.other_method, options_of});
    settings.setAttribute(Qt::WA_DeleteOnClose, false);
    settings.show();
    const auto spin = [&](const char* name) { return settings.findChild<QSpinBox*>(QString::fromLatin1(name)); };
    QVERIFY(spin("tp") && spin("pp") && spin("micro-batches") && spin("checkpoint"));
    QCOMPARE(spin("pp")->value(), 4);
    QCOMPARE(spin("checkpoint")->value(), 100);
    spin("tp")->setValue(8);
    QCOMPARE(settings.parameters(), QStringLiteral("of=manual:checkpoint=100:tp=8:pp=4:micro-batches=16"));
    // The command line reads that text as it was meant.
    QVERIFY(make_searcher(sharding, settings.parameters().toStdString()).has_value());
    auto* of = settings.findChild<QComboBox*>(QStringLiteral("of"));
    const int tall = settings.height();
    of->setCurrentText(QStringLiteral("accpar"));
    QVERIFY(!spin("tp") && settings.height() < tall);
    auto* ratio = settings.findChild<QComboBox*>(QStringLiteral("ratio"));
    QVERIFY(ratio && ratio->isVisible());
    QCOMPARE(settings.parameters(), QStringLiteral("of=accpar:checkpoint=100"));
    ratio->setCurrentText(QStringLiteral("equal"));
    QCOMPARE(settings.parameters(), QStringLiteral("of=accpar:checkpoint=100:ratio=equal"));
    // The button stays behind all boxes, for those who go from one to the next by key.
    auto* add = settings.findChild<QPushButton*>(QStringLiteral("add_variant"));
    for (const OptionRecord& option : (*find_method("accpar"))->options) {
      bool before_the_button = false;
      for (QWidget* next = of; next != add; next = next->nextInFocusChain())
        before_the_button |= next->objectName() == QString::fromUtf8(option.key.data(), qsizetype(option.key.size()));
      QVERIFY(before_the_button);
    }
    of->setCurrentText(QStringLiteral("none"));
    QVERIFY(!settings.findChild<QComboBox*>(QStringLiteral("ratio")));
    QCOMPARE(settings.parameters(), QStringLiteral("checkpoint=100"));
  }

  // Enter that chooses from a list is not also the one that ends the settings.
  void a_key_that_chooses_from_a_list_ends_nothing() {
    const Method& fsdp = **find_method("fsdp");
    auto* settings = new MethodSettings(QStringLiteral("Fully sharded"), fsdp.options, {}, false, nullptr);
    settings->show();
    auto* zero = settings->findChild<QComboBox*>(QStringLiteral("zero"));
    QSignalSpy accepted(settings, &MethodSettings::accepted);
    zero->showPopup();
    QTRY_VERIFY(zero->view()->isVisible());
    zero->setCurrentIndex(1);
    zero->hidePopup();
    QTest::keyClick(settings, Qt::Key_Return);
    QCOMPARE(accepted.size(), 0);
    QCoreApplication::processEvents();
    QTest::keyClick(settings, Qt::Key_Return);
    QCOMPARE(accepted.size(), 1);
    QCOMPARE(accepted[0][0].toString(), QStringLiteral("zero=2"));
  }

  // Moved by hand are parts of the method that was chosen; of another they mean nothing.
  void settings_drop_what_was_the_other_method_s() {
    const Method& sharding = **find_method("update-sharding");
    const auto none = [](std::string_view) { return std::span<const OptionRecord>(); };
    MethodSettings settings(QStringLiteral("Update sharding"), sharding.options,
                            QStringLiteral("of=accpar:by-hand=0@0.6"), true, nullptr, {sharding.other_method, none});
    settings.setAttribute(Qt::WA_DeleteOnClose, false);
    QCOMPARE(settings.parameters(), QStringLiteral("of=accpar:by-hand=0@0.6"));
    settings.findChild<QComboBox*>(QStringLiteral("of"))->setCurrentText(QStringLiteral("owt"));
    QCOMPARE(settings.parameters(), QStringLiteral("of=owt"));
  }

  /// However small a number is, it is shown as it is; no limit is said in a word.
  void numbers_are_shown_with_their_digits() {
    const Method& ft = **find_method("ft");
    MethodSettings settings(QStringLiteral("FT"), ft.options, QStringLiteral("gap=0.0005"), true, nullptr);
    settings.setAttribute(Qt::WA_DeleteOnClose, false);
    auto* gap = settings.findChild<QDoubleSpinBox*>(QStringLiteral("gap"));
    auto* limit = settings.findChild<QDoubleSpinBox*>(QStringLiteral("time-limit"));
    QCOMPARE(gap->text(), QStringLiteral("0.0005"));
    QCOMPARE(limit->text(), QStringLiteral("none"));
    limit->setValue(30);
    QCOMPARE(limit->text(), QStringLiteral("30 s"));
    QCOMPARE(settings.parameters(), QStringLiteral("gap=0.0005:time-limit=30"));
    limit->setValue(86400);
    QCOMPARE(limit->text(), QStringLiteral("86400 s"));
    limit->setValue(30);
    gap->setValue(0.00002);
    QCOMPARE(gap->text(), QStringLiteral("0.00002"));
    gap->setValue(0);
    QCOMPARE(gap->text(), QStringLiteral("0"));
    QCOMPARE(settings.parameters(), QStringLiteral("gap=0:time-limit=30"));
    const Method& trinity = **find_method("trinity");
    MethodSettings learning(QStringLiteral("Trinity"), trinity.options, {}, true, nullptr);
    learning.setAttribute(Qt::WA_DeleteOnClose, false);
    QCOMPARE(learning.findChild<QDoubleSpinBox*>(QStringLiteral("rate"))->text(), QStringLiteral("0.002"));
  }
};

QTEST_MAIN(MachineBoxesTest)
#include "machine_boxes_test.moc"
