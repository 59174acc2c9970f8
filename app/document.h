// SPDX-License-Identifier: Apache-2.0
// What is open: the scenario with its undo history, pinned frontiers, and the selection all views share. Results belong
// to SearchRunner, which follows `scenario_changed`.
#pragma once

#include <QObject>
#include <QUndoStack>
#include <functional>
#include <set>
#include <vector>

#include "app/scenario_state.h"
#include "core/base/expected.h"
#include "views/common/selection_model.h"
#include "views/frontier/chart_data.h"

namespace turnpoint::app {

class SearchBackend;
class TaskManager;

class Document : public QObject {
  Q_OBJECT
 public:
  Document(const SearchBackend& backend, TaskManager& tasks, QObject* parent = nullptr);

  const ScenarioState& state() const { return state_; }
  const ScenarioPtr& scenario() const { return state_.scenario; }
  QUndoStack& undo_stack() { return undo_; }
  views::SelectionModel& selection() { return selection_; }
  const views::SelectionModel& selection() const { return selection_; }
  /// A model is being opened or bound right now.
  bool building() const { return building_; }

  /// Each is one undo step once it has succeeded; a failure changes nothing and is reported by `failed`.
  void open_model(const std::string& specification);
  /// The open model in another size, under the specification of that: what the user chose besides stays.
  void open_resized(const std::string& specification);
  /// The start page again; undo brings the model back.
  void close_model();
  /// `read_again`: also where the hardware of this name is the open one, for there is another profile behind it now.
  void open_hardware(const std::string& specification, bool read_again = false);
  /// Several things at once (a session, the first start); clears the undo history.
  void open(const ScenarioRequest& request, std::function<void()> then = {});
  /// A value of scenario_options(), already within its range. Edits of equal non-zero `gesture` are one undo step.
  void set_option(const std::string& key, double value, quint64 gesture);
  /// Devices and batch at once, as one undo step.
  void set_devices_and_batch(int devices, std::int64_t batch);
  void reset_factors();
  /// From the chart's memory line.
  void set_memory_limit(std::int64_t bytes, quint64 gesture);

  const std::vector<views::PinnedFrontier>& pinned() const { return pinned_; }
  void pin(views::PinnedFrontier frontier);
  void set_pinned(std::vector<views::PinnedFrontier> pinned);
  /// Of the model that is open; others keep theirs.
  void clear_pinned();
  bool is_of_this_model(const views::PinnedFrontier& pinned) const;
  /// Those that say something about the model that is open.
  std::vector<views::PinnedFrontier> pinned_here() const;

 signals:
  /// Another model is open, or none, with no operators picked; `scenario_changed` follows.
  void model_changed();
  /// `live`: one of a stream of slider moves; the hand may still be moving.
  void scenario_changed(bool live);
  void pinned_changed();
  void building_changed();
  /// What was asked for is open now.
  void built();
  void failed(const turnpoint::Error& error, const QString& action);

 private:
  friend class ScenarioCommand;
  void apply(const ScenarioState& state, bool live);
  void push(ScenarioState next, const QString& text, quint64 gesture);
  void build(const ScenarioRequest& request, const QString& text, bool clear_history, std::function<void()> then = {});
  void edit_settings(const Settings& settings, const QString& text, quint64 gesture);
  ScenarioRequest request() const;

  const SearchBackend& backend_;
  TaskManager& tasks_;
  ScenarioState state_;
  QUndoStack undo_;
  views::SelectionModel selection_;
  std::vector<views::PinnedFrontier> pinned_;
  std::optional<ScenarioRequest> wanted_;  ///< what a running build leads to; later edits start from it
  bool building_ = false;
  std::string usual_hardware_;  ///< the last that was not a task graph's own
};

}  // namespace turnpoint::app
