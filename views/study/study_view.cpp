// SPDX-License-Identifier: Apache-2.0
#include "views/study/study_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QToolButton>
#include <algorithm>

#include "core/search/placement/graph_options.h"
#include "views/common/format.h"
#include "views/common/note_label.h"
#include "views/common/picture_export.h"

namespace turnpoint::views {

namespace {

constexpr int kSideWidth = 270, kLeastForSide = 720;  // pixels

/// What may be chosen of a model's tasks, one parameter at a time, and what the study has answers for.
std::vector<std::string> graphs_offered(const BatchStudy& study) {
  std::vector<std::string> offered = study.graphs();
  const auto offer = [&](std::string text) {
    if (std::find(offered.begin(), offered.end(), text) == offered.end()) offered.push_back(std::move(text));
  };
  for (const OptionRecord& option : search::graph_options()) {
    if (option.type == OptionType::flag) offer(std::string(option.key));
    if (option.type == OptionType::choice)
      for (std::size_t i = 0; i < option.choices.size(); ++i)
        if (i != std::size_t(option.default_value))
          offer(std::string(option.key) + "=" + std::string(option.choices[i]));
  }
  return offered;
}

}  // namespace

StudyView::StudyView(QWidget* parent) : QWidget(parent), chart_(new StudyChart(this)) {
  setObjectName(QStringLiteral("study_view"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(0);
  row->addWidget(chart_, 1);
  findings_ = new QLabel(this);
  findings_->setObjectName(QStringLiteral("study_findings"));
  findings_->setWordWrap(true);
  findings_->setTextFormat(Qt::PlainText);
  findings_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  findings_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  findings_->setMargin(8);
  side_ = new QScrollArea(this);
  side_->setWidget(findings_);
  side_->setWidgetResizable(true);
  side_->setFrameShape(QFrame::NoFrame);
  side_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  side_->setFixedWidth(kSideWidth);
  side_->setAccessibleName(tr("What the paper states and what comes out here"));
  row->addWidget(side_);
  make_tool_bar();
  run_button_->setEnabled(false);
  set_running(false, -1, {});
}

void StudyView::make_tool_bar() {
  tool_bar_ = new QWidget(this);
  tool_bar_->setObjectName(QStringLiteral("study_tool_bar"));
  auto* row = new QHBoxLayout(tool_bar_);
  row->setContentsMargins(8, 2, 8, 2);
  row->setSpacing(8);
  figure_box_ = new QComboBox(tool_bar_);
  figure_box_->setObjectName(QStringLiteral("study_figure"));
  figure_box_->setAccessibleName(tr("Figure"));
  for (const auto& [figure, text] :
       {std::pair(StudyFigure::batch, tr("Batches")), std::pair(StudyFigure::speed_up, tr("Speed-up")),
        std::pair(StudyFigure::methods_at_reported, tr("Methods at the paper's batches")),
        std::pair(StudyFigure::methods_at_largest, tr("Methods at the largest batches"))})
    figure_box_->addItem(text, int(figure));
  graph_box_ = new QComboBox(tool_bar_);
  graph_box_->setObjectName(QStringLiteral("study_graph"));
  graph_box_->setAccessibleName(tr("What is placed"));
  graph_box_->setToolTip(tr(
      "What of a model is placed: as placement methods have it, or with this parameter. Each has answers of its own."));
  for (QComboBox* box : {figure_box_, graph_box_}) {
    box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    row->addWidget(box);
    connect(box, &QComboBox::activated, this, &StudyView::show_chosen);
  }
  words_ = new NoteLabel(tool_bar_);
  words_->setObjectName(QStringLiteral("study_words"));
  words_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  row->addWidget(words_, 1);
  run_button_ = new QPushButton(tool_bar_);
  run_button_->setObjectName(QStringLiteral("study_run"));
  row->addWidget(run_button_);
  QToolButton* button = make_export_button(tool_bar_, this);
  button->menu()->addAction(tr("Study with its answers as JSON…"), this,
                            [this] { emit export_requested(QStringLiteral("json")); });
  row->addWidget(button);
  connect(run_button_, &QPushButton::clicked, this, [this] {
    if (running_)
      emit stop_requested();
    else
      emit run_requested(graph());
  });
}

void StudyView::set_study(std::shared_ptr<const BatchStudy> study) {
  study_ = std::move(study);
  const std::string chosen = graph();
  const QSignalBlocker quiet(graph_box_);
  graph_box_->clear();
  if (study_)
    for (const std::string& offered : graphs_offered(*study_))
      graph_box_->addItem(offered.empty() ? tr("Weights travel") : to_qt(offered), to_qt(offered));
  graph_box_->setCurrentIndex(std::max(0, graph_box_->findData(to_qt(chosen))));
  chart_->set_study(study_);
  run_button_->setEnabled(study_ != nullptr);
  show_chosen();
  set_running(running_, -1, words_->text());
}

std::string StudyView::graph() const { return graph_box_->currentData().toString().toStdString(); }

void StudyView::choose(StudyFigure figure, const std::string& graph) {
  figure_box_->setCurrentIndex(std::max(0, figure_box_->findData(int(figure))));
  graph_box_->setCurrentIndex(std::max(0, graph_box_->findData(to_qt(graph))));
  show_chosen();
}

void StudyView::show_chosen() {
  if (!study_) return;
  const auto figure = static_cast<StudyFigure>(figure_box_->currentData().toInt());
  chart_->show_figure(figure, graph());
  QStringList words{tr("The paper (%1) states:").arg(to_qt(study_->source))};
  for (const std::string& sentence : study_->says) words << QStringLiteral("• ") + to_qt(sentence);
  for (const bool at_reported : {true, false}) {
    const auto found = study_findings(*study_, graph(), at_reported);
    words << QString() << (at_reported ? tr("Here, at the paper's batches:") : tr("Here, at the largest batches:"));
    if (found.empty())
      words << tr("Nothing has been asked with \u201c%1\u201d yet; Run again asks it.").arg(graph_box_->currentText());
    for (const std::string& sentence : found) words << QStringLiteral("• ") + to_qt(sentence);
  }
  words << QString()
        << tr("Times are simulated for all methods, and peaks say what fits. The session's notes say why figures "
              "differ.");
  findings_->setText(words.join(u'\n'));
  chart_->setAccessibleDescription(findings_->text());
}

void StudyView::set_running(bool running, double fraction, const QString& words) {
  running_ = running;
  QString text = words;
  if (running && fraction >= 0) text = progress_text(fraction) + (words.isEmpty() ? QString() : u' ' + words);
  if (!running && words.isEmpty() && study_ && !study_->made.empty())
    text = tr("answers of %1").arg(to_qt(study_->made));
  words_->setText(text);
  words_->setToolTip(text);
  run_button_->setText(running ? tr("Stop") : tr("Run again"));
  run_button_->setToolTip(running ? tr("Stops the study; what it has answered stays")
                                  : tr("Asks the whole study again, with what is placed as chosen; takes minutes"));
}

QString StudyView::findings() const { return findings_->text(); }
QString StudyView::state_words() const { return words_->text(); }

QJsonObject StudyView::save_state() const {
  return {{QStringLiteral("figure"), figure_box_->currentIndex()}, {QStringLiteral("graph"), to_qt(graph())}};
}

void StudyView::restore_state(const QJsonObject& state) {
  const int figure = state[QStringLiteral("figure")].toInt();
  figure_box_->setCurrentIndex(figure >= 0 && figure < figure_box_->count() ? figure : 0);
  graph_box_->setCurrentIndex(std::max(0, graph_box_->findData(state[QStringLiteral("graph")].toString())));
  show_chosen();
}

void StudyView::paint_to(QPainter& painter, QSize size) { chart_->paint_to(painter, size); }

void StudyView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  side_->setVisible(width() >= kLeastForSide);
}

}  // namespace turnpoint::views
