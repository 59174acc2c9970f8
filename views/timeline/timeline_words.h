// SPDX-License-Identifier: Apache-2.0
// The words of the timeline's hover card, and the search by name.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <vector>

#include "views/graph/hover_text.h"
#include "views/timeline/timeline_summary.h"

namespace turnpoint::views {

/// In the language of the window, for what is no QObject.
inline QString timeline_text(const char* text) { return QCoreApplication::translate("TimelineView", text); }

/// An item: name, scope, kind, device, start, end, duration, bytes, from and to.
HoverText item_hover(const TimelineSummary& summary, std::uint32_t item);
/// A device: busy, sending, peak, limit.
HoverText device_hover(const TimelineSummary& summary, std::uint32_t device);
/// Between two items, or where nothing runs at all.
HoverText idle_hover(const TimelineSummary& summary, std::uint32_t device, double instant);
QString kind_word(const TimelineSummary& summary, std::uint32_t item);
/// "device 3"; of a role also how many it stands for.
QString device_words(const Schedule& schedule, std::uint32_t device);

/// Tasks whose name holds `text`, whatever the case, by start; at most `most`. Tasks that run nowhere are left out.
std::vector<TaskIndex> find_tasks(const TimelineSummary& summary, const QString& text, std::size_t most);

}  // namespace turnpoint::views
