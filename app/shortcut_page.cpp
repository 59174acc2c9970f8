// SPDX-License-Identifier: Apache-2.0
#include "app/shortcut_page.h"

#include <QCoreApplication>
#include <QKeySequence>
#include <algorithm>
#include <utility>
#include <vector>

#include "app/actions.h"

namespace turnpoint::app {

namespace {

struct KeyRow {
  QString keys, what;  ///< no keys: a head
};

struct ViewKeys {
  const char* head;  ///< null: another row of the one before
  const char *keys, *what;
};

/// What views take by themselves while they have the focus.
constexpr ViewKeys kViewKeys[] = {
    {QT_TRANSLATE_NOOP("shortcuts", "In the chart"), "← →",
     QT_TRANSLATE_NOOP("shortcuts", "Previous, next plan that looks different")},
    {nullptr, "Shift+← →", QT_TRANSLATE_NOOP("shortcuts", "The very next plan")},
    {nullptr, "Home End T", QT_TRANSLATE_NOOP("shortcuts", "Least memory, least time, turning point")},
    {nullptr, "+ −", QT_TRANSLATE_NOOP("shortcuts", "Zoom in and out around the picked plan")},
    {QT_TRANSLATE_NOOP("shortcuts", "In the graph"), "← → ↑ ↓",
     QT_TRANSLATE_NOOP("shortcuts", "Next box to that side")},
    {nullptr, "Home End", QT_TRANSLATE_NOOP("shortcuts", "First, last box")},
    {nullptr, "Return", QT_TRANSLATE_NOOP("shortcuts", "Unfold the box, or pick the operator")},
    {nullptr, "Backspace", QT_TRANSLATE_NOOP("shortcuts", "Fold the group again")},
    {nullptr, "+ − F", QT_TRANSLATE_NOOP("shortcuts", "Zoom in, out, show everything")},
    {nullptr, "Ctrl+C", QT_TRANSLATE_NOOP("shortcuts", "Copy what the box says")},
    {QT_TRANSLATE_NOOP("shortcuts", "In the timeline"), "← → ↑ ↓",
     QT_TRANSLATE_NOOP("shortcuts", "Next task, next device")},
    {nullptr, "A D, W S", QT_TRANSLATE_NOOP("shortcuts", "Earlier and later, zoom in and out")},
    {nullptr, "F, Z", QT_TRANSLATE_NOOP("shortcuts", "Show everything, show what is picked")},
    {QT_TRANSLATE_NOOP("shortcuts", "On a slider"), "← →", QT_TRANSLATE_NOOP("shortcuts", "5% less or more")},
    {nullptr, "Page Home", QT_TRANSLATE_NOOP("shortcuts", "×2, ×1")},
};

QString say(const char* text) { return QCoreApplication::translate("shortcuts", text); }

QString column_of(const std::vector<KeyRow>& rows, std::size_t begin, std::size_t end) {
  QString html;
  for (std::size_t i = begin; i < end; ++i)
    html += rows[i].keys.isEmpty()
                ? QStringLiteral("<tr><td colspan=2><b>%1</b></td></tr>").arg(rows[i].what.toHtmlEscaped())
                : QStringLiteral(
                      "<tr><td style='white-space:nowrap'>%1&nbsp;&nbsp;</td>"
                      "<td style='white-space:nowrap'>%2</td></tr>")
                      .arg(rows[i].keys.toHtmlEscaped(), rows[i].what.toHtmlEscaped());
  return QStringLiteral("<td><table>%1</table></td>").arg(html);
}

}  // namespace

QString shortcut_page(const QStringList& views) {
  std::vector<KeyRow> rows{{{}, say(QT_TRANSLATE_NOOP("shortcuts", "Everywhere"))}};
  for (const ActionRecord& record : action_table())
    if (*record.shortcut && !record.in_chart_only)
      rows.push_back({QKeySequence(QString::fromLatin1(record.shortcut)).toString(QKeySequence::NativeText),
                      QCoreApplication::translate("actions", record.text)});
  rows.push_back({{}, say(QT_TRANSLATE_NOOP("shortcuts", "Views"))});
  for (qsizetype i = 0; i < std::min<qsizetype>(views.size(), 9); ++i)
    rows.push_back({QKeySequence(QStringLiteral("Ctrl+%1").arg(i + 1)).toString(QKeySequence::NativeText), views[i]});
  bool chart = true;  // comes first, and has commands of its own in the table of actions
  for (const ViewKeys& row : kViewKeys) {
    if (row.head) rows.push_back({{}, say(row.head)});
    rows.push_back({QString::fromUtf8(row.keys), say(row.what)});
    if (!std::exchange(chart, false)) continue;
    for (const ActionRecord& record : action_table())
      if (*record.shortcut && record.in_chart_only)
        rows.push_back({QKeySequence(QString::fromLatin1(record.shortcut)).toString(QKeySequence::NativeText),
                        QCoreApplication::translate("actions", record.text)});
  }
  const std::size_t half = (rows.size() + 1) / 2;
  return QStringLiteral("<table><tr>%1<td>&nbsp;&nbsp;&nbsp;&nbsp;</td>%2</tr></table>")
      .arg(column_of(rows, 0, half), column_of(rows, half, rows.size()));
}

}  // namespace turnpoint::app
