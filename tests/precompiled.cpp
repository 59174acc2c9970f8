// SPDX-License-Identifier: Apache-2.0
// Nothing but the headers that tests have in common, parsed once for all of them (see CMakeLists.txt beside this file):
// reading them took most of the time that building a test takes.
