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
  std::vector<PolicyNumber> numbers{
      NUMBER(instant_products), NUMBER(short_products), NUMBER(term_products), NUMBER(short_part),   NUMBER(lanes),
      NUMBER(closed),           NUMBER(crossings),      NUMBER(hull_share),    NUMBER(gap),          NUMBER(next_gap),
      NUMBER(first_points),     NUMBER(finer),          NUMBER(first_buckets), NUMBER(most_buckets), NUMBER(steep),
      NUMBER(steep_width),      NUMBER(drag_open),      NUMBER(most_open),     NUMBER(rest_open),    NUMBER(kept_plans),
      NUMBER(few_choices),      NUMBER(enough_plans),   NUMBER(bytes),         NUMBER(wide_rounds),  NUMBER(wide_terms),
      NUMBER(wide_dives),       NUMBER(price_steps),    NUMBER(price_patience)};
#undef NUMBER
  return numbers;
}

}  // namespace turnpoint::frontier::test
