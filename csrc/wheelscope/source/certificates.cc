// Reads no more of each certificate than whose it is, and gives OpenSSL those that it looks for. So
// nothing is believed that is not in the file, and OpenSSL alone judges.
#include "source/certificates.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace wheelscope {
namespace {

// Where in a certificate the name stands of whom it is for, by X.509:
//
//   Certificate    ::= SEQUENCE { TBSCertificate, ... }
//   TBSCertificate ::= SEQUENCE { [0] version OPTIONAL, serialNumber, signature, issuer, validity,
//                                 subject, ... }
X509_NAME* subject_in(const std::string& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const auto* const end = at + der.size();
  int tag = 0;
  auto enter = [&] {  // the length of its contents, to which `at` moves; -1: there is none
    long length = 0;
    int kind = 0;
    constexpr int failed = 0x80;
    return ASN1_get_object(&at, &length, &tag, &kind, end - at) & failed ? -1 : length;
  };
  constexpr int sequences = 2;
  for (int i = 0; i < sequences; ++i) {
    if (enter() < 0) return nullptr;
  }
  constexpr int fields_before = 4;  // without the version, whose tag is 0
  for (int i = 0; i < fields_before; ++i) {
    const auto length = enter();
    if (length < 0) return nullptr;
    at += length;
    if (i == 0 && tag == 0) --i;
  }
  return d2i_X509_NAME(nullptr, &at, end - at);
}

// Under which a store keeps whose it is.
int store_index() {
  static const int index = X509_STORE_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

}  // namespace

bool Certificates::serve(SSL_CTX* context) {
  if (entries_.empty()) read();
  if (entries_.empty()) return false;
  auto* store = SSL_CTX_get_cert_store(context);
  X509_STORE_set_ex_data(store, store_index(), this);
  X509_STORE_set_get_issuer(store, &Certificates::find_issuer);
  X509_STORE_set_lookup_certs(store, &Certificates::find_certificates);
  return true;
}

void Certificates::read() {
  const std::unique_ptr<BIO, decltype(&BIO_free)> file(BIO_new_file(path_.c_str(), "r"), &BIO_free);
  char *kind = nullptr, *header = nullptr;
  unsigned char* data = nullptr;
  long length = 0;
  while (file && PEM_read_bio(file.get(), &kind, &header, &data, &length)) {
    Entry entry{.der =
                    std::string(reinterpret_cast<char*>(data), static_cast<std::size_t>(length))};
    if (std::string_view(kind).ends_with("CERTIFICATE")) entry.subject.reset(subject_in(entry.der));
    if (entry.subject) entries_.push_back(std::move(entry));
    OPENSSL_free(kind);
    OPENSSL_free(header);
    OPENSSL_free(data);
  }
  ERR_clear_error();  // that the file has ended is one
}

void Certificates::give(X509_STORE* store, const X509_NAME* subject) const {
  for (const auto& entry : entries_) {
    if (X509_NAME_cmp(entry.subject.get(), subject) != 0) continue;
    const auto* der = reinterpret_cast<const unsigned char*>(entry.der.data());
    auto* certificate = d2i_X509_AUX(nullptr, &der, static_cast<long>(entry.der.size()));
    if (certificate) X509_STORE_add_cert(store, certificate);  // once; a second time does nothing
    X509_free(certificate);
  }
}

void Certificates::give(X509_STORE_CTX* context, const X509_NAME* subject) {
  auto* store = X509_STORE_CTX_get0_store(context);
  static_cast<Certificates*>(X509_STORE_get_ex_data(store, store_index()))->give(store, subject);
}

int Certificates::find_issuer(X509** issuer, X509_STORE_CTX* context, X509* certificate) {
  give(context, X509_get_issuer_name(certificate));
  return X509_STORE_CTX_get1_issuer(issuer, context, certificate);
}

stack_st_X509* Certificates::find_certificates(X509_STORE_CTX* context, const X509_NAME* subject) {
  give(context, subject);
  return X509_STORE_CTX_get1_certs(context, subject);
}

}  // namespace wheelscope
