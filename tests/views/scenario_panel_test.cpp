// SPDX-License-Identifier: Apache-2.0
#include <QAbstractItemModelTester>
#include <QAction>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QSpinBox>
#include <QVBoxLayout>
#include <QtTest>

#include "core/hardware/cluster.h"
#include "core/scenario/scenario.h"
#include "views/common/message_bar.h"
#include "views/common/theme_colors.h"
#include "views/plan/reshard_model.h"
#include "views/scenario/factor_box.h"
#include "views/scenario/methods_list.h"
#include "views/scenario/methods_model.h"
#include "views/scenario/scenario_panel.h"
#include "views/scenario/slider_row.h"
#include "views/scenario/what_if_slider.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

ScenarioView view_of(const char* hardware, int devices, double bandwidth = 1) {
  const auto whole = *cluster_preset(hardware);
  auto scenario = std::make_shared<Scenario>();
  scenario->model = std::make_shared<Model>();
  scenario->cluster = *with_devices(whole, devices);
  scenario->settings.devices = devices;
  for (const char* key : {"intra-bandwidth-scale", "inter-bandwidth-scale", "latency-scale", "device-speed-scale"})
    set_option(scenario->settings, key, bandwidth);
  ScenarioView view;
  view.scenario = scenario;
  view.hardware_specification = QString::fromLatin1(hardware);
  view.cluster_devices = whole->devices();
  view.cluster = whole;
  return view;
}

/// What the rows need, with the scroll bar that they scroll by.
int wanted_width(const ScenarioPanel& panel) {
  return panel.widget()->minimumSizeHint().width() + panel.verticalScrollBar()->sizeHint().width();
}

}  // namespace

class ScenarioPanelTest : public QObject {
  Q_OBJECT

 private slots:
  void factors_are_read_in_every_form_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<double>("factor");  // negative: refused
    QTest::newRow("number") << "0.5" << 0.5;
    QTest::newRow("times") << "×0.50" << 0.5;
    QTest::newRow("x") << "x 2" << 2.0;
    QTest::newRow("comma") << "0,5" << 0.5;
    QTest::newRow("absolute") << "65 GB/s" << 0.5;
    QTest::newRow("absolute without space") << "65GB/s" << 0.5;
    QTest::newRow("other unit") << "65000 MB/s" << 0.5;
    QTest::newRow("zero") << "0" << -1.0;
    QTest::newRow("negative") << "-1" << -1.0;
    QTest::newRow("words") << "fast" << -1.0;
    QTest::newRow("infinite") << "inf" << -1.0;
    QTest::newRow("empty") << "" << -1.0;
  }
  void factors_are_read_in_every_form() {
    QFETCH(QString, text);
    QFETCH(double, factor);
    const auto read = parse_factor(text, FactorQuantity::bandwidth, 130e9);
    QCOMPARE(read.has_value(), factor > 0);
    if (read) QVERIFY(std::abs(*read - factor) < 1e-12);
  }
  void absolute_values_need_their_own_unit() {
    QVERIFY(!parse_factor(QStringLiteral("5 GiB"), FactorQuantity::bandwidth, 130e9));
    QVERIFY(std::abs(*parse_factor(QStringLiteral("2.5 µs"), FactorQuantity::latency, 5e-6) - 0.5) < 1e-12);
    QVERIFY(std::abs(*parse_factor(QStringLiteral("8 GiB"), FactorQuantity::memory, 16.0 * 1073741824) - 0.5) < 1e-12);
    QVERIFY(std::abs(*parse_factor(QStringLiteral("62.5 TFLOP/s"), FactorQuantity::speed, 125e12) - 0.5) < 1e-12);
    QVERIFY(!parse_factor(QStringLiteral("65 GB/s"), FactorQuantity::bandwidth, 0));
  }

  void the_slider_snaps_to_one_and_covers_its_range() {
    WhatIfSlider slider;
    slider.resize(160, 24);
    slider.show();
    QVERIFY(QTest::qWaitForWindowExposed(&slider));
    QSignalSpy moved(&slider, &WhatIfSlider::factor_moved), began(&slider, &WhatIfSlider::gesture_began),
        ended(&slider, &WhatIfSlider::gesture_ended);
    QTest::mouseClick(&slider, Qt::LeftButton, {}, QPoint(slider.handle_x(0.5), 12));
    QVERIFY(std::abs(slider.factor() - 0.5) < 0.02);
    QTest::mouseClick(&slider, Qt::LeftButton, {}, QPoint(slider.handle_x(1) + 3, 12));
    QCOMPARE(slider.factor(), 1.0);
    QTest::mouseClick(&slider, Qt::LeftButton, {}, QPoint(159, 12));
    QCOMPARE(slider.factor(), 8.0);
    QTest::mouseClick(&slider, Qt::LeftButton, {}, QPoint(0, 12));
    QCOMPARE(slider.factor(), 0.125);
    QCOMPARE(moved.count(), 4);
    QCOMPARE(began.count(), 4);
    QCOMPARE(ended.count(), 4);
    slider.set_factor(20);  // beyond the slider, from the box
    QCOMPARE(slider.factor(), 20.0);
    QCOMPARE(moved.count(), 4);
  }

  void a_price_has_cents_and_a_unit() {
    ScenarioPanel panel(scenario_options());
    auto* box = panel.findChild<QDoubleSpinBox*>(QStringLiteral("price-per-hour"));
    QVERIFY(box);
    auto cluster = std::make_shared<Cluster>(**cluster_preset("v100-16gb-2x8"));
    auto scenario = std::make_shared<Scenario>();
    scenario->model = std::make_shared<Model>();
    const auto shown = [&](std::optional<double> of_hardware, double typed) {
      cluster->device.price_per_hour = of_hardware;
      scenario->cluster = std::make_shared<Cluster>(*cluster);
      scenario->settings.price_per_hour = typed;
      ScenarioView view;
      view.scenario = scenario;
      panel.set_scenario(view);
      return box->text() + (box->font().bold() ? QStringLiteral(" typed") : QString());
    };
    QCOMPARE(shown(std::nullopt, 0), QStringLiteral("no price"));
    QCOMPARE(shown(std::nullopt, 1.24), QStringLiteral("$1.24 / h typed"));
    QCOMPARE(shown(3.06, 0), QStringLiteral("$3.06 / h"));
    QSignalSpy edited(&panel, &ScenarioPanel::option_edited);
    box->selectAll();
    QTest::keyClicks(box, QStringLiteral("2.75"));
    QTest::keyClick(box, Qt::Key_Return);
    QCOMPARE(edited.count(), 1);
    QCOMPARE(edited[0][0].toString(), QStringLiteral("price-per-hour"));
    QCOMPARE(edited[0][1].toDouble(), 2.75);
  }

  /// Edited rows are bold and say more; neither may push anything under the scroll bar, nor make the dock jump.
  void edited_rows_are_not_cut() {
    ScenarioPanel panel(scenario_options());
    panel.set_scenario(view_of("v100-16gb-2x8", 16));
    panel.resize(panel.minimumWidth(), 700);
    panel.show();
    QVERIFY(QTest::qWaitForWindowExposed(&panel));
    const int before = panel.minimumWidth();
    QVERIFY2(before <= 300, qPrintable(QString::number(before)));
    panel.set_scenario(view_of("v100-16gb-2x8", 16, 7.77));
    QTest::qWait(20);
    QCOMPARE(panel.minimumWidth(), before);
    QVERIFY(panel.minimumWidth() >= wanted_width(panel));
    // What really is wider takes the panel with it.
    auto* wide = new QLabel(QString(60, u'M'), panel.widget());
    panel.widget()->layout()->addWidget(wide);
    QTRY_VERIFY(panel.minimumWidth() >= wanted_width(panel) && panel.minimumWidth() > before);
  }

  void undo_passes_a_box_that_has_nothing_of_its_own_to_undo() {
    QWidget window;
    auto* column = new QVBoxLayout(&window);
    auto* panel = new ScenarioPanel(scenario_options(), &window);
    column->addWidget(panel);
    panel->set_scenario(view_of("v100-16gb-2x8", 16));
    QAction undo(&window), redo(&window);
    undo.setShortcut(QKeySequence(QStringLiteral("Ctrl+Z")));
    redo.setShortcut(QKeySequence(QStringLiteral("Ctrl+Shift+Z")));
    window.addActions({&undo, &redo});
    QSignalSpy undone(&undo, &QAction::triggered), redone(&redo, &QAction::triggered);
    window.resize(320, 900);
    window.show();
    window.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&window));
    auto* number = panel->findChild<QSpinBox*>(QStringLiteral("batch"));
    auto* factor = panel->slider_row(QStringLiteral("latency-scale"))->findChild<FactorBox*>();
    QVERIFY(number && factor);
    for (QAbstractSpinBox* box : {static_cast<QAbstractSpinBox*>(number), static_cast<QAbstractSpinBox*>(factor)}) {
      box->setFocus();
      undone.clear(), redone.clear();
      const QString before = box->text();
      box->selectAll();
      QTest::keyClicks(box, QStringLiteral("2"));
      QTest::keyClick(box, Qt::Key_Z, Qt::ControlModifier);  // not taken over yet: the box's own
      QCOMPARE(undone.count(), 0);
      QCOMPARE(box->text(), before);
      box->selectAll();
      QTest::keyClicks(box, QStringLiteral("2"));
      QTest::keyClick(box, Qt::Key_Return);
      QTest::keyClick(box, Qt::Key_Z, Qt::ControlModifier);
      QCOMPARE(undone.count(), 1);
      QTest::keyClick(box, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
      QCOMPARE(redone.count(), 1);
    }
  }

  void what_is_wrong_with_a_split_is_brought_into_view() {
    ScenarioPanel panel(scenario_options());
    panel.set_scenario(view_of("v100-16gb-2x8", 16));
    panel.resize(300, 300);
    panel.show();
    QVERIFY(QTest::qWaitForWindowExposed(&panel));
    auto* note = panel.findChild<QLabel*>(QStringLiteral("split_note"));
    QVERIFY(note);
    panel.show_split_message(QStringLiteral("dp times tp times pp is 12, and there are 16 devices, which does not go"));
    QTRY_COMPARE(note->visibleRegion().boundingRect(), note->rect());
  }

  void methods_model_behaves() {
    MethodsModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    std::vector<MethodRow> rows(2);
    rows[0].name = QStringLiteral("ft");
    rows[1].name = QStringLiteral("optcnn");
    QSignalSpy reset(&model, &QAbstractItemModel::modelReset), changed(&model, &QAbstractItemModel::dataChanged);
    model.set_rows(rows);
    QCOMPARE(reset.count(), 1);
    rows[1].status = QStringLiteral("12%");
    model.set_rows(rows);
    QCOMPARE(reset.count(), 1);
    QCOMPARE(changed.count(), 1);
    model.set_rows(rows);
    QCOMPARE(changed.count(), 1);
    QSignalSpy toggled(&model, &MethodsModel::method_toggled);
    QVERIFY(model.setData(model.index(1), Qt::Checked, Qt::CheckStateRole));
    QCOMPARE(toggled.count(), 1);
    QCOMPARE(toggled[0][0].toString(), QStringLiteral("optcnn"));
  }

  // On a row whose text was clicked before as on any other, and by the space bar.
  void a_box_is_ticked_once() {
    MethodsModel model;
    MethodsList list;
    list.setModel(&model);
    std::vector<MethodRow> rows(2);
    rows[0].name = rows[0].title = QStringLiteral("ft");
    rows[1].name = rows[1].title = QStringLiteral("accpar");
    model.set_rows(rows);
    list.resize(list.sizeHint());
    list.show();
    QVERIFY(QTest::qWaitForWindowExposed(&list));
    QSignalSpy toggled(&model, &MethodsModel::method_toggled);
    const QRect row = list.visualRect(model.index(1));
    QTest::mouseClick(list.viewport(), Qt::LeftButton, {}, QPoint(row.left() + 60, row.center().y()));
    QCOMPARE(toggled.count(), 0);
    for (int click = 1; click <= 2; ++click) {
      QTest::mouseClick(list.viewport(), Qt::LeftButton, {}, QPoint(row.left() + 7, row.center().y()));
      QCOMPARE(toggled.count(), click);
    }
    QTest::keyClick(&list, Qt::Key_Space);
    QCOMPARE(toggled.count(), 3);
    QCOMPARE(toggled[2][0].toString(), QStringLiteral("accpar"));
  }

  // A session that is opened switches methods on and off: its own are seen, the others folded. A tick of the user's
  // moves no row.
  void methods_that_are_on_are_seen() {
    ScenarioPanel panel(scenario_options());
    auto* list = panel.findChild<MethodsList*>();
    const auto show = [&](const std::vector<bool>& on) {
      std::vector<MethodRow> rows(on.size());
      for (std::size_t i = 0; i < on.size(); ++i) {
        rows[i].name = rows[i].title = QString::number(i);
        rows[i].enabled = on[i];
      }
      panel.set_methods(rows);
    };
    const auto seen = [&] {
      std::vector<bool> rows;
      for (int row = 0; row < panel.methods_model()->rowCount(); ++row) rows.push_back(!list->isRowHidden(row));
      return rows;
    };
    show({true, true, false, false});
    QCOMPARE(seen(), (std::vector<bool>{true, true, false, false}));
    show({false, true, false, true});
    QCOMPARE(seen(), (std::vector<bool>{false, true, false, true}));
    // From here on by the user.
    QVERIFY(panel.methods_model()->setData(panel.methods_model()->index(1), Qt::Unchecked, Qt::CheckStateRole));
    show({false, false, false, true});
    QCOMPARE(seen(), (std::vector<bool>{false, true, false, true}));
    show({true, false, false, true});  // by an undo
    QCOMPARE(seen(), (std::vector<bool>{true, true, false, true}));
  }

  void rows_with_something_to_say_show_a_sign() {
    MethodsModel model;
    MethodsList list;
    list.setModel(&model);
    std::vector<MethodRow> rows(1);
    rows[0].name = rows[0].title = QStringLiteral("fsdp");
    rows[0].tool_tip = QStringLiteral("Fully sharded");
    rows[0].enabled = true;
    rows[0].state = MethodRow::State::done;
    rows[0].status = QStringLiteral("23 ms");
    model.set_rows(rows);
    list.resize(list.sizeHint());
    const auto warning_pixels = [&] {
      const QColor tint = theme_colors(list.palette()).warning;
      const QImage picture = list.grab().toImage();
      int count = 0;
      for (int y = 0; y < picture.height(); ++y)
        for (int x = 0; x < picture.width(); ++x) count += picture.pixelColor(x, y) == tint;
      return count;
    };
    QCOMPARE(warning_pixels(), 0);
    rows[0].notes = QStringLiteral("Note: the batch does not divide");
    model.set_rows(rows);
    QVERIFY(warning_pixels() > 3);
    QCOMPARE(model.index(0).data(Qt::ToolTipRole).toString(),
             QStringLiteral("Note: the batch does not divide\nFully sharded"));
    QVERIFY(model.index(0).data(Qt::AccessibleTextRole).toString().contains(QStringLiteral("does not divide")));
  }

  void reshard_model_behaves() {
    ReshardModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    std::vector<ReshardRow> rows(9);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].tensor = QString::number(i);
    model.set_rows(rows, 6);
    QCOMPARE(model.rowCount(), 6);
    QCOMPARE(model.total(), std::size_t(9));
    QCOMPARE(model.data(model.index(0, ReshardModel::kTensor), Qt::DisplayRole).toString(), QStringLiteral("0"));
  }

  /// Each column in the unit that its largest figure asks for: of a tiny model nothing is "0.0 MiB".
  void reshardings_have_units_that_fit() {
    ReshardModel model;
    const auto shown = [&](double bytes, double seconds) {
      std::vector<ReshardRow> rows(2);
      rows[0].bytes = bytes, rows[0].time_s = seconds;
      rows[1].bytes = bytes / 10, rows[1].time_s = seconds / 10;
      model.set_rows(rows, 6);
      QStringList words;
      for (const int column : {int(ReshardModel::kBytes), int(ReshardModel::kTime)}) {
        words << model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
        for (int row = 0; row < 2; ++row) words << model.index(row, column).data().toString();
      }
      return words.join(u' ');
    };
    QCOMPARE(shown(2048, 40e-6), QStringLiteral("KiB 2.0 0.2 \u00b5s 40.0 4.00"));
    QCOMPARE(shown(32 * 1048576.0, 24.8e-3), QStringLiteral("MiB 32.0 3.2 ms 24.8 2.48"));
    QCOMPARE(shown(500, 20e-9), QStringLiteral("B 500 50 \u00b5s 0.02 0.00"));
  }

  void messages_queue_errors_first() {
    MessageBar bar;
    bar.show_message({Message::Kind::note, QStringLiteral("saved"), {}});
    bar.show_message({Message::Kind::error, QStringLiteral("broken"), QStringLiteral("file")});
    bar.show_message({Message::Kind::error, QStringLiteral("broken"), QStringLiteral("file")});
    QCOMPARE(bar.count(), 2);
    QCOMPARE(bar.current()->what, QStringLiteral("broken"));
    bar.dismiss();
    QCOMPARE(bar.current()->what, QStringLiteral("saved"));
    bar.dismiss();
    QVERIFY(!bar.current());
  }

  void the_newest_error_is_in_front_and_success_takes_its_own_away() {
    MessageBar bar;
    const auto fail = [&](const char* what, const char* about) {
      bar.show_message({Message::Kind::error, QString::fromLatin1(what), {}, QString::fromLatin1(about)});
    };
    fail("first", "opening");
    fail("export", "export");
    fail("second", "opening");
    QCOMPARE(bar.current()->what, QStringLiteral("second"));
    fail("first", "opening");  // again: it is the newest now
    QCOMPARE(bar.current()->what, QStringLiteral("first"));
    QCOMPARE(bar.count(), 3);
    bar.clear_errors({});
    QCOMPARE(bar.count(), 3);
    bar.clear_errors(QStringLiteral("opening"));
    QCOMPARE(bar.count(), 1);
    QCOMPARE(bar.current()->what, QStringLiteral("export"));
  }
};

QTEST_MAIN(ScenarioPanelTest)
#include "scenario_panel_test.moc"
