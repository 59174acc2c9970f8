# What `cmake --install` and the Debian package put where. Included by the top-level CMakeLists.txt.
include(GNUInstallDirs)

install(TARGETS turnpoint-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set(manual_pages turnpoint-cli.1 turnpoint-probe.1 turnpoint-export-model.1)
if(TARGET turnpoint)
  install(TARGETS turnpoint turnpoint-layout RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES packaging/org.turnpoint.Turnpoint.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
  install(FILES packaging/org.turnpoint.Turnpoint.metainfo.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/metainfo)
  install(FILES packaging/org.turnpoint.Turnpoint.mime.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages
    RENAME org.turnpoint.Turnpoint.xml)
  install(FILES packaging/turnpoint.svg DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)
  list(APPEND manual_pages turnpoint.1 turnpoint-layout.1)
endif()
install(DIRECTORY resources/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/turnpoint)
install(DIRECTORY resources/studies DESTINATION ${CMAKE_INSTALL_DATADIR}/turnpoint FILES_MATCHING PATTERN "*.turnpoint")
# A command without the suffix of its language, as Debian asks.
install(PROGRAMS packaging/export_model.py DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME turnpoint-export-model)
install(FILES NOTICE README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/turnpoint)
# README's links lead there.
install(DIRECTORY resources/manual DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/turnpoint/resources)
install(FILES packaging/deb/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/turnpoint)

# Debian wants its documents compressed, without a time in them.
find_program(TURNPOINT_GZIP gzip)
if(TURNPOINT_GZIP)
  set(compressed ${PROJECT_BINARY_DIR}/packaging)
  file(MAKE_DIRECTORY ${compressed})
  macro(turnpoint_install_compressed source name destination)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${source})
    execute_process(COMMAND ${TURNPOINT_GZIP} -9nc ${PROJECT_SOURCE_DIR}/${source} OUTPUT_FILE ${compressed}/${name})
    install(FILES ${compressed}/${name} DESTINATION ${destination})
  endmacro()
  turnpoint_install_compressed(CHANGELOG.md changelog.gz ${CMAKE_INSTALL_DATADIR}/doc/turnpoint)
  foreach(page ${manual_pages})
    turnpoint_install_compressed(packaging/man/${page} ${page}.gz ${CMAKE_INSTALL_MANDIR}/man1)
  endforeach()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME turnpoint)
set(CPACK_PACKAGE_VENDOR "The Turnpoint developers")
set(CPACK_PACKAGE_CONTACT "The Turnpoint developers <developers@turnpoint.invalid>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "fonts-dejavu-core, qt6-wayland, libdnnl3 | libdnnl2")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libopenblas0-pthread | libopenblas0, openmpi-bin | mpich, python3")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "explore how to train a deep-learning model on several GPUs")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Turnpoint loads a neural network and a description of a GPU cluster, searches
the ways to split every operator over the devices, and draws what can be
achieved as one curve: memory on each device against the time of an iteration.
A point of the curve is a complete plan that can be inspected and exported.

The package holds the window (turnpoint), the command line (turnpoint-cli),
the process that measures devices and runs training steps (turnpoint-probe),
the one that lays out graphs (turnpoint-layout) and a script that writes the
graph of a PyTorch model (turnpoint-export-model, needs PyTorch).")
# What is built against an MPI is a package of its own, so that nobody needs an MPI for the rest.
if(TARGET turnpoint-probe-mpi)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_ALL Unspecified mpi)
  set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME turnpoint)
  set(CPACK_COMPONENT_UNSPECIFIED_DESCRIPTION ${CPACK_DEBIAN_PACKAGE_DESCRIPTION})
  set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_SUGGESTS "turnpoint-mpi, ${CPACK_DEBIAN_PACKAGE_SUGGESTS}")
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME turnpoint-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "turnpoint (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS "openmpi-bin | mpich")
  set(CPACK_DEBIAN_MPI_PACKAGE_SUGGESTS "")
  set(CPACK_COMPONENT_MPI_DESCRIPTION "MPI between the hosts of turnpoint-probe
turnpoint-probe loads this where mpirun or srun has started it on several
hosts and --transport asks for MPI, or its default finds it.")
endif()
include(CPack)
