// Keeps the library within manylinux_2_28.
//
// torch's headers build error messages with string streams. Their constructors without arguments
// are in libstdc++ only since GLIBCXX_3.4.26, which is newer than that tag allows (3.4.24).
// Instantiated here, they are part of this library.
#include <sstream>

template class std::basic_stringstream<char>;
template class std::basic_ostringstream<char>;
