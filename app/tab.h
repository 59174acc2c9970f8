// SPDX-License-Identifier: Apache-2.0
// The tabs below the chart. Each connects itself to what it shows and to what it asks for, so that the window knows
// them only as this. A new one is a source in app/tabs that makes it, and its name in app/tabs/tabs.cpp.
#pragma once

#include <QJsonObject>
#include <QObject>
#include <QString>
#include <memory>
#include <vector>

#include "app/workspace.h"

class QPainter;
class QWidget;

namespace turnpoint::views {
class ConfigurationColors;
class PlanPanel;
class TimeZoom;
}  // namespace turnpoint::views

namespace turnpoint::app {

class ActionSet;
enum class ActionId;
class ChartPage;
class Opener;
class Voice;
enum class FileKind;
struct KeptWork;
struct Session;

/// What a tab is made of; everything outlives it.
struct TabParts {
  Workspace& work;
  const ActionSet& actions;
  Voice& voice;
  Opener& opener;
  ChartPage& chart;
  views::PlanPanel& plan_panel;
  QWidget* window;
  std::shared_ptr<views::ConfigurationColors> colors;  ///< a configuration has one colour, whichever view shows it
  std::shared_ptr<views::TimeZoom> zoom;               ///< views of time show the same stretch of it

  views::SelectionModel* selection() const { return &work.document.selection(); }
};

class Tab : public QObject {
  Q_OBJECT
 public:
  Tab(const TabParts& parts, const char* key, QString title, QWidget* its_widget, QWidget* its_bar);

  const QString& key() const { return key_; }  ///< the dock's object name, never translated
  const QString& title() const { return title_; }
  QWidget* const widget;
  QWidget* const tool_bar;  ///< becomes the dock's title

  /// A tab behind others counts as visible to Qt, so the dock says whether it is looked at.
  void set_looked_at(bool looked_at);
  /// Files of this kind are this tab's; false: they are not.
  virtual bool open_files(FileKind, const QStringList&) { return false; }
  /// What a session and the question for unsaved work know of it; at least its own state.
  virtual void write(Session& session) const;
  virtual void read(const Session& session);
  virtual void add_to(KeptWork&) const {}
  /// Another beginning: what a session before had to say is not about this.
  virtual void begin_anew() {}

  void ask_export_picture(const QString& suffix);
  bool export_picture(const QString& path);  ///< .svg or .png by suffix

 signals:
  void raise_requested();

 protected:
  /// The scenario's; null: nothing is open. The plan of the model before is gone.
  virtual void set_model(const ScenarioPtr&) {}
  /// The picked plan; null where there is none, or a placement. Comes late to a tab that is hidden: while a slider
  /// moves there is no time for what nobody sees.
  virtual void set_plan(const std::shared_ptr<const Plan>&, const ScenarioPtr&) {}
  virtual void looked_at_changed(bool) {}
  virtual QJsonObject save_state() const { return {}; }
  virtual void restore_state(const QJsonObject&) {}
  virtual QSize picture_size() const;  ///< of what is exported; at first as it is on show
  virtual void paint_picture(QPainter&, QSize) {}
  /// Calls `then` where the user triggers the action.
  void on(ActionId id, std::function<void()> then);

  Workspace& work_;
  const ActionSet& actions_;
  Voice& voice_;

 private:
  void take_plan();

  QString key_, title_;
  bool outdated_ = false;  ///< a plan came while the view was hidden
};

/// A tab of one view, which keeps its state itself.
template <class View>
class ViewTab : public Tab {
 public:
  ViewTab(const TabParts& parts, const char* key, const QString& title, View* of)
      : Tab(parts, key, title, of, of->tool_bar()), view_(of) {
    if constexpr (requires { of->set_selection(parts.selection()); }) of->set_selection(parts.selection());
  }
  View* view() const { return view_; }

 protected:
  QJsonObject save_state() const override {
    if constexpr (requires { view_->save_state(); }) return view_->save_state();
    return {};
  }
  void restore_state(const QJsonObject& state) override {
    if constexpr (requires { view_->restore_state(state); }) view_->restore_state(state);
  }
  QSize picture_size() const override { return view_->size(); }
  void paint_picture(QPainter& painter, QSize size) override {
    if constexpr (requires { view_->paint_to(painter, size); }) view_->paint_to(painter, size);
  }

  View* const view_;
};

/// All of them in the order of their docks.
std::vector<Tab*> make_tabs(const TabParts& parts);

}  // namespace turnpoint::app
