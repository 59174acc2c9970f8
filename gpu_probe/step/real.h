// SPDX-License-Identifier: Apache-2.0
// The number in which a step is computed. The sources of this folder that say TURNPOINT_REAL are compiled twice: in
// double, so that a plan that computes something else cannot hide behind rounding, and in float, to be timed.
#pragma once

#ifdef TURNPOINT_STEP_FLOAT
#define TURNPOINT_REAL in_float
#else
#define TURNPOINT_REAL in_double
#endif

namespace turnpoint::step {

namespace TURNPOINT_REAL {
#ifdef TURNPOINT_STEP_FLOAT
using Real = float;
#else
using Real = double;
#endif
}  // namespace TURNPOINT_REAL
using namespace TURNPOINT_REAL;

}  // namespace turnpoint::step
