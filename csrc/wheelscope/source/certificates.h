// The certificates that are believed: a file of them, of which connections use one or two. OpenSSL
// would take apart all of them first, which takes longer than most answers of a server.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

namespace wheelscope {

class Certificates {
 public:
  explicit Certificates(std::string path) : path_(std::move(path)) {}
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  const std::string& path() const { return path_; }

  // Lets the connections of one thread find here who signed a certificate. This object must outlive
  // them. False: the file has no certificate, or cannot be read.
  bool serve(SSL_CTX* context);

 private:
  struct FreeName {
    void operator()(X509_NAME* name) const { X509_NAME_free(name); }
  };
  struct Entry {
    std::unique_ptr<X509_NAME, FreeName> subject;
    std::string der;
  };

  void read();
  void give(X509_STORE* store, const X509_NAME* subject) const;
  static void give(X509_STORE_CTX* context, const X509_NAME* subject);
  static int find_issuer(X509** issuer, X509_STORE_CTX* context, X509* certificate);
  static stack_st_X509* find_certificates(X509_STORE_CTX* context, const X509_NAME* subject);

  std::string path_;
  std::vector<Entry> entries_;
};

}  // namespace wheelscope
