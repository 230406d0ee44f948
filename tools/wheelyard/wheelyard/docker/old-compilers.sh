# Sets up the compilers of the old Debian suite in /opt/old, so that the newer suite around it calls them. Their output
# uses only the old suite's headers and libraries, and so runs wherever that suite's glibc does.
set -e
old=/opt/old
cd $old/usr/lib/*-linux-gnu
multiarch=$(basename "$PWD")

# The newer suite's loader runs them; their own libraries, without libc, are put where only they look.
mkdir $old/tools
for library in libbfd-* libctf* libgmp* libisl* libjansson* libmpc* libmpfr* libopcodes-* libsframe*; do
  if [ -e "$library" ]; then cp -P "$library" $old/tools; fi
done
for tool in gcc g++; do
  cat >/usr/local/bin/$tool <<WRAPPER
#!/bin/sh
export LD_LIBRARY_PATH=$old/tools\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
exec $(readlink -f $old/usr/bin/$tool) --sysroot=$old -B$old/usr/bin/ "\$@"
WRAPPER
  chmod +x /usr/local/bin/$tool
  ln -s $tool /usr/local/bin/$multiarch-$tool
done
# Debian's Python names gcc-ar for static libraries.
plugin=$(gcc -print-file-name=liblto_plugin.so)
for tool in ar nm ranlib; do
  printf '#!/bin/sh\nexec %s --plugin %s "$@"\n' $tool "$plugin" >/usr/local/bin/gcc-$tool
  chmod +x /usr/local/bin/gcc-$tool
  ln -s gcc-$tool /usr/local/bin/$multiarch-gcc-$tool
done
ln -s gcc /usr/local/bin/cc
ln -s g++ /usr/local/bin/c++
ln -s usr/lib/"$multiarch" $old/libraries

# Absolute links in the old root would lead to the newer suite.
find $old/usr/lib* -type l -lname '/*' | while read -r link; do
  ln -sfn "$old$(readlink "$link")" "$link"
done
# Python.h includes a part that lies in the folder of the architecture.
cp -r /usr/include/"$multiarch"/python3* $old/usr/include/"$multiarch"/
# A linker that is told to look among the newer suite's libraries must not find its libc there.
dpkg -L libc6-dev | grep -E '/lib.*[.](so|o|a)$' | xargs rm -f
