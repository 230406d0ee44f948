# curl_http: libcurl as a static library that speaks HTTP and nothing else.
#
# Distributions build libcurl with protocols whose own libraries are not all there in static form: of
# Kerberos there is none. wheelscope asks for none of these protocols. So what libcurl's archive needs
# of them is defined here, as functions that return 0, which is what their set-up functions must say.
find_library(CURL_ARCHIVE curl REQUIRED)
find_path(CURL_HEADERS curl/curl.h REQUIRED)
execute_process(COMMAND ${CMAKE_NM} --undefined-only ${CURL_ARCHIVE}
  OUTPUT_VARIABLE symbols ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
set(protocols gss GSS ldap ber RTMP libssh2 ssh sftp psl idn2 nghttp3 ngtcp2)
list(JOIN protocols "|" protocols)
string(REGEX MATCHALL " U ((${protocols})_|BrotliDecoder)[A-Za-z0-9_]+" needed "${symbols}")
list(REMOVE_DUPLICATES needed)
list(TRANSFORM needed REPLACE "^ U (.*)" "ABSENT(\\1)")
list(JOIN needed "\n" functions)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/absent_protocols.cc CONTENT "#define ABSENT(name) extern \"C\" int name() { return 0; }\n@functions@\n" @ONLY)

add_library(absent_protocols STATIC ${CMAKE_CURRENT_BINARY_DIR}/absent_protocols.cc)
add_library(curl_http INTERFACE)
target_include_directories(curl_http SYSTEM INTERFACE ${CURL_HEADERS})
target_link_libraries(curl_http INTERFACE ${CURL_ARCHIVE} absent_protocols)
