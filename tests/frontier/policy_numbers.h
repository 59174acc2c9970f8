// SPDX-License-Identifier: Apache-2.0
// The numbers of a Policy one by one, for tests that look at each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/frontier/policy.h"

namespace turnpoint::frontier::test {

struct PolicyNumber {
  std::string name;  ///< as in policy.h, behind a preset's name and a dot
  std::size_t bytes;
  std::function<double(const Policy&)> value;
  std::function<void(Policy&, double)> multiply;
};

template <class Get>
PolicyNumber policy_number(const char* name, Get get) {
  Policy policy;
  return {name, sizeof(get(policy)),
          [get](const Policy& of) { return static_cast<double>(get(const_cast<Policy&>(of))); },
          [get](Policy& of, double factor) {
            auto& number = get(of);
            number = static_cast<std::remove_reference_t<decltype(number)>>(static_cast<double>(number) * factor);
          }};
}

/// All of them, in the order of policy.h.
inline std::vector<PolicyNumber> policy_numbers() {
#define NUMBER(name) \
  policy_number(     \
      #name, [](Policy & p) -> auto& { return p.name; })
  std::vector<PolicyNumber> numbers{NUMBER(exact.lanes),
                                    NUMBER(exact.crossings),
                                    NUMBER(exact.hull_share),
                                    NUMBER(sketch.lanes),
                                    NUMBER(sketch.crossings),
                                    NUMBER(sketch.hull_share),
                                    NUMBER(drag.open),
                                    NUMBER(drag.most_open),
                                    NUMBER(drag.apart),
                                    NUMBER(drag.buckets),
                                    NUMBER(rest.open),
                                    NUMBER(rest.most_open),
                                    NUMBER(rest.apart),
                                    NUMBER(rest.buckets),
                                    NUMBER(instant_products),
                                    NUMBER(short_products),
                                    NUMBER(direct_products),
                                    NUMBER(long_hull),
                                    NUMBER(always_whole),
                                    NUMBER(short_mass),
                                    NUMBER(shortest_ring),
                                    NUMBER(most_ring_steps),
                                    NUMBER(closing_rounds),
                                    NUMBER(closed),
                                    NUMBER(limit_rounds),
                                    NUMBER(closed_chord),
                                    NUMBER(gaps[0]),
                                    NUMBER(gaps[1]),
                                    NUMBER(gaps[2]),
                                    NUMBER(next_gap),
                                    NUMBER(first_points),
                                    NUMBER(finer),
                                    NUMBER(most_points),
                                    NUMBER(flat),
                                    NUMBER(prune_terms),
                                    NUMBER(least_part),
                                    NUMBER(few_more),
                                    NUMBER(whole_share),
                                    NUMBER(hull_gap),
                                    NUMBER(rough_gaps[0]),
                                    NUMBER(rough_gaps[1]),
                                    NUMBER(rough_gaps[2]),
                                    NUMBER(improve_share),
                                    NUMBER(limit_buckets),
                                    NUMBER(widest_beam),
                                    NUMBER(cheap_points),
                                    NUMBER(steep),
                                    NUMBER(steep_width),
                                    NUMBER(dear_steep_width),
                                    NUMBER(term_products),
                                    NUMBER(first_buckets),
                                    NUMBER(fewest_buckets),
                                    NUMBER(products_grow),
                                    NUMBER(kept_plans),
                                    NUMBER(live_plans),
                                    NUMBER(live_choices),
                                    NUMBER(enough_plans),
                                    NUMBER(live_crossings),
                                    NUMBER(few_crossings),
                                    NUMBER(lane_bytes),
                                    NUMBER(beam_points),
                                    NUMBER(most_kept),
                                    NUMBER(plan_bytes),
                                    NUMBER(few_plans),
                                    NUMBER(answer_bytes),
                                    NUMBER(prices.averages),
                                    NUMBER(prices.idle_averages),
                                    NUMBER(prices.little),
                                    NUMBER(prices.longer),
                                    NUMBER(prices.shorter),
                                    NUMBER(prices.first_step),
                                    NUMBER(prices.longest_step),
                                    NUMBER(prices.step_grows),
                                    NUMBER(prices.step_shrinks),
                                    NUMBER(prices.step_patience),
                                    NUMBER(prices.idle_climbs),
                                    NUMBER(prices.climbs),
                                    NUMBER(prices.fresh),
                                    NUMBER(wide.rounds),
                                    NUMBER(wide.open_time),
                                    NUMBER(wide.assignments),
                                    NUMBER(wide.most_terms),
                                    NUMBER(wide.comfortable_terms),
                                    NUMBER(wide.part_share),
                                    NUMBER(wide.dives)};
#undef NUMBER
  return numbers;
}

}  // namespace turnpoint::frontier::test
