// SPDX-License-Identifier: Apache-2.0
// A table's head whose headings end in dots where they are longer than their column. QHeaderView elides by the whole
// column and then draws within its margins, so that a heading that is a few pixels too long loses its first letters
// where it is set to the right, without dots.
#pragma once

#include <QHeaderView>
#include <QStyleOptionHeader>

namespace turnpoint::views {

class ElidedHeader : public QHeaderView {
 public:
  explicit ElidedHeader(QWidget* parent) : QHeaderView(Qt::Horizontal, parent) {
    setSectionsClickable(true);
    setSectionsMovable(true);
    setStretchLastSection(true);
    setHighlightSections(false);
    setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  }

  /// What is drawn of a heading, in the room that the style leaves between its margins.
  QString shown(int section) const {
    QStyleOptionHeaderV2 option;
    initStyleOption(&option);
    option.rect = QRect(0, 0, sectionSize(section), height());
    initStyleOptionForIndex(&option, section);
    return option.text;
  }

 protected:
  void initStyleOptionForIndex(QStyleOptionHeader* option, int section) const override {
    QHeaderView::initStyleOptionForIndex(option, section);
    const QString text = model()->headerData(section, orientation(), Qt::DisplayRole).toString();
    const int margin = style()->pixelMetric(QStyle::PM_HeaderMargin, option, this);
    const int mark =
        option->sortIndicator == QStyleOptionHeader::None ? 0 : style()->pixelMetric(QStyle::PM_HeaderMarkSize, option);
    option->text = option->fontMetrics.elidedText(text, Qt::ElideRight, sectionSize(section) - 2 * margin - mark);
  }
};

}  // namespace turnpoint::views
