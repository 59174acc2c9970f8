// SPDX-License-Identifier: Apache-2.0
// What screen readers take the views' own widgets for. Without it Qt calls a plain widget a filler, which they pass over.
#pragma once

namespace turnpoint::views {

/// Charts are charts, drawn graphs and bars are graphics, heads of sections are headings. Once is enough; more do no harm.
void install_accessible_roles();

}  // namespace turnpoint::views
