# Installs the programs as bin/tessera-NAME, since other programs may be called NAME, with manual pages and
# completions.
include(GNUInstallDirs)
foreach(program generate score tokenize inspect demo throughput perplexity tune)
  set(name tessera-${program})
  if(program STREQUAL throughput)
    set(name tessera-bench)  # as llama-bench; in a checkout, bench measures kernels
  endif()
  set(folder ${CMAKE_BINARY_DIR}/installed/${program})
  install(PROGRAMS $<TARGET_FILE:${program}> DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME ${name} COMPONENT programs)
  if(CMAKE_CROSSCOMPILING)
    continue()  # the program cannot run here to print its pages
  endif()
  # Called by its installed name, the program prints that name.
  set(called ${folder}/${name})
  add_custom_command(OUTPUT ${called}.1 ${called}.bash ${folder}/_${name} ${called}.fish DEPENDS ${program} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:${program}> ${called}
    COMMAND ${called} --man > ${called}.1
    COMMAND ${called} --completion bash > ${called}.bash
    COMMAND ${called} --completion zsh > ${folder}/_${name}
    COMMAND ${called} --completion fish > ${called}.fish)
  add_custom_target(${program}_pages ALL DEPENDS ${called}.1)
  install(FILES ${called}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
  install(FILES ${called}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${name}
          COMPONENT programs)
  install(FILES ${folder}/_${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT programs)
  install(FILES ${called}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT programs)
endforeach()
install(DIRECTORY samples/models/storyteller-6m DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/models COMPONENT programs)
