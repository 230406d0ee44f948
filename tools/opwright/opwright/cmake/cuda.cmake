# How the CUDA sources are compiled: the GPU targets, the compiler, the static runtime.

# "8.0;9.0+PTX" -> real targets 80 90 and virtual target 90. Suffixes (9.0a, 10.0f) are kept.
set(real_targets "")
set(virtual_targets "")
foreach(target IN LISTS OPWRIGHT_TARGETS)
  if(NOT target MATCHES "^([0-9]+)\\.([0-9])([af]?)(\\+PTX)?$")
    message(FATAL_ERROR "'${target}' is not a GPU target; write targets as TORCH_CUDA_ARCH_LIST does: \"8.0;9.0+PTX\"")
  endif()
  set(name "${CMAKE_MATCH_1}${CMAKE_MATCH_2}${CMAKE_MATCH_3}")
  list(APPEND real_targets ${name})
  if(CMAKE_MATCH_4)
    list(APPEND virtual_targets ${name})
  endif()
endforeach()

# cudaGetDriverEntryPointByVersion, which finds the driver's functions, exists from CUDA 12.5 on.
file(STRINGS ${OPWRIGHT_CUDA_HOME}/include/cuda_runtime_api.h version REGEX "#define CUDART_VERSION +[0-9]+")
string(REGEX MATCH "[0-9]+" version "${version}")
if(NOT version OR version LESS 12050)
  math(EXPR major "0${version} / 1000")
  math(EXPR minor "0${version} % 1000 / 10")
  message(FATAL_ERROR "${OPWRIGHT_NAME} needs CUDA 12.5 or newer, and ${OPWRIGHT_CUDA_HOME} is CUDA ${major}.${minor}; "
                      "set CUDA_HOME to a newer toolkit, or build without CUDA: OPWRIGHT_CUDA=off")
endif()

# The static runtime: the wheel needs no CUDA library, whatever CUDA the user's torch has.
add_library(cuda_runtime INTERFACE)
target_include_directories(cuda_runtime SYSTEM INTERFACE ${OPWRIGHT_CUDA_HOME}/include)
target_compile_definitions(cuda_runtime INTERFACE OPWRIGHT_WITH_CUDA)
find_library(OPWRIGHT_CUDART_STATIC cudart_static NO_DEFAULT_PATH REQUIRED
  PATHS ${OPWRIGHT_CUDA_HOME}/lib ${OPWRIGHT_CUDA_HOME}/lib64 ${OPWRIGHT_CUDA_HOME}/targets/sbsa-linux/lib)
target_link_libraries(cuda_runtime INTERFACE ${OPWRIGHT_CUDART_STATIC} pthread dl rt)

if(OPWRIGHT_COMPILER STREQUAL "nvcc")
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_RUNTIME_LIBRARY None) # cuda_runtime links it
  set(CMAKE_CUDA_ARCHITECTURES OFF) # nvcc_targets lists them
  # nvcc spends most of its time on one pass over the headers per virtual target. The kernels need no feature that a
  # later GPU of the same major version adds, so 8.0, 8.6 and 8.9 share a pass. A target with PTX has its own pass.
  set(passes "")
  foreach(target IN LISTS real_targets)
    set(pass ${target})
    string(REGEX REPLACE "[0-9][af]?$" "" major ${target})
    foreach(older IN LISTS passes)
      if(older MATCHES "^${major}[0-9]$" AND older LESS target AND NOT target IN_LIST virtual_targets)
        set(pass ${older})
      endif()
    endforeach()
    list(APPEND passes ${pass})
    list(APPEND code_${pass} sm_${target})
  endforeach()
  list(REMOVE_DUPLICATES passes)
  set(nvcc_targets "")
  if(OPWRIGHT_THREADS GREATER 1)
    list(APPEND nvcc_targets --threads=${OPWRIGHT_THREADS})
  endif()
  foreach(pass IN LISTS passes)
    if(pass IN_LIST virtual_targets)
      list(APPEND code_${pass} compute_${pass})
    endif()
    list(JOIN code_${pass} "," code)
    list(APPEND nvcc_targets "--generate-code=arch=compute_${pass},code=[${code}]")
  endforeach()
  if(NOT CMAKE_CUDA_HOST_COMPILER)
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  endif()
  enable_language(CUDA)
  set(OPWRIGHT_CUDA_COMPILER "nvcc ${CMAKE_CUDA_COMPILER_VERSION}")
else()
  execute_process(COMMAND ${OPWRIGHT_CUDA_HOME}/bin/ptxas --version OUTPUT_VARIABLE ptxas COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "V([0-9.]+)" _ "${ptxas}")
  set(OPWRIGHT_CUDA_COMPILER "clang ${CMAKE_CXX_COMPILER_VERSION}, ptxas ${CMAKE_MATCH_1}")
  # ptxas may know newer GPUs than clang does; for those, the toolkit's fatbinary has ptxas compile the newest PTX.
  set(clang_options --no-cuda-include-ptx=all)
  foreach(name IN LISTS real_targets)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -x cuda -E -nocudainc -nocudalib --cuda-device-only
                            --cuda-gpu-arch=sm_${name} /dev/null
                    RESULT_VARIABLE unknown OUTPUT_QUIET ERROR_QUIET)
    if(NOT unknown)
      list(APPEND clang_options --cuda-gpu-arch=sm_${name})
    elseif(name IN_LIST virtual_targets)
      message(FATAL_ERROR "clang ${CMAKE_CXX_COMPILER_VERSION} cannot make PTX for ${name}; put +PTX on an older target")
    else()
      list(APPEND clang_options -Xcuda-fatbinary --assemble=sm_${name})
    endif()
  endforeach()
  foreach(name IN LISTS virtual_targets)
    list(APPEND clang_options --cuda-include-ptx=sm_${name})
  endforeach()
endif()

# Compiles the .cu files of `target` for every GPU target.
function(opwright_compile_cuda target)
  target_link_libraries(${target} PRIVATE cuda_runtime)
  if(OPWRIGHT_COMPILER STREQUAL "nvcc")
    set_target_properties(${target} PROPERTIES CUDA_VISIBILITY_PRESET hidden)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:${nvcc_targets} -Xcompiler=-fstack-protector-strong,-Wall,-Wextra
      --expt-relaxed-constexpr -Xfatbin=-compress-all>)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS
    -x cuda --cuda-path=${OPWRIGHT_CUDA_HOME} -Wno-unknown-cuda-version ${clang_options} ${shared_options} -Wall -Wextra)
endfunction()
