// SPDX-License-Identifier: Apache-2.0
#include "views/hardware/topology_view.h"

#include <QEvent>
#include <QHeaderView>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <map>
#include <numeric>

#include "views/common/format.h"
#include "views/common/note_label.h"

namespace turnpoint::views {

namespace {

constexpr int kWidePad = 18, kNarrowPad = 8;  ///< beside the text of a cell
constexpr int kLeastCores = 44;

/// Every way between two GPUs with its meaning.
std::map<std::string, std::string> ways(const HostTopology& topology) {
  std::map<std::string, std::string> found;
  const int gpus = static_cast<int>(topology.gpus.size());
  for (int row = 0; row < gpus; ++row)
    for (int column = row + 1; column < gpus; ++column) {
      const std::string cell = topology_cell(topology, row, column);
      found.emplace(cell, cell_meaning(cell));
    }
  return found;
}

}  // namespace

QString ways_text(const HostTopology& topology) {
  QStringList cells;
  for (const auto& [cell, meaning] : ways(topology)) cells << to_qt(cell);
  return cells.join(QStringLiteral(", "));
}

void TopologyModel::set_topology(HostTopology topology) {
  beginResetModel();
  topology_ = std::move(topology);
  endResetModel();
}

int TopologyModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : gpus(); }

int TopologyModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() || gpus() == 0 ? 0 : gpus() + kExtras;
}

QVariant TopologyModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= gpus()) return {};
  const HostGpu& gpu = topology_.gpus[static_cast<std::size_t>(index.row())];
  const int extra = index.column() - gpus();
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignCenter);
  if (role == Qt::ToolTipRole) {
    if (extra < 0)
      return tr("GPU%1 to GPU%2, %3")
          .arg(index.row())
          .arg(index.column())
          .arg(to_qt(pair_text(topology_, index.row(), index.column())));
    if (extra == nvlinks) return tr("NVLinks of GPU%1: %2").arg(index.row()).arg(to_qt(nvlinks_text(gpu)));
    if (extra == cores && !gpu.cores.empty())
      return tr("CPU cores nearest to GPU%1: %2").arg(index.row()).arg(to_qt(gpu.cores));
    return {};
  }
  if (role != Qt::DisplayRole) return {};
  if (extra < 0) return to_qt(topology_cell(topology_, index.row(), index.column()));
  const auto known = [](const std::string& text) { return text.empty() ? QStringLiteral("?") : to_qt(text); };
  if (extra == numa) return known(gpu.numa_nodes);
  if (extra == cores) return known(gpu.cores);
  if (gpu.nvlinks == 0) return tr("none");
  if (gpu.nvlink_rate <= 0 || short_) return QString::number(gpu.nvlinks);
  return QStringLiteral("%1 \u00d7 %2").arg(gpu.nvlinks).arg(bandwidth_text(gpu.nvlink_rate));
}

QVariant TopologyModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (section < 0 || gpus() == 0) return {};
  const int extra = orientation == Qt::Horizontal ? section - gpus() : -1;
  if (extra < 0) {
    if (section >= gpus()) return {};
    const HostGpu& gpu = topology_.gpus[static_cast<std::size_t>(section)];
    if (role == Qt::ToolTipRole)
      return gpu.pci.empty() ? to_qt(gpu.name) : tr("%1 at PCI %2").arg(to_qt(gpu.name), to_qt(gpu.pci));
    if (role != Qt::DisplayRole) return {};
    return orientation == Qt::Horizontal && short_ ? QString::number(section) : QStringLiteral("GPU%1").arg(section);
  }
  if (role == Qt::ToolTipRole)
    return extra == nvlinks ? tr("Active NVLinks of the GPU, and what each of them moves in one direction")
           : extra == numa  ? tr("The NUMA node whose memory is nearest to the GPU")
                            : tr("The CPU cores that are nearest to the GPU");
  if (role != Qt::DisplayRole) return {};
  if (extra == nvlinks) return tr("NVLinks");
  if (short_) return extra == numa ? tr("NUMA") : tr("Cores");
  return extra == numa ? tr("NUMA node") : tr("CPU cores");
}

void TopologyModel::set_short(bool shortly) {
  if (short_ == shortly) return;
  short_ = shortly;
  if (gpus() == 0) return;
  emit headerDataChanged(Qt::Horizontal, 0, columnCount() - 1);
  emit dataChanged(index(0, gpus()), index(gpus() - 1, columnCount() - 1));
}

TopologyView::TopologyView(QWidget* parent)
    : QWidget(parent), model_(new TopologyModel(this)), table_(new QTableView(this)), legend_(new NoteLabel(this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(12, 6, 12, 6);
  column->setSpacing(6);
  table_->setObjectName(QStringLiteral("hardware_topology"));
  table_->setModel(model_);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setTabKeyNavigation(false);
  table_->setWordWrap(false);
  table_->setAccessibleName(tr("What joins the GPUs of the measured host"));
  table_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table_->horizontalHeader()->setHighlightSections(false);
  table_->verticalHeader()->setHighlightSections(false);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  table_->horizontalHeader()->setMinimumSectionSize(16);
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 7);
  legend_->setWordWrap(true);
  legend_->setTextFormat(Qt::PlainText);
  legend_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  legend_->setForegroundRole(QPalette::WindowText);  // on a panel of the base colour it would be Text
  column->addWidget(table_, 1);
  column->addWidget(legend_);
  table_->viewport()->installEventFilter(this);
}

void TopologyView::set_topology(HostTopology topology) {
  QStringList lines;
  for (const auto& [cell, meaning] : ways(topology)) lines << QStringLiteral("%1: %2").arg(to_qt(cell), to_qt(meaning));
  if (const auto peers = peer_text(topology); !peers.empty()) lines << to_qt(peers);
  for (const auto& note : topology.notes) lines << to_qt(note);
  legend_->setText(lines.join(u'\n'));
  model_->set_topology(std::move(topology));
  fit_columns();
}

std::vector<int> TopologyView::column_widths(int pad) const {
  const QFontMetrics heads(table_->horizontalHeader()->font()), cells(table_->font());
  std::vector<int> each;
  for (int c = 0; c < model_->columnCount(); ++c) {
    int widest = heads.horizontalAdvance(model_->headerData(c, Qt::Horizontal, Qt::DisplayRole).toString());
    for (int r = 0; r < model_->rowCount(); ++r)
      widest = std::max(widest, cells.horizontalAdvance(model_->index(r, c).data().toString()));
    each.push_back(widest + pad);
  }
  return each;
}

int TopologyView::least_width() const {
  const bool shortly = model_->is_short();
  model_->set_short(true);
  const std::vector<int> each = column_widths(kNarrowPad);
  model_->set_short(shortly);
  const QMargins margins = layout()->contentsMargins();
  return std::accumulate(each.begin(), each.end(), 0) + table_->verticalHeader()->sizeHint().width() + margins.left() +
         margins.right() + 2;
}

void TopologyView::fit_columns() {
  const int room = table_->viewport()->width();
  const auto over = [&](const std::vector<int>& each) { return std::accumulate(each.begin(), each.end(), 0) - room; };
  model_->set_short(false);
  std::vector<int> wanted = column_widths(kWidePad);
  if (over(wanted) > 0) {
    // A host of eight: rows say GPU0 to GPU7, columns need not say it again.
    model_->set_short(true);
    wanted = column_widths(kWidePad);
    if (over(wanted) > 0) wanted = column_widths(kNarrowPad);
    // Lists of cores end in three dots then; their tips have the rest.
    if (const int more = over(wanted); more > 0 && !wanted.empty())
      wanted.back() = std::max(wanted.back() - more, std::min(wanted.back(), kLeastCores));
  }
  for (std::size_t c = 0; c < wanted.size(); ++c) table_->setColumnWidth(static_cast<int>(c), wanted[c]);
}

bool TopologyView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_->viewport() && event->type() == QEvent::Resize) fit_columns();
  return QWidget::eventFilter(watched, event);
}

void TopologyView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange) fit_columns();
}

QString TopologyView::legend() const { return legend_->text(); }

}  // namespace turnpoint::views
