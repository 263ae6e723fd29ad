# Code that reads and writes ONNX's file format, made by protoc from weft/onnx/file/onnx.proto.
set(onnx_proto ${CMAKE_CURRENT_SOURCE_DIR}/weft/onnx/file/onnx.proto)
set(onnx_folder ${CMAKE_CURRENT_BINARY_DIR}/generated/onnx)
file(MAKE_DIRECTORY ${onnx_folder})
add_custom_command(
  OUTPUT ${onnx_folder}/onnx.pb.cc ${onnx_folder}/onnx.pb.h
  COMMAND protobuf::protoc --cpp_out=${onnx_folder} --proto_path=${CMAKE_CURRENT_SOURCE_DIR}/weft/onnx/file onnx.proto
  DEPENDS ${onnx_proto} VERBATIM)
add_library(weft_onnx_format OBJECT ${onnx_folder}/onnx.pb.cc)  # generated: without the project's warnings
target_link_libraries(weft_onnx_format PUBLIC protobuf::libprotobuf-lite)
target_include_directories(weft_onnx_format SYSTEM PUBLIC ${onnx_folder})
if(WEFT_SANITIZE)
  target_compile_options(weft_onnx_format PRIVATE -fsanitize=${WEFT_SANITIZE})
endif()
add_dependencies(weft_setup weft_onnx_format)
# Only the files that that see the format include its header.
set_source_files_properties(weft/onnx/file/model_file.cpp weft/onnx/file/model_writer.cpp weft/onnx/file/tensor_format.cpp
                            PROPERTIES COMPILE_OPTIONS "-isystem${onnx_folder}" WEFT_APART ON)
