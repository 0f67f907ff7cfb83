# What `cmake --install` leaves: headers in include/tessera, the layers as libraries, and what find_package(tessera) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
set(headers ${CMAKE_INSTALL_INCLUDEDIR}/tessera)  # "api/tessera.hpp" is as it is here

install(TARGETS tessera_graph tessera_dsl tessera_cpu tessera_codegen tessera_jit tessera_api tessera_model
        EXPORT tessera INCLUDES DESTINATION ${headers})
install(DIRECTORY src/ DESTINATION ${headers}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.def" PATTERN prelude EXCLUDE)
install(EXPORT tessera NAMESPACE tessera:: FILE tessera-targets.cmake DESTINATION ${package})

# The libraries that an installed layer has yet to be linked with are looked for where they were found here.
set(dependencies Threads OpenSSL)
if(NOT TESSERA_FMT_HEADER_ONLY)
  list(APPEND dependencies fmt)
endif()
foreach(optional TBB PCRE2)
  if(${optional}_FOUND)
    list(APPEND dependencies ${optional})
  endif()
endforeach()
list(JOIN dependencies " " dependencies)
configure_package_config_file(cmake/tessera-config.cmake.in tessera-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(tessera-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tessera-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/tessera-config-version.cmake
              cmake/FindPCRE2.cmake DESTINATION ${package})
