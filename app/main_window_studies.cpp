// SPDX-License-Identifier: Apache-2.0
// The parallelism tab's files.
#include "app/main_window.h"
#include "core/base/json.h"
#include "views/parallelism/parallelism_chart.h"
#include "views/parallelism/parallelism_view.h"

namespace turnpoint::app {

void MainWindow::ask_export_parallelism(const QString& suffix) {
  ask_save(tr("Export parallelism"), QStringLiteral("parallelism.") + suffix,
           tr("%1 files (*.%2)").arg(suffix.toUpper(), suffix),
           [this](const QString& path) { export_parallelism(path); });
}

bool MainWindow::export_parallelism(const QString& path) {
  const views::ParallelismChart* chart = parallelism_view_->chart();
  bool done = false;
  if (path.endsWith(QStringLiteral(".svg"), Qt::CaseInsensitive)) {
    done = chart->save_svg(path);
  } else {
    const auto text = views::parallelism_csv(chart->data()).toStdString();
    done = write_file_atomically(std::filesystem::path(path.toStdU16String()), text).has_value();
  }
  if (done)
    note(tr("Exported %1").arg(path.section(u'/', -1)), path);
  else
    report(bad_input("the file cannot be written", path.toStdString()), tr("Export parallelism"));
  return done;
}

}  // namespace turnpoint::app
