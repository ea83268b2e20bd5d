# Files that `cmake --install` copies, by component:
#
#   programs      bin/: sap-server, sap-client; their manuals and completion for bash, zsh, fish;
#                 sap-worlds, which sap-server starts
#   development   lib/sap_islands/: the client library for C++ and the simulation, as archives;
#                 include/sap_islands/: their public headers; share/sap_islands/proto/: the schema;
#                 the CMake package sap_islands; pkg-config files
#   library       lib/: the shared library of client/c; its headers, include/sap_islands*.h, and
#                 its name without a version belong to development; in lib/sap_islands/ the library
#                 that is preloaded into programs of MuJoCo
#   client_library  lib/: the one that also reaches servers
#   dart_library  lib/: the constraint solver of DART, where DART is; its header,
#                 include/sap_islands/dart.h, belongs to dart_development; in lib/sap_islands/ the
#                 library that is preloaded
#
# CMake users link sap_islands::client, sap_islands::simulation or sap_islands::c, also without an
# installation: add_subdirectory and FetchContent define the same names. Each has an export of its
# own, so that a user of one needs the dependencies of that one only.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(archives ${CMAKE_INSTALL_LIBDIR}/sap_islands)
set(headers ${CMAKE_INSTALL_INCLUDEDIR}/sap_islands)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/sap_islands)

# public_headers(TARGET file...): headers of a target that users may include, from the top of the
# tree. What they include is public as well, which tests/packaging checks.
function(public_headers target)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/)
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARGN})
endfunction()

# public_name(NAME TARGET [COMPONENT]): an installed target is sap_islands::NAME.
function(public_name name target)
  set(component development)
  if(ARGC GREATER 2)
    set(component ${ARGV2})
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(EXPORT sap_islands_${name}
    FILE sap_islands-${name}.cmake
    NAMESPACE sap_islands::
    DESTINATION ${package}
    COMPONENT ${component})
endfunction()

# public_library(NAME TARGET [target...]): archives; all but TARGET have names that users do not
# write.
function(public_library name target)
  install(TARGETS ${target} ${ARGN}
    EXPORT sap_islands_${name}
    COMPONENT development
    ARCHIVE DESTINATION ${archives}
    FILE_SET HEADERS DESTINATION ${headers})
  public_name(${name} ${target})
endfunction()

install(TARGETS sap-server sap-client sap-worlds RUNTIME COMPONENT programs)
# Manuals from --help, where help2man is; shells complete commands and flags from it as well.
find_program(SAP_HELP2MAN help2man)
set(completion ${PROJECT_SOURCE_DIR}/deploy/completion)
foreach(program sap-server sap-client)
  if(SAP_HELP2MAN)
    set(manual ${PROJECT_BINARY_DIR}/manuals/${program}.1)
    string(JOIN " " command ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${program}>)
    add_custom_command(OUTPUT ${manual}.gz
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/manuals
      COMMAND ${SAP_HELP2MAN} --no-info --name "solver of frictional contact" --output ${manual}
        ${command}
      COMMAND gzip -9nf ${manual}
      DEPENDS ${program}
      VERBATIM)
    list(APPEND manuals ${manual}.gz)
  endif()
  install(FILES ${completion}/sap-islands.bash COMPONENT programs
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${program})
  install(FILES ${completion}/sap-islands.fish COMPONENT programs
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME ${program}.fish)
endforeach()
install(FILES ${completion}/_sap-islands COMPONENT programs
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
add_custom_target(manuals ALL DEPENDS ${manuals})
# A build of some targets has none.
install(FILES ${manuals} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs OPTIONAL)

public_headers(sap_solver solver/differentiate.h)
public_headers(sap_solver_parallel solver/parallel/storage_bytes.h)
public_headers(sap_solver_problem
  solver/problem/constraint_parameters.h
  solver/problem/contact_solution.h
  solver/problem/derivatives.h
  solver/problem/input_differential.h
  solver/problem/input_selection.h
  solver/problem/problem_differential.h
  solver/problem/problem_error.h
  solver/problem/problem_fields.h
  solver/problem/problem_fields.inc
  solver/problem/solution_fields.inc
  solver/problem/solver_options.h)
public_headers(sap_solver_engine
  solver/engine/derivatives_request.h
  solver/engine/engine_error.h
  solver/engine/engine_limits.h
  solver/engine/server_limits.inc)
file(GLOB client_headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS client/cpp/*.h)
file(GLOB simulation_headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
  client/cpp/simulation/*.h)
public_headers(sap_client ${client_headers})
public_headers(sap_simulation ${simulation_headers})

set(solver_targets sap_flags sap_solver_parallel sap_solver_cholesky sap_solver_problem
  sap_solver_pools sap_solver_model sap_solver_newton sap_solver_derivatives sap_solver
  sap_solver_engine sap_solver_split)
public_library(client sap_client sap_client_backend sap_client_transport sap_codec sap_proto
  ${solver_targets})
public_library(simulation sap_simulation)

target_sources(sap_islands PUBLIC
  FILE_SET HEADERS BASE_DIRS client/c FILES
    client/c/sap_islands.h
    client/c/sap_islands_types.h
    client/c/sap_islands_worlds.h)
install(TARGETS sap_islands
  EXPORT sap_islands_c
  LIBRARY COMPONENT library NAMELINK_COMPONENT development
  FILE_SET HEADERS COMPONENT development)
public_name(c sap_islands)
if(TARGET sap_islands_mujoco)
  install(TARGETS sap_islands_mujoco LIBRARY DESTINATION ${archives} COMPONENT library)
  install(FILES client/mujoco/python_calls.h client/mujoco/sap_mujoco.h
    DESTINATION ${headers}/client/mujoco COMPONENT development)
endif()
if(TARGET sap_islands_client)
  target_sources(sap_islands_client PUBLIC
    FILE_SET HEADERS BASE_DIRS client/c FILES
      client/c/sap_islands.h
      client/c/sap_islands_types.h
      client/c/sap_islands_worlds.h)
  install(TARGETS sap_islands_client
    EXPORT sap_islands_c_client
    LIBRARY COMPONENT client_library NAMELINK_COMPONENT development
    FILE_SET HEADERS COMPONENT development)
  public_name(c_client sap_islands_client)
endif()

if(TARGET sap_islands_dart)
  target_sources(sap_islands_dart PUBLIC
    FILE_SET HEADERS BASE_DIRS client/dart FILES client/dart/sap_islands/dart.h)
  install(TARGETS sap_islands_dart
    EXPORT sap_islands_dart
    LIBRARY COMPONENT dart_library NAMELINK_COMPONENT dart_development
    FILE_SET HEADERS COMPONENT dart_development)
  public_name(dart sap_islands_dart dart_development)
  install(TARGETS sap_islands_dart_preload
    LIBRARY DESTINATION ${archives} COMPONENT dart_library)
endif()

configure_package_config_file(deploy/cmake/sap_islandsConfig.cmake.in
  ${PROJECT_BINARY_DIR}/sap_islandsConfig.cmake
  INSTALL_DESTINATION ${package}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sap_islandsConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sap_islandsConfig.cmake
              ${PROJECT_BINARY_DIR}/sap_islandsConfigVersion.cmake
  DESTINATION ${package}
  COMPONENT development)

# pkg-config finds files relative to its own, so that an installation can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE prefix_from_pkgconfig)
list(TRANSFORM alignment PREPEND -D OUTPUT_VARIABLE pkgconfig_definitions)
list(JOIN pkgconfig_definitions " " pkgconfig_definitions)
foreach(name sap_islands sap_islands_c_client sap_islands_client sap_islands_simulation)
  configure_file(deploy/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT development)
endforeach()

install(DIRECTORY proto/sap
  DESTINATION ${CMAKE_INSTALL_DATADIR}/sap_islands/proto
  COMPONENT development
  FILES_MATCHING PATTERN *.proto)

include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
