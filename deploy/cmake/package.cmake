# Debian packages by CPack (deploy/deb.sh):
#
#   sap-islands           sap-server, sap-client, the units of deploy/, their user and directories
#   libsap-islands0       the shared library for C and other languages
#   libsap-islands-client0  the one that also reaches servers
#   libsap-islands-dev    the libraries for C and C++ with headers and schema
#   libsap-islands-dart0, libsap-islands-dart-dev  the constraint solver of DART, where DART is
#
# Included by install.cmake. What only a package has is in the component service and in those of the
# documents, which `cmake --install` leaves out.
set(debian ${PROJECT_SOURCE_DIR}/deploy/debian)
set(generated ${PROJECT_BINARY_DIR}/debian)

# The units as they are, except for the place of the programs.
foreach(unit sap-server sap-proxy)
  file(READ ${PROJECT_SOURCE_DIR}/deploy/${unit}.service text)
  string(REPLACE /usr/local/bin/ /usr/bin/ text "${text}")
  file(CONFIGURE OUTPUT ${generated}/${unit}.service CONTENT "${text}" @ONLY)
  install(FILES ${generated}/${unit}.service
    DESTINATION lib/systemd/system COMPONENT service EXCLUDE_FROM_ALL)
endforeach()
install(FILES deploy/sap-server.logrotate
  DESTINATION /etc/logrotate.d RENAME sap-server COMPONENT service EXCLUDE_FROM_ALL)
install(FILES deploy/haproxy.cfg
  DESTINATION /etc/sap-proxy COMPONENT service EXCLUDE_FROM_ALL)

# The programs need these instructions; the control script refuses a processor without them.
set(needed_flags "avx2 bmi2 fma")
if(SAP_PORTABLE OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(needed_flags "")
endif()
configure_file(${debian}/preinst.in ${generated}/preinst @ONLY)
set(scripts ${generated}/preinst ${debian}/postinst ${debian}/prerm ${debian}/postrm)

# Date and form of the changelog that Debian's tools read; CHANGELOG.md has the text.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(${debian}/changelog.in ${generated}/changelog @ONLY)
execute_process(COMMAND gzip -9nkf ${generated}/changelog COMMAND_ERROR_IS_FATAL ANY)

# debian_package(NAME COMPONENT SECTION SUMMARY): the documents that each package has.
function(debian_package name group section summary)
  install(FILES ${debian}/copyright ${generated}/changelog.gz
    DESTINATION share/doc/${name} COMPONENT ${group}_documents EXCLUDE_FROM_ALL)
  install(FILES ${debian}/${name}.lintian-overrides
    DESTINATION share/lintian/overrides RENAME ${name}
    COMPONENT ${group}_documents EXCLUDE_FROM_ALL)
  string(TOUPPER ${group} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION ${summary} PARENT_SCOPE)
endfunction()

debian_package(sap-islands server science
  "Solver of frictional contact as a gRPC service
Solves one time step of rigid and articulated bodies with frictional contact,
joint limits, couplers, motors and other constraints, island by island, with a
certificate of accuracy. Contains sap-server with its systemd unit, sap-worlds,
which it starts to step worlds of MuJoCo, and the command sap-client.")
debian_package(libsap-islands0 library libs
  "Shared library that solves frictional contact
The solver of sap-islands within the process, behind a C interface to which
other languages can bind.")
debian_package(libsap-islands-client0 client_library libs
  "Shared library that solves frictional contact, also at servers
The solver of sap-islands within the process and the client of sap-server,
behind a C interface to which other languages can bind. Holds gRPC, hidden.")
debian_package(libsap-islands-dev sdk libdevel
  "Libraries for C and C++ that solve frictional contact
Headers of libsap-islands0 and libsap-islands-client0; the client of sap-server
for C++, which also solves within the process, and a simulation of rigid
bodies, as archives with headers; CMake package, pkg-config files and the
schema of the service.")
set(dart_groups)
if(TARGET sap_islands_dart)
  set(dart_groups dart_library dart_sdk)
  debian_package(libsap-islands-dart0 dart_library libs
    "Constraint solver for DART that solves frictional contact
Takes the place of the solver of DART's worlds for contacts, joint limits,
motors and constraints of users. Solves within the process, or with
libsap-islands-client0 at servers.")
  debian_package(libsap-islands-dart-dev dart_sdk libdevel
    "Constraint solver for DART, development files
Header and CMake files of libsap-islands-dart0.")
  set(CPACK_DEBIAN_DART_LIBRARY_PACKAGE_DEPENDS "libsap-islands0 (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_DART_LIBRARY_PACKAGE_SUGGESTS
    "libsap-islands-client0 (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_DART_SDK_PACKAGE_DEPENDS "libsap-islands-dart0 (= ${PROJECT_VERSION}), \
libsap-islands-dev (= ${PROJECT_VERSION}), libdart-dev, libdart-collision-ode-dev")
endif()
set(CPACK_DEBIAN_SERVER_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS adduser)
# For the law RUN of worlds.
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS "libsap-islands0 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS "haproxy, logrotate")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${scripts} ${generated}/conffiles)
file(WRITE ${generated}/conffiles "/etc/logrotate.d/sap-server\n/etc/sap-proxy/haproxy.cfg\n")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
file(WRITE ${generated}/triggers "activate-noawait ldconfig\n")
foreach(key LIBRARY CLIENT_LIBRARY DART_LIBRARY)
  set(CPACK_DEBIAN_${key}_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA ${generated}/triggers)
endforeach()
set(CPACK_DEBIAN_SDK_PACKAGE_DEPENDS "libsap-islands0 (= ${PROJECT_VERSION}), \
libsap-islands-client0 (= ${PROJECT_VERSION}), \
libeigen3-dev, libexpected-dev, libfcl-dev, libgrpc++-dev, \
libmetis-dev, libprotobuf-dev, libtbb-dev, zlib1g-dev")

set(CPACK_GENERATOR DEB)
if(CMAKE_CROSSCOMPILING)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
    ${CMAKE_SYSROOT}/lib/aarch64-linux-gnu ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "sap-islands maintainers <sap-islands@localhost>")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PACKAGE_NAME sap-islands)
set(CPACK_PACKAGE_VENDOR "sap-islands")
include(CPack)
foreach(group server library client_library sdk ${dart_groups})
  cpack_add_component_group(${group})
  cpack_add_component(${group}_documents GROUP ${group})
endforeach()
cpack_add_component(programs GROUP server)
cpack_add_component(service GROUP server)
cpack_add_component(library GROUP library)
cpack_add_component(client_library GROUP client_library)
cpack_add_component(development GROUP sdk)
if(dart_groups)
  cpack_add_component(dart_library GROUP dart_library)
  cpack_add_component(dart_development GROUP dart_sdk)
endif()
