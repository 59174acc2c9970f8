// SPDX-License-Identifier: Apache-2.0
#include "app/help_pages.h"

#include <QCoreApplication>
#include <QKeySequence>
#include <QMessageBox>
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

void show_help(QWidget* window) {
  auto* box =
      new QMessageBox(QMessageBox::NoIcon, QObject::tr("What the chart shows"), QString(), QMessageBox::Close, window);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setText(QObject::tr(
      "<p><b>Every dot is a complete plan</b>: how each operator of the model is split over the devices. Right "
      "means more memory per device, up means "
      "a slower iteration; lower left is better.</p>"
      "<p>The <b>line</b> is the frontier: no plan is better in both. It has steps because there is no plan between "
      "two plans. The dotted lines are its "
      "two parts, computing and sending.</p>"
      "<p>The <b>turning point</b> is where more memory stops paying. Plans right of the <b>memory line</b> do not "
      "fit the device; drag the line to ask "
      "what a larger device would give.</p>"
      "<p>The <b>sliders</b> ask what if: the line follows at once, dashed while it is coarse, and exact when the "
      "hand rests.</p>"
      "<p>A <b>placement</b> puts every task of a training graph on one device: one dot per method, its time and peak "
      "memory simulated with all waiting and overlap. The <b>simulated clock</b> moves every other plan to its "
      "simulated time and memory as well, so that all can be compared; without it they are plain sums.</p>"
      "<p>Click a plan to see it in all views; arrow keys walk along the line (with Shift plan by plan), T picks the "
      "turning point.</p>"));
  box->open();
}

void show_shortcuts(QWidget* window, const QStringList& views) {
  auto* box = new QMessageBox(QMessageBox::NoIcon, QObject::tr("Keyboard shortcuts"), shortcut_page(views),
                              QMessageBox::Close, window);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->open();
}

void show_about(QWidget* window) {
  auto* box =
      new QMessageBox(QMessageBox::NoIcon, QObject::tr("About Turnpoint"), QString(), QMessageBox::Close, window);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setText(
      QObject::tr("<p><b>Turnpoint %1</b></p><p>How should this model be trained on these devices?</p><p>Sources: "
                  "Apache-2.0. This program links QCustomPlot and is "
                  "therefore under GPL-3.0-or-later as a whole.</p>")
          .arg(QCoreApplication::applicationVersion().toHtmlEscaped()));
  box->open();
}

}  // namespace turnpoint::app
