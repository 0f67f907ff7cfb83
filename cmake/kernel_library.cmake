# A kernel library that libtessera_c opens (tessera/c/export.hpp): it contains a private Tessera, and exports only its entry point.
function(tessera_kernel_library name)
  add_library(${name} SHARED ${ARGN})
  target_link_libraries(${name} PRIVATE tessera::tessera)
  target_link_options(${name} PRIVATE LINKER:--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kernel_library.map)
  set_target_properties(${name} PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kernel_library.map)
endfunction()
