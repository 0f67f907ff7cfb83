# Embeds text files into a library.

# Generates `output`, with a line {"path", "content"} for each file of `folder` that ends in `extension`; paths are relative to
# `folder`. It is on the private include path of `target`. A new or changed file makes CMake run again.
function(tessera_embed target folder extension output)
  cmake_path(ABSOLUTE_PATH folder)
  file(GLOB_RECURSE paths CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*${extension})
  set(lines "")
  foreach(path ${paths})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${path})
    file(READ ${folder}/${path} content)
    string(APPEND lines "{\"${path}\", R\"file(${content})file\"},\n")
  endforeach()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
  file(WRITE ${generated}/${output}.new "${lines}")
  file(COPY_FILE ${generated}/${output}.new ${generated}/${output} ONLY_IF_DIFFERENT)
  target_include_directories(${target} PRIVATE ${generated})
endfunction()
