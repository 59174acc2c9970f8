// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/ratio_roles.h"

#include <algorithm>

#include "core/model/model.h"

namespace turnpoint {
namespace {

class Walk {
 public:
  Walk(const RatioPlan& plan, const Model& model, const RatioCharges& charges)
      : plan_(plan), model_(model), charges_(charges) {}

  Expected<RatioRoles> run() {
    if (auto checked = charges_.check_tree(); !checked) return checked.error();
    const std::uint32_t cut = plan_.cuts.empty() ? RatioPlan::kNoCut : 0;
    if (auto done = part({plan_.whole(), cut, {0}}, loop_lengths(model_), 0); !done) return done.error();
    return std::move(made_);
  }

 private:
  struct Place {
    std::uint32_t part = 0, cut = 0;
    std::vector<std::uint32_t> firsts;  ///< in the plan's order; several: of parts that are alike
  };

  Expected<void> part(const Place& here, const LoopLengths& lengths, std::uint32_t parent) {
    const RatioPlan::Part& what = plan_.parts[here.part];
    if (what.devices == 1) {
      RatioRoles::Role role{{}, lengths};
      for (const std::uint32_t first : here.firsts) role.devices.push_back(plan_.order[first]);
      std::sort(role.devices.begin(), role.devices.end());
      made_.roles.push_back(std::move(role));
      return {};
    }
    const auto cut = charges_.cut_of(here.part, here.cut);
    if (!cut) return cut.error();
    const auto halves = charges_.divide(**cut, lengths);
    if (!halves) return halves.error();
    const std::uint32_t offset = plan_.parts[what.halves[0]].devices;
    const std::uint32_t first = here.firsts.front(), second = first + offset, end = first + what.devices;
    const auto site = std::uint32_t(made_.sites.size());
    const RatioLink link = charges_.link_between(first, second, end);
    made_.sites.push_back({parent, {}, link.inside_node, charges_.exchanges(**cut, lengths, link)});
    const auto begin = std::uint32_t(made_.roles.size());
    const bool one_half_tells = charges_.one_half_tells(here.part, **cut, *halves, first);
    Place next[2] = {{what.halves[0], (*cut)->next[0], here.firsts}, {what.halves[1], (*cut)->next[1], {}}};
    for (const std::uint32_t f : here.firsts) next[one_half_tells ? 0 : 1].firsts.push_back(f + offset);
    for (int h = 0; h < (one_half_tells ? 1 : 2); ++h)
      if (auto done = part(next[h], (*halves)[std::size_t(h)], site); !done) return done;
    for (std::uint32_t r = begin; r < made_.roles.size(); ++r) made_.sites[site].roles.push_back(r);
    return {};
  }

  const RatioPlan& plan_;
  const Model& model_;
  const RatioCharges& charges_;
  RatioRoles made_;
};

}  // namespace

Expected<RatioRoles> roles_of(const RatioPlan& plan, const Model& model, const RatioCharges& charges) {
  return Walk(plan, model, charges).run();
}

}  // namespace turnpoint
