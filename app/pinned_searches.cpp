// SPDX-License-Identifier: Apache-2.0
#include "app/pinned_searches.h"

#include <algorithm>
#include <mutex>

#include "app/document.h"
#include "app/scenario_builder.h"
#include "app/search_runner.h"
#include "app/task_manager.h"
#include "core/search/objectives.h"
#include "core/search/placement_search.h"
#include "views/common/format.h"

namespace turnpoint::app {

namespace {
const QString kPinnedPurpose = QStringLiteral("pinned_searches");
}

struct PinnedSearches::Mailbox {
  struct Answer {
    PinnedSearch search;
    Expected<ResultPtr> result;
    bool final = false;
  };
  std::mutex mutex;
  std::vector<Answer> found;
};

PinnedSearches::PinnedSearches(const SearchBackend& backend, TaskManager& tasks, Document& document,
                               SearchRunner& runner, QObject* parent)
    : QObject(parent), backend_(backend), tasks_(tasks), document_(document), runner_(runner) {
  connect(&runner_, &SearchRunner::became_settled, this, &PinnedSearches::start_if_due);
  connect(&runner_, &SearchRunner::result_changed, this, &PinnedSearches::start_if_due);
}

void PinnedSearches::set(std::vector<PinnedSearch> searches) {
  waiting_ = std::move(searches);
  stopped_ = sketched_ = false;
  if (running_) {
    running_.reset();
    tasks_.cancel_purpose(kPinnedPurpose);
  }
  start_if_due();
}

void PinnedSearches::start_if_due() {
  // The session's own frontier goes first, it is what the chart is about: a sketch after its sketch, exact after exact.
  // Without a frontier its markers do.
  const MethodRun* main = runner_.subject();
  const bool shown =
      main ? main->result && main->result->scenario == document_.scenario() : runner_.settled() && runner_.up_to_date();
  if (running_ || stopped_ || waiting_.empty() || !shown) return;
  if (sketched_ && (!runner_.settled() || !runner_.up_to_date())) return;
  const SearchPass pass = sketched_ ? SearchPass::exact : SearchPass::coarse;
  auto mailbox = std::make_shared<Mailbox>();
  running_ = mailbox;
  tasks_.start(
      kPinnedPurpose, tr("Pinned frontiers"),
      [this, mailbox, pass, searches = waiting_](const RunContext& context) { work(searches, pass, mailbox, context); },
      [this, mailbox](TaskOutcome outcome) {
        if (mailbox == running_) {
          take(mailbox);
          running_.reset();
          stopped_ = outcome != TaskOutcome::finished;
          sketched_ = true;
        }
        start_if_due();
      });
}

Expected<ResultPtr> PinnedSearches::run(const PinnedSearch& search, SearchPass pass, const RunContext& context) const {
  const auto& methods = backend_.methods();
  const auto colon = std::min(search.method.find(':'), search.method.size());
  const auto method = std::find_if(methods.begin(), methods.end(),
                                   [&](const Method& each) { return search.method.compare(0, colon, each.name) == 0; });
  if (method == methods.end()) return bad_input("no method '" + search.method + "'");
  const Contender wanted =
      contender(*method, colon < search.method.size() ? search.method.substr(colon + 1) : std::string());
  const auto state = build_scenario(backend_, search.scenario, {});
  if (!state) return state.error();
  if (const auto reason = wanted.refuses(*state->scenario); !reason.empty()) return usage_error(reason);
  return wanted.make()->run(state->scenario, pass, context);
}

void PinnedSearches::work(const std::vector<PinnedSearch>& searches, SearchPass pass,
                          const std::shared_ptr<Mailbox>& mailbox, const RunContext& context) {
  for (std::size_t i = 0; i < searches.size() && !context.cancelled(); ++i) {
    RunContext part = context;
    part.progress = [&, i](const Progress& inner) {
      const double done = static_cast<double>(i) + std::clamp(inner.fraction, 0.0, 1.0);
      if (context.progress)
        context.progress({searches[i].label + ": " + inner.phase, done / static_cast<double>(searches.size())});
    };
    auto result = run(searches[i], pass, part);
    // What was stopped is shown as far as it came, and stays among what is to be searched.
    const bool stopped = result && search::stopped_early(**result);
    if (!stopped && (context.cancelled() || (!result && result.error().code == ErrorCode::cancelled))) return;
    const bool final = !stopped && (pass == SearchPass::exact || !result || (*result)->exact);
    {
      const std::lock_guard lock(mailbox->mutex);
      mailbox->found.push_back({searches[i], std::move(result), final});
    }
    QMetaObject::invokeMethod(
        this, [this, mailbox] { take(mailbox); }, Qt::QueuedConnection);
  }
}

void PinnedSearches::take(const std::shared_ptr<Mailbox>& mailbox) {
  if (mailbox != running_) return;
  std::vector<Mailbox::Answer> found;
  {
    const std::lock_guard lock(mailbox->mutex);
    found.swap(mailbox->found);
  }
  for (const auto& answer : found) {
    if (answer.result)
      pin(answer.search, *answer.result);
    else
      emit failed(answer.result.error(), views::to_qt(answer.search.label));
    if (!answer.final) continue;
    const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const PinnedSearch& each) { return each.label == answer.search.label; });
    if (at != waiting_.end()) waiting_.erase(at);
  }
}

void PinnedSearches::pin(const PinnedSearch& search, const ResultPtr& result) {
  // Whatever model it searches, it was asked for to stand beside this one.
  const std::string model = document_.scenario() ? document_.scenario()->model->name : std::string();
  const QString label = views::to_qt(search.label), early = label + tr(", stopped early");
  const bool stopped = search::stopped_early(*result);
  const views::PinnedFrontier frontier{stopped ? early : label, search.method, result->points, model, result};
  auto all = document_.pinned();
  const auto at = std::find_if(all.begin(), all.end(), [&](const views::PinnedFrontier& each) {
    return (each.label == label || each.label == early) && each.method == frontier.method;
  });
  // The sketch of a method that can be stopped is a whole search, which is better than a part.
  if (stopped && at != all.end() && at->label == label) return;
  if (at == all.end())
    all.push_back(frontier);
  else
    *at = frontier;
  document_.set_pinned(std::move(all));
}

}  // namespace turnpoint::app
