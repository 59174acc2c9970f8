// SPDX-License-Identifier: Apache-2.0
// The session's title and notes.
#include "app/kept_work.h"
#include "app/tab.h"
#include "views/notes/notes_view.h"

namespace turnpoint::app {

namespace {

class NotesTab : public ViewTab<views::NotesView> {
 public:
  explicit NotesTab(const TabParts& parts) : ViewTab(parts, "notes", tr("Notes"), new views::NotesView(parts.window)) {}

  void write(Session& session) const override {
    Tab::write(session);
    session.title = view_->title().toStdString();
    session.notes = view_->notes().toStdString();
  }
  void read(const Session& session) override {
    view_->set_notes(QString::fromStdString(session.title), QString::fromStdString(session.notes));
  }
  void add_to(KeptWork& work) const override {
    work.title = view_->title();
    work.notes = view_->notes();
  }
  void begin_anew() override { view_->set_notes({}, {}); }
};

}  // namespace

Tab* notes_tab(const TabParts& parts) { return new NotesTab(parts); }

}  // namespace turnpoint::app
