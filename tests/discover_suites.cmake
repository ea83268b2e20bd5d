# Read by ctest: makes each test suite of a GoogleTest binary one test. A test of ctest's for every
# case would start thousands of processes more, which costs under a sanitizer as much as the tests.

# sap_discover_suites(BINARY PREFIX FILTER property value...)
function(sap_discover_suites binary prefix filter)
  if(NOT EXISTS "${binary}")
    # Fails in a run of one of its labels, for which it should have been built.
    add_test("${prefix}NOT_BUILT" "${binary}")
    set_tests_properties("${prefix}NOT_BUILT" PROPERTIES ${ARGN})
    return()
  endif()
  execute_process(COMMAND "${binary}" --gtest_list_tests "--gtest_filter=${filter}"
    OUTPUT_VARIABLE listing RESULT_VARIABLE result TIMEOUT 600)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${binary} does not list its tests (${result}):\n${listing}")
  endif()
  file(STRINGS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/rings.txt" rings REGEX "^[23] ${prefix}")
  # The line of a suite is its name and a dot, and for a type the type in a comment.
  string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+\\." suites "${listing}")
  foreach(suite IN LISTS suites)
    string(STRIP "${suite}" suite)
    string(REGEX REPLACE "\\.$" "" suite "${suite}")
    set(name "${prefix}${suite}")
    add_test("${name}" "${binary}" "--gtest_filter=${suite}.*")
    set(properties "${ARGN}")
    foreach(ring IN ITEMS 2 3)
      list(FIND rings "${ring} ${name}" at)
      if(NOT at EQUAL -1)
        string(REGEX REPLACE "^LABELS;([^;]*)" "LABELS;\\1+ring${ring}" properties "${properties}")
      endif()
    endforeach()
    # tests/run.sh lets ctest count two processors for each of the machine's.
    set_tests_properties("${name}" PROPERTIES PROCESSORS 2 ${properties})
  endforeach()
endfunction()
