# Pages that are made of data: build/docs, which the package has as share/doc/tessera.
set(pages ${CMAKE_SOURCE_DIR}/build/docs)
if(NOT CMAKE_BINARY_DIR MATCHES "^${CMAKE_SOURCE_DIR}/build/")
  set(pages ${CMAKE_BINARY_DIR}/docs)
endif()
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
set(made "")
if(Python3_FOUND)
  file(GLOB results CONFIGURE_DEPENDS bench/results/*.json)
  add_custom_command(OUTPUT ${pages}/measurements.md DEPENDS scripts/performance scripts/results.py ${results} VERBATIM
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/performance ${CMAKE_SOURCE_DIR}/bench/results ${pages}/measurements.md)
  add_custom_command(OUTPUT ${pages}/kernels.md DEPENDS scripts/kernels bench/results/machine_code/kernels.json VERBATIM
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/kernels --page ${pages}/kernels.md)
  list(APPEND made ${pages}/measurements.md ${pages}/kernels.md)
endif()
if(TARGET opcheck)
  file(GLOB results CONFIGURE_DEPENDS bench/results/opcheck/*.json)
  add_custom_command(OUTPUT ${pages}/op-coverage.md DEPENDS opcheck ${results} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
    COMMAND sh -c "\"$0\" coverage > \"$1\"" $<TARGET_FILE:opcheck> ${pages}/op-coverage.md)
  list(APPEND made ${pages}/op-coverage.md)
endif()
add_custom_target(pages ALL DEPENDS ${made})
install(FILES ${made} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT programs)
