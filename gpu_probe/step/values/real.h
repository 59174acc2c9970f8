// SPDX-License-Identifier: Apache-2.0
// The number in which a step is computed, and where. The sources of this folder that say TURNPOINT_REAL are compiled
// three times: in double, so that a plan that computes something else cannot hide behind rounding; in float, to be
// timed; and in float on a CUDA device (place.h).
#pragma once

#if defined(TURNPOINT_STEP_CUDA)
#define TURNPOINT_REAL in_cuda
#elif defined(TURNPOINT_STEP_FLOAT)
#define TURNPOINT_REAL in_float
#else
#define TURNPOINT_REAL in_double
#endif

namespace turnpoint::step {

namespace TURNPOINT_REAL {
#if defined(TURNPOINT_STEP_FLOAT) || defined(TURNPOINT_STEP_CUDA)
using Real = float;
#else
using Real = double;
#endif
#ifdef TURNPOINT_STEP_CUDA
inline constexpr bool kOnDevice = true;
#else
inline constexpr bool kOnDevice = false;
#endif
}  // namespace TURNPOINT_REAL
using namespace TURNPOINT_REAL;

}  // namespace turnpoint::step
