// SPDX-License-Identifier: Apache-2.0
// The question before a window closes or another session opens: asked where work would be lost, and only there.
#include <QAction>
#include <QMessageBox>
#include <QPushButton>
#include <QtTest>

#include "app/pinned_searches.h"
#include "app/session.h"
#include "views/notes/notes_view.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;
using app::ActionId;

namespace {

QMessageBox* question(const WindowFixture& f) {
  for (auto* box : f.window->findChildren<QMessageBox*>(QStringLiteral("ask_save")))
    if (box->isVisible()) return box;
  return nullptr;
}

bool answer(const WindowFixture& f, QMessageBox::StandardButton button) {
  QMessageBox* box = question(f);
  if (!box) return false;
  box->button(button)->click();
  return QTest::qWaitFor([&] { return !f.window->findChild<QMessageBox*>(QStringLiteral("ask_save")); }, 60000);
}

}  // namespace

class UnsavedTest : public QObject {
  Q_OBJECT

 private slots:
  void nothing_changed_nothing_asked() {
    WindowFixture f;
    f.window->sessions().set_asks_before_leaving(true);
    QVERIFY(f.open());
    // Looking is no change, nor is a model that the work begins with.
    f.document().selection().pick_point(views::PickedPoint{"ft", 50});
    f.window->actions()[ActionId::log_time]->toggle();
    f.document().open_model("builtin:gpt2");
    QVERIFY(f.settle());
    QVERIFY(f.window->close());
    QVERIFY(!question(f));
  }

  void a_change_is_asked_about_and_its_undo_is_not() {
    WindowFixture f;
    f.window->sessions().set_asks_before_leaving(true);
    QVERIFY(f.open());
    f.document().set_option("intra-bandwidth-scale", 0.5, 0);
    QVERIFY(f.settle());
    QVERIFY(!f.window->close());
    QVERIFY(question(f));
    QVERIFY(question(f)->informativeText().contains(QStringLiteral("settings")));
    QVERIFY(!question(f)->informativeText().contains(QStringLiteral("model")));
    QVERIFY(answer(f, QMessageBox::Cancel));
    QVERIFY(f.window->isVisible());
    f.document().undo_stack().undo();
    QVERIFY(f.window->close());
    QVERIFY(!question(f));
  }

  void pins_methods_and_a_second_model_count() {
    WindowFixture f;
    f.window->sessions().set_asks_before_leaving(true);
    QVERIFY(f.open());
    const QString path = f.folder.filePath(QStringLiteral("a.turnpoint"));
    QVERIFY(f.window->sessions().save(path));
    const auto asked = [&](const char* about) {
      const bool open = !f.window->close();
      QMessageBox* box = question(f);
      const bool good = open && box && box->informativeText().contains(QLatin1String(about));
      return answer(f, QMessageBox::Cancel) && good;
    };
    f.window->actions()[ActionId::pin]->trigger();
    QVERIFY(asked("pinned frontiers"));
    QVERIFY(f.window->sessions().save(path));
    f.runner().set_enabled("optcnn", false);
    QVERIFY(asked("methods"));
    QVERIFY(f.window->sessions().save(path));
    part<views::NotesView>(f.window)->set_notes({}, QStringLiteral("measured on Monday"));
    QVERIFY(asked("notes"));
    QVERIFY(f.window->sessions().save(path));
    // Of a session that is in a file, another model is a change.
    f.document().open_model("builtin:gpt2");
    QVERIFY(f.settle());
    QVERIFY(asked("the model"));
    f.document().undo_stack().undo();
    QVERIFY(f.settle());
    QVERIFY(f.window->close());
  }

  void saved_work_is_in_the_file_and_the_window_closes() {
    WindowFixture f;
    f.window->sessions().set_asks_before_leaving(true);
    QVERIFY(f.open());
    const QString path = f.folder.filePath(QStringLiteral("a.turnpoint"));
    QVERIFY(f.window->sessions().save(path));
    f.window->actions()[ActionId::pin]->trigger();
    QVERIFY(!f.window->close());
    QVERIFY(question(f)->text().contains(QStringLiteral("a.turnpoint")));
    QVERIFY(answer(f, QMessageBox::Save));
    QTRY_VERIFY(!f.window->isVisible());
    const auto saved = app::load_session(path.toStdString());
    QVERIFY(saved.has_value());
    QCOMPARE(saved->pinned.size(), std::size_t(1));
  }

  void discarded_work_is_gone_without_a_second_question() {
    WindowFixture f;
    f.window->sessions().set_asks_before_leaving(true);
    QVERIFY(f.open());
    f.window->actions()[ActionId::pin]->trigger();
    QVERIFY(!f.window->close());
    QVERIFY(answer(f, QMessageBox::Discard));
    QTRY_VERIFY(!f.window->isVisible());
  }

  void another_session_asks_before_it_opens() {
    WindowFixture f;
    f.window->sessions().set_asks_before_leaving(true);
    QVERIFY(f.open());
    const QString path = f.folder.filePath(QStringLiteral("other.turnpoint"));
    QVERIFY(f.window->sessions().save(path));
    f.document().set_option("latency-scale", 2, 0);
    QVERIFY(f.settle());
    f.window->opener().open_path(path);
    QVERIFY(answer(f, QMessageBox::Cancel));
    QVERIFY(f.settle());
    QCOMPARE(f.scenario_settings().factors.latency, 2.0);
    // What cannot be opened asks nothing.
    f.window->opener().open_path(f.folder.filePath(QStringLiteral("none.turnpoint")));
    QVERIFY(!question(f));
    f.window->opener().open_path(path);
    QVERIFY(answer(f, QMessageBox::Discard));
    QTRY_COMPARE(f.scenario_settings().factors.latency, 1.0);
    QVERIFY(f.settle());
    QVERIFY(f.window->close());
    QVERIFY(!question(f));
  }

  void what_a_session_searches_for_is_no_change() {
    WindowFixture f;
    QVERIFY(f.open());
    app::Session session;
    session.scenario = {"builtin:transformer-s", "v100-16gb-2x8", f.scenario_settings()};
    app::PinnedSearch search{"NVLink half", "ft", session.scenario};
    set_option(search.scenario.settings, "intra-bandwidth-scale", 0.5);
    session.searches = {search, {"impossible", "no-such-method", session.scenario}};
    const QString path = f.folder.filePath(QStringLiteral("searches.turnpoint"));
    QVERIFY(app::save_session(session, path.toStdString()).has_value());
    f.window->sessions().set_asks_before_leaving(true);
    f.window->opener().open_path(path);
    QTRY_COMPARE(f.document().pinned().size(), std::size_t(1));
    QVERIFY(f.settle());
    QVERIFY(f.window->work().pinned_searches.waiting().empty());
    QVERIFY(f.window->close());
    QVERIFY(!question(f));
  }

  void nobody_is_asked_where_nobody_is() {
    WindowFixture f;  // as --screenshot and --export have it
    QVERIFY(f.open());
    f.window->actions()[ActionId::pin]->trigger();
    QVERIFY(f.window->close());
    QVERIFY(!question(f));
  }
};

QTEST_MAIN(UnsavedTest)
#include "unsaved_test.moc"
