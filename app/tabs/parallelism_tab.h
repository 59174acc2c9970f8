// SPDX-License-Identifier: Apache-2.0
// The Parallelism tab: keeps its chart on the scenario and asks every checked method for its fastest plan on each count
// of devices, or for the largest batch that fits it, in the background, only while somebody looks and the main chart's
// own searches are through.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/tab.h"
#include "app/tabs/largest_batch_lines.h"
#include "core/import/source/model_source.h"
#include "core/search/objectives.h"
#include "views/parallelism/parallelism_view.h"

namespace turnpoint::app {

class ParallelismTab : public ViewTab<views::ParallelismView> {
 public:
  explicit ParallelismTab(const TabParts& parts);

  /// Everything asked for is there; nothing runs.
  bool settled() const;
  int searches() const { return searches_; }  ///< counted for tests
  int batch_searches() const { return batches_.searches(); }
  bool export_to(const QString& path);  ///< .svg or .csv by suffix

 protected:
  void looked_at_changed(bool looked_at) override;
  QJsonObject save_state() const override;
  void restore_state(const QJsonObject& state) override;

 private:
  /// What one method answered on one count; kept while nothing but the price or the scenario's own count changes. What
  /// fits is judged by simulated peaks (core/schedule/fitting.h), but for sketches.
  struct Answer {
    std::int64_t memory_bytes = 0;  ///< the simulated peak where it is known
    double time_s = 0;
    bool fits = false, coarse = false;
    bool stopped = false;  ///< the best until the user stopped it, here or in the list of methods; not searched unasked
    std::string no_peak;   ///< why plain sums say what fits; empty: peaks do
    std::string refusal;
    std::optional<Error> error;
  };
  using Key = std::pair<std::string, int>;
  /// All that an answer depends on besides method and count.
  struct Subject {
    ModelSourcePtr source;  ///< the model bound to it is another one after every change of the devices
    std::int64_t batch = 0, sequence = 0;
    ClusterPtr cluster;
    Settings settings;
    friend bool operator==(const Subject&, const Subject&) = default;
  };
  struct Job {
    Contender method;
    int devices = 0;
    SearchPass pass = SearchPass::exact;
  };
  struct Mailbox;
  static const QString kPlansPurpose;  ///< of its tasks
  static constexpr int kMostDevices = 4096;

  void scenario_changed();
  void follow_runner();
  Subject subject() const;
  std::vector<int> counts() const;
  std::vector<Job> missing() const;
  void start_if_due();
  void start(std::vector<Job> jobs);
  bool of_batches() const;  ///< the largest batch is shown in place of the time
  void largest_batch_chosen();
  void start_batches();
  std::vector<std::string> checked() const;
  /// Devices of all counts, without a price of its own.
  ScenarioPtr whole_scenario() const;
  void stop_all();
  void search_stopped_again();
  views::ParallelismPoint time_point(const Key& key) const;
  views::ParallelismPoint batch_point(const Key& key) const;
  const Error* failure() const;
  /// In place of a chart where nothing is known yet.
  QString nothing_words(const std::vector<int>& counts) const;
  /// On the worker.
  void work(const std::vector<Job>& jobs, const ScenarioPtr& whole, const std::shared_ptr<Mailbox>& mailbox,
            const RunContext& context);
  static Answer answer_of(const Result& result, bool coarse);
  void take(const std::shared_ptr<Mailbox>& mailbox);
  void ended(const std::shared_ptr<Mailbox>& mailbox, bool finished);
  void show();
  void show_state();
  void forget();

  LargestBatchLines batches_;
  Subject subject_;
  std::map<Key, Answer> answers_;
  std::map<Key, Answer> stale_;       ///< of the same model and machine under other settings: shown until replaced
  std::shared_ptr<Mailbox> running_;  ///< of the newest task; null: none
  int most_ = 0;                      ///< the range the user chose; 0: the hardware's
  bool looked_at_ = false, stopped_ = false;
  int searches_ = 0;
};

}  // namespace turnpoint::app
