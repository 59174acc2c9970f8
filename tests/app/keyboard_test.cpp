// SPDX-License-Identifier: Apache-2.0
// The window without a mouse: every stop of the Tab key can be seen and has a name, regions are reached by F6, and
// screen readers learn what the views' own widgets are.
#include <QAccessible>
#include <QDockWidget>
#include <QLabel>
#include <QTabBar>

#include "app/focus_regions.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

QAccessibleInterface* accessible(QWidget* widget) { return QAccessible::queryAccessibleInterface(widget); }

QString name_of(QWidget* widget) { return accessible(widget)->text(QAccessible::Name); }

QString described(QWidget* widget) {
  QString path;
  for (QWidget* at = widget; at; at = at->parentWidget())
    path += QStringLiteral(" < %1 %2").arg(QLatin1String(at->metaObject()->className()), at->objectName());
  return name_of(widget) + path;
}

/// Presses the key until the focus is back where it began; empty where it never comes back.
QList<QWidget*> walk(Qt::Key key) {
  QList<QWidget*> stops;
  QWidget* first = QApplication::focusWidget();
  for (int i = 0; i < 300; ++i) {
    stops << QApplication::focusWidget();
    QTest::keyClick(QApplication::focusWidget(), key, key == Qt::Key_Backtab ? Qt::ShiftModifier : Qt::NoModifier);
    if (QApplication::focusWidget() == first) return stops;
  }
  return {};
}

QTabBar* view_tabs(app::MainWindow& window) {
  for (QTabBar* tabs : window.findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly))
    if (tabs->count() > 5) return tabs;
  return nullptr;
}

}  // namespace

class KeyboardTest : public QObject {
  Q_OBJECT

 private slots:
  void every_stop_of_every_tab_is_seen_and_named() {
    WindowFixture f;
    QVERIFY(f.open());
    QApplication::setActiveWindow(f.window.get());
    QTabBar* tabs = view_tabs(*f.window);
    QVERIFY(tabs);
    for (int tab = 0; tab < tabs->count(); ++tab) {
      tabs->setCurrentIndex(tab);
      QVERIFY(f.settle());
      QTest::qWait(20);
      f.chart().setFocus();
      const QList<QWidget*> stops = walk(Qt::Key_Tab);
      QVERIFY2(!stops.isEmpty(), qPrintable(tabs->tabText(tab) + QStringLiteral(": Tab does not come back; it is at ") +
                                            described(QApplication::focusWidget())));
      for (QWidget* stop : stops) {
        const QString which = tabs->tabText(tab) + QStringLiteral(": ") + described(stop);
        stop->setFocus(Qt::TabFocusReason);  // what is scrolled away comes into sight as it does under the Tab key
        QVERIFY2(stop->isVisible(), qPrintable(which));
        const QRect place(stop->mapTo(f.window.get(), QPoint(0, 0)), stop->size());
        QVERIFY2(f.window->rect().contains(place.center()), qPrintable(which));
        QVERIFY2(!name_of(stop).isEmpty(), qPrintable(which));
      }
      // The same way back, and nothing that can take the focus is left out.
      f.chart().setFocus();
      QList<QWidget*> back = walk(Qt::Key_Backtab);
      QCOMPARE(back.size(), stops.size());
      QCOMPARE(std::size_t(stops.size()), part<app::FocusRegions>(f.window)->stops().size());
    }
  }

  void the_tab_bar_comes_right_after_the_chart() {
    WindowFixture f;
    QVERIFY(f.open());
    QApplication::setActiveWindow(f.window.get());
    f.chart().setFocus();
    const QList<QWidget*> stops = walk(Qt::Key_Tab);
    int after = 1;  // past what else stands in the middle of the window
    while (after < stops.size() && f.window->centralWidget()->isAncestorOf(stops[after])) ++after;
    QCOMPARE(stops[after], view_tabs(*f.window));
  }

  void what_lies_behind_a_tab_is_hidden_and_comes_back() {
    WindowFixture f;
    QVERIFY(f.open());
    QTabBar* tabs = view_tabs(*f.window);
    for (int tab = 0; tab < tabs->count(); ++tab) {
      tabs->setCurrentIndex(tab);
      QTest::qWait(20);
      for (QDockWidget* dock : f.window->findChildren<QDockWidget*>(QString(), Qt::FindDirectChildrenOnly)) {
        if (f.window->dockWidgetArea(dock) != Qt::BottomDockWidgetArea) continue;
        const bool on_top = dock->windowTitle() == tabs->tabText(tab);
        QVERIFY2(dock->widget()->isVisible() == on_top, qPrintable(dock->windowTitle()));
        if (dock->titleBarWidget()) QVERIFY(dock->titleBarWidget()->isVisible() == on_top);
      }
    }
  }

  void the_regions_are_reached_in_turn_and_remember_their_place() {
    WindowFixture f;
    QVERIFY(f.open());
    QApplication::setActiveWindow(f.window.get());
    f.chart().setFocus();
    QWidget* slider = f.row("latency-scale")->slider();
    slider->setFocus();
    QSet<QWidget*> seen;
    for (int i = 0; i < 20; ++i) {
      QTest::keyClick(QApplication::focusWidget(), Qt::Key_F6);
      QWidget* now = QApplication::focusWidget();
      QVERIFY(now && now->isVisible());
      if (now == slider) break;
      QVERIFY(!seen.contains(now));
      seen << now;
    }
    QCOMPARE(QApplication::focusWidget(), slider);  // round once, and back where the scenario was left
    QVERIFY(seen.contains(&f.chart()));
    QVERIFY(seen.contains(view_tabs(*f.window)));
    QVERIFY(seen.size() >= 4);
    QTest::keyClick(slider, Qt::Key_F6);
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_F6, Qt::ShiftModifier);
    QCOMPARE(QApplication::focusWidget(), slider);
  }

  void own_widgets_have_roles_and_labels_have_words() {
    WindowFixture f;
    QVERIFY(f.open());
    QCOMPARE(accessible(&f.chart())->role(), QAccessible::Chart);
    QTabBar* tabs = view_tabs(*f.window);
    for (int tab = 0; tab < tabs->count(); ++tab) {
      tabs->setCurrentIndex(tab);
      QTest::qWait(20);
      for (QWidget* widget : f.window->findChildren<QWidget*>()) {
        if (!widget->isVisible()) continue;
        const QString type = QString::fromLatin1(widget->metaObject()->className());
        const QString which = tabs->tabText(tab) + QStringLiteral(": ") + described(widget);
        if (widget->focusPolicy() != Qt::NoFocus && type.startsWith(QStringLiteral("turnpoint::views")))
          QVERIFY2(accessible(widget)->role() != QAccessible::Client, qPrintable(which));
        // One that says nothing now is no stop of a screen reader either; a picture needs words.
        const auto* label = qobject_cast<QLabel*>(widget);
        if (label && (!label->text().isEmpty() || !label->pixmap(Qt::ReturnByValue).isNull()))
          QVERIFY2(!name_of(widget).isEmpty(), qPrintable(which));
      }
    }
  }
};

QTEST_MAIN(KeyboardTest)
#include "keyboard_test.moc"
