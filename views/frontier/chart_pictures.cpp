// SPDX-License-Identifier: Apache-2.0
// The chart as a file: pixels, or shapes with text that stays text.
#include <QPdfWriter>
#include <QSvgGenerator>

#include "views/frontier/chart_private.h"

namespace turnpoint::views {

bool FrontierChart::as_picture(const std::function<bool()>& save) {
  p_->state.picture = true;
  rebuild();
  const bool saved = save();
  p_->state.picture = false;
  rebuild();
  return saved;
}

bool FrontierChart::save_png(const QString& path, double scale) {
  return as_picture([&] { return plot_->savePng(path, plot_->width(), plot_->height(), scale); });
}

bool FrontierChart::save_svg(const QString& path) {
  return as_picture([&] { return write_svg(path); });
}

bool FrontierChart::save_pdf(const QString& path) {
  return as_picture([&] { return write_pdf(path); });
}

bool FrontierChart::write_pdf(const QString& path) {
  QPdfWriter pdf(path);
  constexpr int kPerInch = 96;  // so that a pixel of the screen is one of the page
  pdf.setResolution(kPerInch);
  pdf.setPageSize(QPageSize(QSizeF(plot_->size()) * 72 / kPerInch, QPageSize::Point, {}, QPageSize::ExactMatch));
  pdf.setPageMargins({});
  pdf.setTitle(p_->state.data.title.isEmpty() ? tr("Memory and time") : p_->state.data.title);
  QCPPainter painter;
  if (!painter.begin(&pdf)) return false;
  painter.setMode(QCPPainter::pmVectorized);
  painter.setMode(QCPPainter::pmNoCaching);
  painter.fillRect(plot_->rect(), p_->state.colors->base);
  plot_->toPainter(&painter, plot_->width(), plot_->height());
  return painter.end();
}

bool FrontierChart::write_svg(const QString& path) {
  QSvgGenerator svg;
  svg.setFileName(path);
  svg.setSize(plot_->size());
  svg.setViewBox(QRect(QPoint(), plot_->size()));
  svg.setTitle(p_->state.data.title.isEmpty() ? tr("Memory and time") : p_->state.data.title);
  svg.setDescription(describe());
  QCPPainter painter;
  if (!painter.begin(&svg)) return false;
  painter.setMode(QCPPainter::pmVectorized);
  painter.setMode(QCPPainter::pmNoCaching);
  painter.fillRect(plot_->rect(), p_->state.colors->base);
  plot_->toPainter(&painter, plot_->width(), plot_->height());
  return painter.end();
}

}  // namespace turnpoint::views
