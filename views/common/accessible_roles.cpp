// SPDX-License-Identifier: Apache-2.0
#include "views/common/accessible_roles.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QString>

namespace turnpoint::views {

namespace {

struct RoleOfClass {
  const char* name;
  QAccessible::Role role;
};

constexpr RoleOfClass kRoles[] = {
    {"FrontierChart", QAccessible::Chart},  {"CurveChart", QAccessible::Chart},
    {"LearningChart", QAccessible::Chart},  {"ParallelismChart", QAccessible::Chart},
    {"MemoryChart", QAccessible::Chart},    {"TimelineCanvas", QAccessible::Chart},
    {"ValidationBars", QAccessible::Chart}, {"ValidationScatter", QAccessible::Chart},
    {"GraphCanvas", QAccessible::Graphic},  {"TaskCanvas", QAccessible::Graphic},
    {"SceneCanvas", QAccessible::Graphic},  {"MiniMap", QAccessible::Graphic},
    {"BreakdownBar", QAccessible::Graphic}, {"DeviceStrip", QAccessible::Graphic},
    {"CurveKey", QAccessible::Graphic},     {"GraphLegend", QAccessible::Grouping},
    {"TaskLegend", QAccessible::Grouping},  {"LegendTable", QAccessible::Graphic},
    {"SectionHead", QAccessible::Heading},  {"MessageBar", QAccessible::AlertMessage},
    {"ScenarioPanel", QAccessible::Pane},   {"PlanPanel", QAccessible::Pane},
    {"DeviceChart", QAccessible::Graphic},  {"StudyChart", QAccessible::Chart},
    {"SweepChart", QAccessible::Chart},
};

QAccessibleInterface* role_factory(const QString& class_name, QObject* object) {
  const QString prefix = QStringLiteral("turnpoint::views::");
  if (!object || !object->isWidgetType() || !class_name.startsWith(prefix)) return nullptr;
  const auto name = QStringView(class_name).mid(prefix.size());
  for (const RoleOfClass& each : kRoles)
    if (name == QLatin1String(each.name)) return new QAccessibleWidget(static_cast<QWidget*>(object), each.role);
  return nullptr;
}

}  // namespace

void install_accessible_roles() { QAccessible::installFactory(role_factory); }

}  // namespace turnpoint::views
