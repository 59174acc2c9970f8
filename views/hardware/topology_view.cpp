// SPDX-License-Identifier: Apache-2.0
#include "views/hardware/topology_view.h"

#include <QHeaderView>
#include <QTableView>
#include <QVBoxLayout>
#include <map>

#include "views/common/format.h"
#include "views/common/note_label.h"

namespace turnpoint::views {

namespace {

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
    return {};
  }
  if (role != Qt::DisplayRole) return {};
  if (extra < 0) return to_qt(topology_cell(topology_, index.row(), index.column()));
  const auto known = [](const std::string& text) { return text.empty() ? QStringLiteral("?") : to_qt(text); };
  if (extra == numa) return known(gpu.numa_nodes);
  if (extra == cores) return known(gpu.cores);
  if (gpu.nvlinks == 0) return tr("none");
  if (gpu.nvlink_rate <= 0) return QString::number(gpu.nvlinks);
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
    return role == Qt::DisplayRole ? QVariant(QStringLiteral("GPU%1").arg(section)) : QVariant();
  }
  if (role == Qt::ToolTipRole)
    return extra == nvlinks ? tr("Active NVLinks of the GPU, and what each of them moves in one direction")
           : extra == numa  ? tr("The NUMA node whose memory is nearest to the GPU")
                            : tr("The CPU cores that are nearest to the GPU");
  if (role != Qt::DisplayRole) return {};
  return extra == nvlinks ? tr("NVLinks") : extra == numa ? tr("NUMA node") : tr("CPU cores");
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
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 7);
  legend_->setWordWrap(true);
  legend_->setTextFormat(Qt::PlainText);
  legend_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  legend_->setForegroundRole(QPalette::WindowText);  // on a panel of the base colour it would be Text
  column->addWidget(table_, 1);
  column->addWidget(legend_);
}

void TopologyView::set_topology(HostTopology topology) {
  QStringList lines;
  for (const auto& [cell, meaning] : ways(topology)) lines << QStringLiteral("%1: %2").arg(to_qt(cell), to_qt(meaning));
  if (const auto peers = peer_text(topology); !peers.empty()) lines << to_qt(peers);
  for (const auto& note : topology.notes) lines << to_qt(note);
  legend_->setText(lines.join(u'\n'));
  model_->set_topology(std::move(topology));
}

QString TopologyView::legend() const { return legend_->text(); }

}  // namespace turnpoint::views
