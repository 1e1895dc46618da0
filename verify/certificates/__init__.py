"""The builder of certificates: untrusted, fast, floating point; the kernel decides."""
