//! Lifetimes and sizes in, offsets out: memory placement with a lower bound and a certificate.
