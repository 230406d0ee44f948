// Keeps the library within manylinux_2_28.
//
// torch's headers build error messages with string streams, whose default constructors are in
// libstdc++ only since GLIBCXX_3.4.26; the tag allows up to 3.4.24. Instantiating them here makes
// them part of this library.
#include <sstream>

template class std::basic_stringstream<char>;
template class std::basic_ostringstream<char>;
