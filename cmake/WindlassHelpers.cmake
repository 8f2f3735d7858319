# Functions that every folder of the compiler uses to declare its library, dialect or tool.

# Flags of all compiler code, and what all of it calls. LLVM is built without RTTI and exceptions, and so are we.
add_library(windlass_options INTERFACE)
target_include_directories(windlass_options INTERFACE
  ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include ${CMAKE_SOURCE_DIR}/runtime/include)
target_include_directories(windlass_options SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_compile_options(windlass_options INTERFACE
  # -O1: the compiler's own code waits on memory, and -O3 doubles the time to build it.
  # -fPIC also in executables: one precompiled header serves only code of one kind.
  -fPIC -O1 -fno-rtti -fno-exceptions -Wall -Wextra -Wno-unused-parameter -Werror)
target_link_options(windlass_options INTERFACE -fuse-ld=lld)
target_link_libraries(windlass_options INTERFACE LLVMSupport)
if(WINDLASS_SANITIZE)
  # vptr needs RTTI, which LLVM is built without.
  target_compile_options(windlass_options INTERFACE -fsanitize=address,undefined -fno-sanitize=vptr
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(windlass_options INTERFACE -fsanitize=address,undefined)
  # Programs that `windlass train` builds are sanitized like the tool that builds them.
  target_compile_definitions(windlass_options INTERFACE WINDLASS_SANITIZE)
endif()

# windlass_sanitizer_defaults(TARGET): options of the sanitizers that an executable needs next to LLVM's library.
function(windlass_sanitizer_defaults target)
  if(WINDLASS_SANITIZE)
    target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/sanitizer_defaults.cpp)
  endif()
endfunction()

# One precompiled header for all: MLIR's headers are most of every compilation. Only clang's: its bytes can be made to
# depend on neither time nor place (standard input read in the root folder, no folder of ours on the search path), so that
# ccache finds in one clone what another has compiled. CMake's own precompiled headers hold the path of the clone.
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  set(header ${CMAKE_CURRENT_LIST_DIR}/pch.h)
  set(precompiled ${CMAKE_BINARY_DIR}/pch.h.pch)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}")
  set(search_path ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  list(REMOVE_DUPLICATES search_path)
  list(TRANSFORM search_path PREPEND -isystem)
  add_custom_command(OUTPUT ${precompiled}
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} "$<TARGET_PROPERTY:windlass_options,INTERFACE_COMPILE_OPTIONS>" -std=c++17
      ${search_path} -Xclang -fno-pch-timestamp -fpch-instantiate-templates -MD -MT ${precompiled} -MF ${precompiled}.d
      -x c++-header - -o ${precompiled} < ${header}
    DEPENDS ${header} DEPFILE ${precompiled}.d WORKING_DIRECTORY / COMMENT "Precompiling the header of all compiler code"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(windlass_precompiled DEPENDS ${precompiled})
  set_property(GLOBAL PROPERTY WINDLASS_PRECOMPILED ${precompiled})
endif()

# windlass_use_pch(TARGET sources...): of this folder, but for those whose SKIP_PRECOMPILE_HEADERS is on.
function(windlass_use_pch target)
  get_property(precompiled GLOBAL PROPERTY WINDLASS_PRECOMPILED)
  if(NOT precompiled)
    return()
  endif()
  add_dependencies(${target} windlass_precompiled)
  foreach(source IN LISTS ARGN)
    get_source_file_property(skip ${source} SKIP_PRECOMPILE_HEADERS)
    if(NOT skip)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -include-pch ${precompiled})
      # The compiler's list of what an object was made from leaves the precompiled header out.
      set_property(SOURCE ${source} APPEND PROPERTY OBJECT_DEPENDS ${precompiled})
    endif()
  endforeach()
endfunction()

# windlass_library(NAME sources... LINK libraries... MLIR mlir-libraries... DEPENDS targets...)
function(windlass_library name)
  cmake_parse_arguments(ARG "" "" "LINK;MLIR;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC windlass_options ${ARG_LINK})
  if(ARG_MLIR)
    mlir_target_link_libraries(${name} PUBLIC ${ARG_MLIR})
    windlass_use_pch(${name} ${ARG_UNPARSED_ARGUMENTS})
  endif()
  # Generated headers of all dialects: cheap to make, and so no library can race them.
  add_dependencies(${name} windlass_generated ${ARG_DEPENDS})
endfunction()

# windlass_tool(NAME sources... LINK libraries... MLIR mlir-libraries... [NO_INSTALL])
function(windlass_tool name)
  cmake_parse_arguments(ARG "NO_INSTALL" "" "LINK;MLIR" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE windlass_options ${ARG_LINK})
  # MPI's package names a library of C++ bindings that nothing calls and newer systems lack.
  target_link_options(${name} PRIVATE -Wl,--as-needed)
  windlass_use_pch(${name} ${ARG_UNPARSED_ARGUMENTS})
  mlir_target_link_libraries(${name} PRIVATE MLIRIR ${ARG_MLIR})
  windlass_sanitizer_defaults(${name})
  add_dependencies(${name} windlass_generated)
  if(NOT ARG_NO_INSTALL)
    install(TARGETS ${name} RUNTIME)
  endif()
endfunction()

# windlass_tablegen(FILE.td OUTPUT generator-flag... ) in the binary folder that mirrors the caller's.
function(windlass_tablegen td output)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${output} ${ARGN} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR}/include ${MLIR_INCLUDE_DIRS})
  set(TABLEGEN_OUTPUT ${TABLEGEN_OUTPUT} PARENT_SCOPE)
endfunction()

# windlass_generated_target(NAME): makes what windlass_tablegen declared in this folder, before any library is compiled.
function(windlass_generated_target name)
  add_public_tablegen_target(${name})
  set_property(GLOBAL APPEND PROPERTY WINDLASS_GENERATED ${name})
endfunction()

# windlass_dialect(Name): ops, types, enums, attributes and the dialect class from <Name>Ops.td.
macro(windlass_dialect name mnemonic)
  windlass_tablegen(${name}Ops.td ${name}Ops.h.inc -gen-op-decls)
  windlass_tablegen(${name}Ops.td ${name}Ops.cpp.inc -gen-op-defs)
  windlass_tablegen(${name}Ops.td ${name}Dialect.h.inc -gen-dialect-decls -dialect=${mnemonic})
  windlass_tablegen(${name}Ops.td ${name}Dialect.cpp.inc -gen-dialect-defs -dialect=${mnemonic})
  windlass_tablegen(${name}Enums.td ${name}Enums.h.inc -gen-enum-decls)
  windlass_tablegen(${name}Enums.td ${name}Enums.cpp.inc -gen-enum-defs)
  windlass_tablegen(${name}Ops.td ${name}Attributes.h.inc -gen-attrdef-decls -attrdefs-dialect=${mnemonic})
  windlass_tablegen(${name}Ops.td ${name}Attributes.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${mnemonic})
endmacro()
