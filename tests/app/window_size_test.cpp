// SPDX-License-Identifier: Apache-2.0
// How large the window is at first: no larger than the screen has room for.
#include "app/window_size.h"

#include <QDockWidget>
#include <QScreen>
#include <QtTest>

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
    f.window->set_most_width(screen.width());
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
    wide.window->set_most_width(1366);
    QVERIFY(
        wide.window->tabifiedDockWidgets(wide.window->findChild<QDockWidget*>(QStringLiteral("scenario"))).isEmpty());
  }
};

QTEST_MAIN(WindowSizeTest)
#include "window_size_test.moc"
