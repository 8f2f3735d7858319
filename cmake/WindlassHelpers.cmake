# Functions that every folder of the compiler uses to declare its library, dialect or tool.

# Flags of all compiler code. LLVM is built without RTTI and exceptions, and so are we.
add_library(windlass_options INTERFACE)
target_include_directories(windlass_options INTERFACE
  ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include ${CMAKE_SOURCE_DIR}/runtime/include)
target_include_directories(windlass_options SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_compile_options(windlass_options INTERFACE
  # -O1: the compiler's own code waits on memory, and -O3 doubles the time to build it.
  # -fPIC also in executables: one precompiled header serves only code of one kind.
  -fPIC -O1 -fno-rtti -fno-exceptions -Wall -Wextra -Wno-unused-parameter -Werror)
target_link_options(windlass_options INTERFACE -fuse-ld=lld)
if(WINDLASS_SANITIZE)
  target_compile_options(windlass_options INTERFACE -fsanitize=address,undefined -fno-sanitize=vptr
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(windlass_options INTERFACE -fsanitize=address,undefined)
endif()

# One precompiled header for all: MLIR's headers are most of every compilation.
add_library(windlass_pch STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cpp)
target_link_libraries(windlass_pch PUBLIC windlass_options)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # The header's bytes must not depend on when it was made, or ccache never finds it again.
  target_compile_options(windlass_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()
target_precompile_headers(windlass_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)

# windlass_library(NAME sources... LINK libraries... MLIR mlir-libraries... DEPENDS targets...)
function(windlass_library name)
  cmake_parse_arguments(ARG "" "" "LINK;MLIR;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC windlass_options ${ARG_LINK})
  if(ARG_MLIR)
    mlir_target_link_libraries(${name} PUBLIC ${ARG_MLIR})
    target_precompile_headers(${name} REUSE_FROM windlass_pch)
  endif()
  # Generated headers of all dialects: cheap to make, and so no library can race them.
  add_dependencies(${name} windlass_generated ${ARG_DEPENDS})
endfunction()

# windlass_tool(NAME sources... LINK libraries... MLIR mlir-libraries...)
function(windlass_tool name)
  cmake_parse_arguments(ARG "" "" "LINK;MLIR" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  # LLVM's library by name too: lld does not look for symbols in what MLIR's library needs.
  target_link_libraries(${name} PRIVATE windlass_options ${ARG_LINK} LLVM)
  mlir_target_link_libraries(${name} PRIVATE MLIRIR ${ARG_MLIR})
  target_precompile_headers(${name} REUSE_FROM windlass_pch)
  add_dependencies(${name} windlass_generated)
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
