# Read by ctest: makes each test suite of a GoogleTest binary one test. A test of ctest's for every
# case would start thousands of processes more, which costs under a sanitizer as much as the tests.

# sap_discover_suites(BINARY PREFIX FILTER property value...)
function(sap_discover_suites binary prefix filter)
  if(NOT EXISTS "${binary}")
    # Has no label, so that a run of one label, for which only its tests were built, leaves it out.
    add_test("${prefix}NOT_BUILT" "${binary}")
    return()
  endif()
  execute_process(COMMAND "${binary}" --gtest_list_tests "--gtest_filter=${filter}"
    OUTPUT_VARIABLE listing RESULT_VARIABLE result TIMEOUT 600)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${binary} does not list its tests (${result}):\n${listing}")
  endif()
  # The line of a suite is its name and a dot, and for a type the type in a comment.
  string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+\\." suites "${listing}")
  foreach(suite IN LISTS suites)
    string(STRIP "${suite}" suite)
    string(REGEX REPLACE "\\.$" "" suite "${suite}")
    set(name "${prefix}${suite}")
    add_test("${name}" "${binary}" "--gtest_filter=${suite}.*")
    # tests/run.sh lets ctest count two processors for each of the machine's.
    set_tests_properties("${name}" PROPERTIES PROCESSORS 2 ${ARGN})
  endforeach()
endfunction()
