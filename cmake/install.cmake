# For `cmake --install` and CPack: the headers, an archive and a shared library of tessera and of its model, and the files for
# find_package(tessera) and pkg-config.
if(TESSERA_SANITIZE)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

install(DIRECTORY include/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(libraries tessera)
if(TARGET tessera_model)
  list(APPEND libraries tessera_model)
endif()
foreach(kind static shared)
  list(TRANSFORM libraries APPEND _${kind} OUTPUT_VARIABLE targets)
  install(TARGETS ${targets} EXPORT tessera-${kind} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT tessera-${kind} NAMESPACE tessera:: FILE tessera-${kind}.cmake DESTINATION ${package})
endforeach()

# The C API, and the Python module, which finds the library relative to its own place.
install(TARGETS tessera_c LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(PROGRAMS $<TARGET_FILE:tune-worker> DESTINATION ${CMAKE_INSTALL_LIBDIR}/tessera COMPONENT programs)
install(FILES samples/python/tessera.py DESTINATION ${CMAKE_INSTALL_LIBDIR}/tessera/python)
# Printers for gdb and lldb. They find the table of ops in the headers.
install(FILES tools/debugger/tessera_format.py tools/debugger/tessera_gdb.py tools/debugger/tessera_lldb.py
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/tessera/debugger)

# Libraries that an archive must be linked with; a shared library already links them.
set(dependencies Threads)
set(archives_of_tessera "-ldl -pthread")
if(NOT TESSERA_FMT_HEADER_ONLY)
  list(APPEND dependencies fmt)
  string(PREPEND archives_of_tessera "-lfmt ")
endif()
if(TBB_FOUND)
  list(APPEND dependencies TBB)
  string(PREPEND archives_of_tessera "-ltbb ")
endif()
if(PCRE2_FOUND)
  list(APPEND dependencies PCRE2)
  set(archives_of_tessera_model "-lpcre2-8")
endif()
if(UTF8PROC_FOUND)
  list(APPEND dependencies UTF8PROC)
  string(APPEND archives_of_tessera_model " -lutf8proc")
endif()
list(JOIN dependencies " " dependencies)
configure_package_config_file(cmake/tessera-config.cmake.in tessera-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(tessera-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tessera-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/tessera-config-version.cmake
              cmake/FindPCRE2.cmake cmake/FindUTF8PROC.cmake cmake/kernel_library.cmake cmake/kernel_library.map DESTINATION ${package})
# For pkg-config: NAME, the shared library, and NAME-static, the archive. An rpath lets a program find its libraries, and -isystem
# suppresses warnings in the headers. In /usr neither is needed, and -isystem would hide the compiler's headers.
file(RELATIVE_PATH pc_to_include ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})
foreach(library ${libraries})
  string(REPLACE "_" "-" name ${library})
  foreach(suffix "" -static)
    set(linked "-l${library}")
    if(suffix)
      set(linked "-l:lib${library}.a ${archives_of_${library}}")
    endif()
    set(include_flag "-I")
    set(rpath "")
    configure_file(cmake/${name}.pc.in pkgconfig/usr/${name}${suffix}.pc @ONLY)
    set(include_flag "-isystem ")
    set(rpath " -Wl,-rpath,\${libdir}")
    configure_file(cmake/${name}.pc.in pkgconfig/elsewhere/${name}${suffix}.pc @ONLY)
  endforeach()
endforeach()
install(CODE "
  set(folder elsewhere)
  if(CMAKE_INSTALL_PREFIX MATCHES \"^/usr/?$\")
    set(folder usr)
  endif()
  file(INSTALL \"${CMAKE_CURRENT_BINARY_DIR}/pkgconfig/\${folder}/\"
       DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig\")")

# cpack -G DEB makes a package of all this.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tessera)
set(CPACK_PACKAGE_CONTACT "the Tessera authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libfmt-dev, libtbb-dev, libpcre2-dev, libutf8proc-dev")  # for the archives
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "nvidia-cuda-toolkit, g++")  # the emulator compiles with g++
include(CPack)
