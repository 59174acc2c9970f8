// SPDX-License-Identifier: Apache-2.0
// A study of batches: networks on rising numbers of devices, at the batches that a paper reports and at the largest
// that fit here, placed or split by several methods. Its file (`turnpoint/batch-study@1`, resources/manual/formats.md)
// has the questions, the paper's own figures and the answers found so far, so that it can be drawn at once and asked
// again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

struct StudiedNetwork {
  std::string model;  ///< as people name it: "builtin:wrn"
  std::string title;
  std::vector<std::int64_t> reported;  ///< the paper's batch by count of devices; 0: it has none
};

/// What one method answered on one count of devices.
struct StudyCell {
  std::string model;
  int devices = 1;
  std::string method;             ///< with parameters behind a colon
  std::string graph;              ///< parameters of all that place tasks ("whole-layers"); empty: as they have it
  bool at_reported = false;       ///< at the paper's batch; else at the largest that fits with the first method
  std::int64_t batch = 0;         ///< samples; 0: not even one fits the first method
  bool fits = false;              ///< by the simulated peak
  double time_s = 0;              ///< of the step on the simulated clock; 0 where it does not fit
  std::int64_t memory_bytes = 0;  ///< simulated peak; where nothing fits, the least that was met; 0: not known
  std::string began_as = {};      ///< whose placement the method began with; empty: says nothing
  std::string refusal = {};  ///< why nobody looked for a plan, or why there was none to judge; says nothing of fits

  bool same_question(const StudyCell& other) const;
  double samples_per_second() const { return fits && time_s > 0 ? double(batch) / time_s : 0; }
};

struct BatchStudy {
  std::string title, source;
  std::vector<std::string> says;  ///< what the paper states, a sentence each
  /// Of which each count takes so many devices; or with "{devices}" in its name, which becomes the count: what a preset
  /// reserves on a device depends on how many there are.
  std::string hardware;
  Settings settings;                 ///< batch and devices are each cell's own
  std::string says_scenario;         ///< the file's own words for both, kept as they were
  std::vector<int> devices;          ///< rising
  std::vector<std::string> methods;  ///< the first says the largest batch
  std::vector<StudiedNetwork> networks;
  std::vector<StudyCell> cells;  ///< in no particular order
  std::string made;              ///< when the cells were, all of them, for people

  const StudyCell* find(const StudyCell& question) const;
  void put(StudyCell cell);  ///< in place of one of the same question
  /// Whether `found` answers every question that has a cell: then, and only then, `made` is when these were found.
  bool all_among(const std::vector<StudyCell>& found) const;
  std::vector<std::string> graphs() const;  ///< of all cells, each once; the empty one first
};

/// Errors: bad input, at `where`.
Expected<BatchStudy> read_batch_study(std::string_view text, const std::string& where);
std::string write_batch_study(const BatchStudy& study);

struct StudyChoice {
  std::vector<std::string> models;  ///< of its networks; empty: all
  std::string graph;                ///< StudyCell::graph
};

/// Errors: usage, for a model that is not there or a graph that the study's methods do not take.
Expected<void> check_study_choice(const BatchStudy& study, const StudyChoice& choice);

/// Asks everything again that the choice names and hands each answer to `found`, on the calling thread. Cells of
/// methods that place nothing are asked with an empty `graph` alone.
///
/// The largest batch is looked for among powers of two and the paper's own, upwards from what fewer devices took, until
/// one does not fit; where that one does not fit itself, downwards from it, until one does. Batches that the first
/// method refuses say nothing of what fits and are passed over; where it has answered none at all, the cell has batch 0
/// and the refusal. Errors: usage, for a model or method that is not there; cancelled, what was found stays found.
Expected<void> run_batch_study(const BatchStudy& study, const StudyChoice& choice, const RunContext& context,
                               const std::function<void(const StudyCell&)>& found);

/// The answer of a method; of one that places nothing, whatever the graph. Null: not asked.
const StudyCell* study_cell(const BatchStudy& study, const std::string& model, int devices, const std::string& method,
                            const std::string& graph, bool at_reported);
/// What a study's method is called, with its parameters: "Data parallel (recompute)".
std::string study_method_title(const std::string& method);

/// How a method fared beside the first one, over the cells with several devices in which that one fits.
struct StudyStanding {
  std::string method;
  int cells = 0, refused = 0, does_not_fit = 0, slower = 0;  ///< slower: of those that fit, than the first method
  std::optional<double> median_speed;  ///< of those that fit: samples a second over the first method's
};
std::vector<StudyStanding> standings(const BatchStudy& study, const std::string& graph, bool at_reported);

/// Networks whose speed-up with the first method over the fewest devices that take a batch is above the number of times
/// as many devices, for every count up to `most` devices.
struct SuperlinearNetworks {
  std::vector<std::string> titles;
  int compared = 0;  ///< networks with answers on two such counts at least; of the others nothing is known
};
SuperlinearNetworks superlinear(const BatchStudy& study, const std::string& graph, bool at_reported, int most);

/// Samples a second over those on the fewest devices that fit, by count of devices; 0: does not fit or is not known.
std::vector<double> speed_ups(const BatchStudy& study, const std::string& model, const std::string& method,
                              const std::string& graph, bool at_reported);

/// Both of these in words, a sentence each, with the counts behind them; none before there are answers.
std::vector<std::string> study_findings(const BatchStudy& study, const std::string& graph, bool at_reported);

}  // namespace turnpoint
