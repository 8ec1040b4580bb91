#!/bin/sh
# Makes the object of a source here, the same bytes wherever this directory is:
#
#	build.sh SOURCE OUT
#
# It takes clang and llvm-strip of Debian 12's packages clang-14 and llvm-14, and libbpf-dev and
# linux-libc-dev for their headers. Paths are left out of the object; what only a debugger reads, too.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
source=$1
out=$2
${CLANG:-clang-14} -O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
	-Wno-unused-function -Wno-missing-declarations -Wno-sign-compare \
	-ffile-prefix-map="$here"=. -fdebug-prefix-map="$here"=. -fdebug-compilation-dir=. \
	-isystem "/usr/include/$(uname -m)-linux-gnu" -c "$here/$source" -o "$out"
${STRIP:-llvm-strip-14} -g "$out"
