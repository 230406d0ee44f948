#!/bin/sh
# Runs a compiler through ccache. nvcc also takes flags from its environment; here they are part of the key.
export CCACHE_NAMESPACE="$NVCC_PREPEND_FLAGS | $NVCC_APPEND_FLAGS | $NVCC_CCBIN"
exec "$@"
