// SPDX-License-Identifier: Apache-2.0
// The centre: the chart below its header. Keeps it on what was found, and does what actions ask of it.
#pragma once

#include <QWidget>

#include "views/frontier/chart_data.h"

namespace turnpoint::views {
class ChartHeader;
class FrontierChart;
}  // namespace turnpoint::views

namespace turnpoint::app {

class ActionSet;
class AppSettings;
enum class ActionId;
struct Workspace;

class ChartPage : public QWidget {
  Q_OBJECT
 public:
  static constexpr std::size_t kToggleCount = 5;
  static const ActionId kToggles[kToggleCount];  ///< what of the chart is shown; sessions and settings keep it

  ChartPage(Workspace& work, const ActionSet& actions, AppSettings& settings, QWidget* parent);

  views::ChartHeader* header() const { return header_; }
  views::FrontierChart* chart() const { return chart_; }
  void show_results();
  void keep_clear(int height);           ///< below the header, while a message lies over it
  bool save(const QString& path) const;  ///< .svg, .pdf or .png by suffix

 signals:
  void changed(const turnpoint::views::ChartData& results);

 private:
  void connect_actions();
  views::ChartData data_now() const;
  QString subtitle_of(const views::ChartData& results) const;
  void pin();

  Workspace& work_;
  const ActionSet& actions_;
  AppSettings& settings_;
  views::ChartHeader* header_;
  views::FrontierChart* chart_;
};

}  // namespace turnpoint::app
