# Target `coverage_report`: what the tests run since the last build have covered, as pages. Included by the top-level
# CMakeLists.txt; there where lcov is installed and the compiler writes gcov data (preset coverage).
find_program(TURNPOINT_LCOV lcov)
find_program(TURNPOINT_GENHTML genhtml)
if(TURNPOINT_LCOV AND TURNPOINT_GENHTML AND CMAKE_CXX_FLAGS MATCHES "--coverage")
  set(info ${PROJECT_BINARY_DIR}/coverage.info)
  add_custom_target(coverage_report
    COMMAND ${TURNPOINT_LCOV} --quiet --capture --directory ${PROJECT_BINARY_DIR} --base-directory ${PROJECT_SOURCE_DIR}
            --no-external --output-file ${info}
    COMMAND ${TURNPOINT_LCOV} --quiet --remove ${info} "${PROJECT_SOURCE_DIR}/tests/*" "${PROJECT_BINARY_DIR}/*" --output-file ${info}
    COMMAND ${TURNPOINT_GENHTML} --quiet --output-directory ${PROJECT_BINARY_DIR}/report ${info}
    COMMAND ${TURNPOINT_LCOV} --summary ${info}
    COMMAND ${CMAKE_COMMAND} -E echo "${PROJECT_BINARY_DIR}/report/index.html"
    VERBATIM)
endif()
