// SPDX-License-Identifier: Apache-2.0
// How large the window is at first: no larger than the screen has room for.
#include "app/window_size.h"

#include <QDockWidget>
#include <QFile>
#include <QLabel>
#include <QRegularExpression>
#include <QScreen>
#include <QStatusTipEvent>
#include <QtTest>
#include <cmath>

#include "app/theme.h"
#include "views/common/theme_colors.h"
#include "window_fixture.h"

using namespace turnpoint::app;
using turnpoint::test::WindowFixture;

class WindowSizeTest : public QObject {
  Q_OBJECT

 private slots:
  void a_window_and_its_frame_stay_on_the_screen() {
    const QMargins frame(2, 24, 2, 4);
    const QRect small(0, 0, 1366, 768), beside_panel(0, 30, 1920, 1050);
    QCOMPARE(fitted_window({0, 0, 1600, 1000}, small, frame), QRect(2, 24, 1362, 740));
    QCOMPARE(fitted_window({100, 60, 1600, 1000}, {0, 0, 1600, 1000}, frame), QRect(2, 24, 1596, 972));
    QCOMPARE(fitted_window({100, 60, 1600, 900}, beside_panel, frame), QRect(100, 60, 1600, 900));
    QCOMPARE(fitted_window({900, 400, 1600, 900}, beside_panel, frame), QRect(318, 176, 1600, 900));
    QCOMPARE(fitted_window({-300, -20, 800, 600}, beside_panel, frame), QRect(2, 54, 800, 600));
  }

  void the_first_size_fits_and_an_asked_one_is_taken() {
    const QSize room = QGuiApplication::primaryScreen()->availableSize();
    QWidget window;
    window.resize(room + QSize(500, 500));
    place_first_window(window, {});
    QVERIFY(window.width() <= room.width() && window.height() < room.height());
    // --size after a session that ended maximised.
    QWidget other;
    other.setWindowState(Qt::WindowMaximized);
    place_first_window(other, QSize(640, 480));
    QVERIFY(!other.isMaximized());
    QCOMPARE(other.size(), QSize(640, 480));
    QWidget kept;
    kept.setWindowState(Qt::WindowMaximized);
    place_first_window(kept, {});
    QVERIFY(kept.isMaximized());
  }

  void a_screen_of_twice_the_scale_holds_the_window() {
    WindowFixture f;
    QVERIFY(f.open());
    const QSize screen(960, 510);  // logical pixels of 1920 x 1080, less a title bar
    f.window->docks().set_most_width(screen.width());
    const QSize least = f.window->minimumSizeHint();
    QString parts;
    for (auto* dock : f.window->findChildren<QDockWidget*>())
      parts += QStringLiteral("%1 %2x%3 ")
                   .arg(dock->objectName())
                   .arg(dock->minimumSizeHint().width())
                   .arg(dock->minimumSizeHint().height());
    const QSize centre = f.window->centralWidget()->minimumSizeHint();
    QVERIFY2(least.width() <= screen.width() && least.height() <= screen.height(),
             qPrintable(QStringLiteral("%1x%2: centre %3x%4 ")
                            .arg(least.width())
                            .arg(least.height())
                            .arg(centre.width())
                            .arg(centre.height()) +
                        parts));
    // The plan is behind the scenario; elsewhere they stand on both sides.
    auto *scenario = f.window->findChild<QDockWidget*>(QStringLiteral("scenario")),
         *plan = f.window->findChild<QDockWidget*>(QStringLiteral("plan"));
    QVERIFY(f.window->tabifiedDockWidgets(scenario).contains(plan));
    WindowFixture wide;
    QVERIFY(wide.open());
    wide.window->docks().set_most_width(1366);
    QVERIFY(
        wide.window->tabifiedDockWidgets(wide.window->findChild<QDockWidget*>(QStringLiteral("scenario"))).isEmpty());
  }

  // Half of a screen beside a terminal, and less: the parts share one side, and part again where there is room.
  void half_a_screen_holds_the_window() {
    WindowFixture f;
    QVERIFY(f.open());
    auto *scenario = f.window->findChild<QDockWidget*>(QStringLiteral("scenario")),
         *plan = f.window->findChild<QDockWidget*>(QStringLiteral("plan"));
    QVERIFY(f.window->tabifiedDockWidgets(scenario).isEmpty());
    for (const int width : {960, 900, 800}) {
      f.window->resize(width, 700);
      QTest::qWait(50);
      QCOMPARE(f.window->width(), width);
      QVERIFY(f.window->tabifiedDockWidgets(scenario).contains(plan));
      const int least = f.window->minimumSizeHint().width();
      QString parts = QStringLiteral("%1 of %2: ").arg(least).arg(width);
      for (const auto* dock : f.window->findChildren<QDockWidget*>())
        parts += QStringLiteral("%1 %2 ").arg(dock->objectName()).arg(dock->minimumSizeHint().width());
      QVERIFY2(least <= width, qPrintable(parts));
      // Nothing hangs over the edge, and the chart has a share that can be read.
      for (const auto* dock : f.window->findChildren<QDockWidget*>())
        if (dock->isVisible()) QVERIFY(dock->geometry().right() <= f.window->width());
      QVERIFY2(f.chart().width() >= width / 2 - 20, qPrintable(QString::number(f.chart().width())));
    }
    f.window->resize(1600, 1000);
    QTest::qWait(50);
    QVERIFY(f.window->tabifiedDockWidgets(scenario).isEmpty());
    QVERIFY(plan->isVisible() && plan->x() > f.chart().width());
    // A session saved while they share a side opens with room as it was.
    f.window->resize(900, 700);
    QTest::qWait(50);
    const QString session = f.folder.filePath(QStringLiteral("narrow.turnpoint"));
    QVERIFY(f.window->sessions().save(session));
    WindowFixture wide;
    wide.window->sessions().open(session);
    QVERIFY(wide.settle());
    wide.window->resize(1600, 1000);
    QTest::qWait(50);
    QVERIFY(
        wide.window->tabifiedDockWidgets(wide.window->findChild<QDockWidget*>(QStringLiteral("scenario"))).isEmpty());
  }

  void the_chart_has_a_fair_share_of_a_low_window() {
    WindowFixture f;
    f.window->resize(1200, 800);
    f.window->actions()[ActionId::reset_layout]->trigger();
    QVERIFY(f.open());
    QTest::qWait(50);
    const QRect plot = f.chart().plot_area();
    QVERIFY2(plot.height() >= 250 && plot.width() >= 430,
             qPrintable(QStringLiteral("%1 x %2").arg(plot.width()).arg(plot.height())));
  }

  // A message lies over the chart's edge: what is pointed at does not move away when it comes or goes.
  void a_message_moves_nothing() {
    WindowFixture f;
    QVERIFY(f.open());
    QTest::qWait(50);
    const QPoint before = f.chart().mapTo(f.window.get(), QPoint());
    const QRect plot = f.chart().plot_area();
    const QSize size = f.chart().size();
    f.window->voice().bar().show_message({turnpoint::views::Message::Kind::error, QStringLiteral("It went wrong"),
                                          QString(400, QLatin1Char('x')) + QStringLiteral(" and more")});
    QTest::qWait(50);
    QVERIFY(f.window->voice().bar().isVisible());
    QCOMPARE(f.chart().mapTo(f.window.get(), QPoint()), before);
    QCOMPARE(f.chart().size(), size);
    QCOMPARE(f.chart().plot_area(), plot);
    QCOMPARE(f.window->voice().bar().width(), f.window->voice().bar().parentWidget()->width());
    // The chart's own switches stay in reach.
    QVERIFY(f.window->voice().bar().mapTo(f.window.get(), QPoint()).y() >= before.y());
    f.window->voice().bar().dismiss();
    QVERIFY(!f.window->voice().bar().isVisible());
    QCOMPARE(f.chart().plot_area(), plot);
  }

  void long_messages_are_bold_in_their_first_part_alone() {
    WindowFixture f;
    const QString families = QStringLiteral("no family of models is called 'x': known are ") +
                             QStringList(45, QStringLiteral("family")).join(u", ");
    f.window->voice().bar().show_message({turnpoint::views::Message::Kind::error, families, {}});
    const auto* what = f.window->voice().bar().findChild<QLabel*>(QStringLiteral("message_what"));
    const auto* where = f.window->voice().bar().findChild<QLabel*>(QStringLiteral("message_where"));
    QCOMPARE(what->text(), QStringLiteral("no family of models is called 'x':"));
    QVERIFY(where->text().startsWith(QStringLiteral("known are family, family")));
    QCOMPARE(f.window->voice().bar().current()->what, families);  // what is copied is whole
  }

  void themes_are_chosen_in_the_menu_and_kept() {
    WindowFixture f;
    QVERIFY(f.settings.theme().isEmpty());
    f.window->actions()[ActionId::theme_dark]->trigger();
    QVERIFY(turnpoint::views::theme_colors(QApplication::palette()).dark);
    QTRY_VERIFY(turnpoint::views::theme_colors(f.window->palette()).dark);
    QCOMPARE(f.settings.theme(), QStringLiteral("dark"));
    f.window->actions()[ActionId::theme_light]->trigger();
    QVERIFY(!turnpoint::views::theme_colors(QApplication::palette()).dark);
    QVERIFY(f.window->actions()[ActionId::theme_light]->isChecked() &&
            !f.window->actions()[ActionId::theme_dark]->isChecked());
    f.window->actions()[ActionId::theme_system]->trigger();
    QCOMPARE(theme_of_key(f.settings.theme()), std::optional(Theme::system));
    QVERIFY(!theme_of_key(QStringLiteral("pink")));
  }

  void a_tip_stands_beside_the_verdict() {
    WindowFixture f;
    QVERIFY(f.open());
    const auto* state = f.window->findChild<QLabel*>(QStringLiteral("status_state"));
    const auto* figures = f.window->findChild<QLabel*>(QStringLiteral("status_figures"));
    const QString before = figures->text();
    QVERIFY(!before.isEmpty());
    f.window->actions()[ActionId::pin]->hover();
    QStatusTipEvent tip(QStringLiteral("What this button does"));
    QApplication::sendEvent(f.window.get(), &tip);
    QVERIFY(state->isVisible() && !state->text().isEmpty());
    QCOMPARE(figures->text(), QStringLiteral("What this button does"));
    QStatusTipEvent none{QString()};
    QApplication::sendEvent(f.window.get(), &none);
    QCOMPARE(figures->text(), before);
  }

  // What is off is still to be read: 4.5 to 1 is what WCAG asks of text.
  void what_is_disabled_can_be_read() {
    const auto luminance = [](const QColor& color) {
      const auto part = [](double c) { return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
      return 0.2126 * part(color.redF()) + 0.7152 * part(color.greenF()) + 0.0722 * part(color.blueF());
    };
    for (const bool dark : {false, true}) {
      const auto& colors = turnpoint::views::theme_colors(turnpoint::views::make_palette(dark));
      for (const QColor& ground : {colors.window, colors.base, colors.alternate})
        for (const QColor& text : {colors.disabled, colors.secondary, colors.text}) {
          const double a = luminance(text) + 0.05, b = luminance(ground) + 0.05,
                       contrast = std::max(a, b) / std::min(a, b);
          QVERIFY2(contrast >= 4.5, qPrintable(text.name() + ground.name() + QString::number(contrast)));
        }
    }
  }

  void the_chart_is_exported_as_a_page_of_its_size() {
    WindowFixture f;
    QVERIFY(f.open());
    const QString path = f.folder.filePath(QStringLiteral("chart.pdf"));
    QVERIFY(f.window->exports().export_chart(path));
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray text = file.readAll();
    QVERIFY(text.startsWith("%PDF-") && text.contains("%%EOF") && text.size() > 5000);
    const QRegularExpressionMatch box =
        QRegularExpression(QStringLiteral("/MediaBox \\[0 0 ([0-9.]+) ([0-9.]+)\\]")).match(QString::fromLatin1(text));
    QVERIFY(box.hasMatch());
    QVERIFY(qAbs(box.captured(1).toDouble() - f.chart().width() * 0.75) < 1.5);
    QVERIFY(qAbs(box.captured(2).toDouble() - f.chart().height() * 0.75) < 1.5);
    QVERIFY(!f.window->exports().export_chart(f.folder.filePath(QStringLiteral("nowhere/chart.pdf"))));
  }
};

QTEST_MAIN(WindowSizeTest)
#include "window_size_test.moc"
