// The data files, byte for byte, as read-only data of the program.
#define EMBED(name, file)             \
  .global wheelscope_##name;          \
  .global wheelscope_##name##_end;    \
  wheelscope_##name: .incbin file;    \
  wheelscope_##name##_end: .byte 0

.section .rodata
EMBED(manylinux, "manylinux.csv")
EMBED(cuda, "cuda.toml")
EMBED(torch_shims, "torch_shims.csv")
EMBED(torch_symbols, "torch_symbols.csv")
EMBED(python_abi3, "python_abi3.csv")
EMBED(driver_symbols, "driver_symbols.csv")
EMBED(cudart, "cudart.json")
EMBED(platform_symbols, "platform_symbols.csv")
EMBED(cuda_libraries, "cuda_libraries.csv")
EMBED(explain, "explain.toml")
EMBED(missing, "missing.toml")
EMBED(providers, "providers.csv")
EMBED(attributes, "attributes.csv")
EMBED(atlas_style, "atlas.css")
EMBED(atlas_search, "atlas.js")

.section .note.GNU-stack, "", %progbits
